"""A memory in a browser: see what it knows, why, what changed, and take it back. Needs `infinimem[web]`."""
