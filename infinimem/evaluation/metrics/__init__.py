"""Measures, from texts and ids to numbers; they know nothing of files, data sets and methods."""
