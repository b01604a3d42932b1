"""Checks of a library as it lies on disk, and repairs that lose nothing."""
