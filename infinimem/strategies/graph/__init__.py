"""Typed graphs for every system that keeps one. Pure: what must be known of a node is asked of the caller."""
