"""GAM: what is being said stands apart until its topic ends; then it is one topic of a network.

Source: GAM, arXiv 2604.12285.
"""
