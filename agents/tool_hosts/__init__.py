"""Hosts of evidence tools, by shape of `services.ports.ToolHost`: in this process, and over MCP."""
