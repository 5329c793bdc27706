"""The inspector asked by programs: an MCP server whose tools tell what was found in traces.

`quoting` marks what came off the wire, `answers` are the tools' texts, `server` puts them behind the official SDK. Nothing here
sends traffic or changes it.
"""
