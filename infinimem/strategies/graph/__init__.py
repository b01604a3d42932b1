"""Typed graphs for every system that keeps one: links, capped rewiring, search along links, drawing.

Pure: knows no library, no vectors and no model; whatever it must know of a node is asked of the caller.
"""
