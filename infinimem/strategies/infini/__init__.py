"""Infini Memory: topic documents with a buffer before them. Source: arXiv 2606.10677."""
