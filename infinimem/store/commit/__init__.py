"""Several files changed as one, whatever crashes or saves meanwhile."""
