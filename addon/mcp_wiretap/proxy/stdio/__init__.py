"""The proxy's end of `mcp-wiretap stdio`: what wrappers tell becomes flows, live (`tap`) or in a file (`recorder`)."""
