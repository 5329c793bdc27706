"""One message in words, as YAML: what the content view "MCP" shows of a request and of a response.

`page.request` and `page.response` are the doors; everything else is a section of the page.
"""
