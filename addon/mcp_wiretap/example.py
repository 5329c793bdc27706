"""The notation of examples: tiny exchanges written down, read into the events of a trace.

Rule docstrings (`Wrong::`, `Right::`) and the case files of the tests are written in it, so that each can be run. A line at
column 0 begins an exchange; indented lines say more about it; `->` lines are the server's side. `#` begins a comment line.

    modern tools/call {"name": "echo", "arguments": {}}     a POST with right envelope, id and mirrored headers (Mcp-Method,
                                                            Mcp-Name, MCP-Protocol-Version; Mcp-Param-* are written by hand)
    modern-notify METHOD PARAMS                             a notification with the modern version header
    legacy METHOD PARAMS                                    a POST without envelope; in the session that an initialize before
                                                            it opened, with its version header (2025-11-25 unless negotiated)
    legacy-notify METHOD PARAMS
    legacy-reply ID RESULT | legacy-reply-error ID CODE     the client answers a request of the server
    POST|GET|DELETE|OPTIONS|PUT [PATH or URL]               as it stands: no header, no body but what is written below
    continue LABEL                                          further `->` lines of an exchange that was left open

    Indented, the client's side:
      header NAME: VALUE | +header NAME: VALUE | -header NAME     replace, add one more, remove
      meta KEY JSON | -meta KEY                                   a member of params._meta
      params JSON                                                 the params as they stand (no envelope added)
      id JSON | no-id
      body TEXT                                                   the body as it stands; \\xNN, \\n and \\r are bytes
      body-lost                                                   the recorder did not keep the request body
      client NAME                                                 another client: connection, Authorization, clientInfo
      capabilities JSON | version V | session ID                  of the envelope; of envelope and header; Mcp-Session-Id
      path PATH or URL                                            default http://server.example:80/mcp
      after SECONDS                                               starts so long after what came before (default 1)
      label NAME
    Indented, the server's side:
      -> result JSON          the answer; on modern resultType, serverInfo, and ttlMs/cacheScope of cacheable methods are
                              filled in where absent; a member with the value "$none" is removed
      -> raw-result JSON      nothing filled in
      -> error CODE [{"message": ..., "data": ...}]   HTTP 400 for -32020..-32022, 404 for -32601 (modern); otherwise 200
      -> STATUS [CONTENT-TYPE [BODY]]                 any other response, e.g. `-> 202`, `-> 404 text/html <p>no</p>`
      -> status N | -> header NAME: VALUE | -> -header NAME
      -> answer-id JSON | -> no-answer-id             the id in the answers that follow
      -> sse                  an event stream; `result`, `error` after it are events, and:
      -> notify METHOD PARAMS | -> ask ID METHOD PARAMS | -> event JSON-or-text
      -> sse-raw TEXT         bytes of the stream as they stand, escapes as in body
      -> after SECONDS        before the next line (default 0.01)
      -> closed client|server|unknown     how it ended, where it did not simply complete
      -> open                 it has not ended (yet)

An exchange without `->` lines got no answer. Answers to initialize open a session (Mcp-Session-Id "s1", "s2" ...) unless
`-> -header Mcp-Session-Id` is there.
"""
