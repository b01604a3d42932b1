"""Readers that every strategy shares: they see documents through the tools and the searcher alone."""
