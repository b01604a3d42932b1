"""A library served to MCP clients: seven tools, and its documents as resources.

tools.py holds what is offered, server.py the SDK's server, http.py the token and the addresses that are
served, instructions.md what a model is told when it connects. Needs the extra `infinimem[mcp]`.
"""
