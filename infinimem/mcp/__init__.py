"""A library served to MCP clients: seven tools, and its documents as resources.

    tools.py       what is offered: names, titles, hints, schemas
    ask.py         the tool that answers
    remember.py    the tool that writes; no tool deletes
    resources.py   documents by address
    server.py      the SDK's server: calls in threads, errors, progress
    http.py        over HTTP: the token, the addresses that are served
    instructions.md   what a model is told when it connects

Needs the extra `infinimem[mcp]`; the SDK is imported by server.py, resources.py and http.py alone.
"""
