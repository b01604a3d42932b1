"""Finding text in a snapshot: derived, disposable, never written to. Knows no strategies and no models."""
