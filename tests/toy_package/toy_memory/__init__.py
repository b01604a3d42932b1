"""A package as other people write it: a strategy, an embedder and an importer for infinimem."""
