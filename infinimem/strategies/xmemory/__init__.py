"""xMemory: blocks told as episodes, their facts in balanced, coherent themes. Source: arXiv 2602.02007."""
