"""What `forget` takes out, and where its words could stand besides."""

BEGUN = ".infinimem/forgetting"
"""Is there while a `forget` is to be finished; says nothing. Here, for every opening of a library asks."""
