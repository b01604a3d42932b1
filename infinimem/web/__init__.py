"""A memory in a browser: see what it knows, why, what changed, and take it back.

guard.py decides who may see it, app.py has the addresses, pages.py what each shows, site.py what a page is
made of, prose.py a document as blocks to read; templates/ hold no logic. Needs the extra `infinimem[web]`.
"""
