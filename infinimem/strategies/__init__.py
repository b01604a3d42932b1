"""Memory systems over the one folder, interchangeable behind `base.Strategy`."""
