"""A library served to MCP clients: seven tools, and documents as resources. Needs `infinimem[mcp]`."""
