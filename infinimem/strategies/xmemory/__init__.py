"""xMemory: blocks of messages told as episodes, their facts in themes that are kept balanced and coherent.

Source: arXiv 2602.02007.
"""
