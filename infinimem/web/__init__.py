"""A memory in a browser: see what it knows, why, what changed, and take it back.

    guard.py       who may see it: a link that works once, a cookie, CSRF tokens, headers
    app.py         addresses, their JSON twins, errors; an ASGI application
    site.py        what a page is made of: the library, links, templates
    prose.py       a document as blocks to read, with the lines that it superseded
    reading.py     home, topics, a document, a line, search
    changes.py     what changed: the timeline, a receipt, what awaits review
    overview.py    from above: conversations, the map of topics, what a hook would recall
    acting.py      what changes the library or spends tokens: by POST alone
    live.py        what changes while a page is open, as server-sent events
    templates/, static/   HTML, one stylesheet, one script, htmx with its licence

Needs the extra `infinimem[web]`. Routes call the facade; templates hold no logic.
"""
