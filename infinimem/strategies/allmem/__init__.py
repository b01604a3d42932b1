"""All-Mem: units with a visible surface, typed links between them, and consolidation that archives.

Source: arXiv 2603.19595.
"""
