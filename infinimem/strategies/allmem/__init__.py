"""All-Mem: units, typed links between them, and consolidation that archives. Source: arXiv 2603.19595."""
