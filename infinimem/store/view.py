"""A read-only snapshot of a library: what strategies, tools and readers see. (Interface first.)"""
