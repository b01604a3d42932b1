"""A library served to MCP clients: eight tools, and documents as resources. Needs `infinimem[mcp]`."""
