"""The derived index of a library: what is found, by words and by meaning."""
