"""One message at a time: headers and the sentinel codec, JSON-RPC, SSE, content codings, revisions. Bytes in, facts out."""
