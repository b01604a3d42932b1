"""Wording."""
