"""Texts to vectors: local models, a server, or hashed words. Knows nothing of libraries."""
