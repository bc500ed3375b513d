"""The evidence tools over the Model Context Protocol: read-only, over stdio or streamable HTTP."""
