"""Right traffic of every method and both eras, small, in the notation of examples: what tests of bad input begin with."""

# ruff: noqa: E501

SCRIPTS = {
    "modern-basics": r"""
modern server/discover
  -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "instructions": "x"}
modern tools/list
  -> result {"tools": [{"name": "echo", "title": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}, "b": {"type": "boolean", "x-mcp-header": "B"}, "o": {"$ref": "#/$defs/o"}}, "required": ["region"], "$defs": {"o": {"type": "object", "properties": {"s": {"type": "string", "pattern": "^a+$"}}}}}, "outputSchema": {"type": "object", "properties": {"x": {"type": "number"}}}, "annotations": {"readOnlyHint": true}, "icons": [{"src": "https://a.example/i.png", "mimeType": "image/png", "sizes": ["48x48"]}], "_meta": {"ui": {"resourceUri": "ui://a/b"}}}], "nextCursor": "c2"}
modern tools/list {"cursor": "c2"}
  -> result {"tools": [{"name": "b", "inputSchema": {"type": "object"}}]}
modern tools/call {"name": "echo", "arguments": {"region": "eu", "n": 42, "b": true, "o": {"s": "aa"}}}
  header Mcp-Param-Region: eu
  header Mcp-Param-N: 42
  header Mcp-Param-B: true
  -> result {"content": [{"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "resource_link", "uri": "file:///a", "name": "a"}, {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}], "structuredContent": {"x": 1}, "isError": false}
modern tools/call {"name": "unknown", "arguments": {}}
  -> error -32602 {"message": "no such tool", "data": {"a": 1}}
""",
    "modern-lists": r"""
modern prompts/list
  -> result {"prompts": [{"name": "p", "title": "P", "description": "d", "arguments": [{"name": "a", "description": "d", "required": true}], "icons": [{"src": "data:image/png;base64,aGk="}]}]}
modern prompts/get {"name": "p", "arguments": {"a": "x"}}
  -> result {"description": "d", "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}
modern resources/list
  -> result {"resources": [{"uri": "file:///a", "name": "a", "title": "A", "description": "d", "mimeType": "text/plain", "size": 5, "annotations": {"priority": 1}}], "nextCursor": "n"}
modern resources/templates/list
  -> result {"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "t", "mimeType": "text/plain"}]}
modern resources/read {"uri": "file:///a"}
  -> result {"contents": [{"uri": "file:///a", "mimeType": "text/plain", "text": "x"}, {"uri": "file:///b", "blob": "aGk="}]}
modern resources/read {"uri": "ui://a/b"}
  -> result {"contents": [{"uri": "ui://a/b", "mimeType": "text/html;profile=mcp-app", "text": "<p>", "_meta": {"ui": {"csp": {"connectDomains": ["https://a.example"]}, "permissions": {"camera": {}}, "prefersBorder": true}}}]}
modern resources/read {"uri": "file:///none"}
  -> error -32602 {"message": "not found", "data": {"uri": "file:///none"}}
modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}, "context": {"arguments": {"b": "c"}}}
  -> result {"completion": {"values": ["x", "xy"], "total": 2, "hasMore": false}}
""",
    "modern-stream": r"""
modern tools/call {"name": "slow", "arguments": {}}
  meta progressToken "t1"
  meta io.modelcontextprotocol/logLevel "info"
  meta traceparent "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  meta tracestate "a=b"
  meta baggage "k=v"
  -> sse
  -> notify notifications/progress {"progressToken": "t1", "progress": 1, "total": 10, "message": "m"}
  -> notify notifications/message {"level": "info", "logger": "l", "data": {"a": 1}}
  -> notify notifications/progress {"progressToken": "t1", "progress": 2.5, "total": 10}
  -> result {"content": []}
modern subscriptions/listen {"notifications": {"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["file:///a"]}}
  label listen
  -> sse
  -> event {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]}, "_meta": {"io.modelcontextprotocol/subscriptionId": 2}}}
  -> event {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 2}}}
  -> event {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///a", "_meta": {"io.modelcontextprotocol/subscriptionId": 2}}}
  -> open
modern-notify notifications/cancelled {"requestId": 2, "reason": "r"}
  -> 202
continue listen
  -> result {"_meta": {"io.modelcontextprotocol/subscriptionId": 2}}
""",
    "modern-mrtr": r"""
modern tools/call {"name": "deploy", "arguments": {"a": 1}}
  capabilities {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
  -> result {"resultType": "input_required", "requestState": "state-one-opaque", "inputRequests": {"e": {"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean", "title": "T", "default": true}, "s": {"type": "string", "enum": ["a"], "enumNames": ["A"], "minLength": 1, "format": "email"}, "m": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}}, "required": ["ok"]}}}, "u": {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://a.example/x", "elicitationId": "i"}}, "s": {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "q"}}], "maxTokens": 10, "modelPreferences": {"hints": [{"name": "h"}], "costPriority": 0.1}, "tools": [{"name": "t", "inputSchema": {"type": "object"}}], "toolChoice": {"mode": "auto"}}}, "r": {"method": "roots/list", "params": {}}}}
modern tools/call {"name": "deploy", "arguments": {"a": 1}, "requestState": "state-one-opaque", "inputResponses": {"e": {"action": "accept", "content": {"ok": true, "s": "a", "m": ["x"]}}, "u": {"action": "decline"}, "s": {"role": "assistant", "content": {"type": "text", "text": "a"}, "model": "m", "stopReason": "endTurn"}, "r": {"roots": [{"uri": "file:///r", "name": "n"}]}}}
  capabilities {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
  -> result {"resultType": "input_required", "requestState": "state-two"}
modern tools/call {"name": "deploy", "arguments": {"a": 1}, "requestState": "state-two"}
  -> result {"content": [{"type": "text", "text": "done"}]}
modern tools/call {"name": "deploy", "arguments": {"a": 1}, "requestState": "state-two"}
  -> error -32602
""",
    "modern-tasks": r"""
modern tools/call {"name": "job", "arguments": {}}
  capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
  -> result {"resultType": "task", "taskId": "task-1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 1000, "statusMessage": "m"}
modern tasks/get {"taskId": "task-1"}
  capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
  -> result {"taskId": "task-1", "status": "input_required", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z", "ttlMs": 60000, "pollIntervalMs": 1000, "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}}}}
modern tasks/update {"taskId": "task-1", "inputResponses": {"k": {"action": "accept", "content": {}}}}
  capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
  -> result {}
modern tasks/get {"taskId": "task-1"}
  -> result {"taskId": "task-1", "status": "completed", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:02Z", "ttlMs": 60000, "result": {"content": []}}
modern tasks/get {"taskId": "task-1"}
  -> result {"taskId": "task-1", "status": "failed", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:02Z", "ttlMs": null, "error": {"code": -32603, "message": "m"}}
modern tasks/cancel {"taskId": "task-1"}
  -> result {}
modern tasks/get {"taskId": "task-9"}
  -> error -32602
modern subscriptions/listen {"notifications": {"taskIds": ["task-1"]}}
  -> sse
  -> event {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"taskIds": ["task-1"]}, "_meta": {"io.modelcontextprotocol/subscriptionId": 8}}}
  -> event {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": "task-1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:02Z", "ttlMs": null, "_meta": {"io.modelcontextprotocol/subscriptionId": 8}}}
  -> closed client
""",
    "modern-errors": r"""
modern tools/list
  -> error -32020 {"message": "m", "data": {"header": "Mcp-Method"}}
modern tools/call {"name": "echo", "arguments": {}}
  -> error -32021 {"message": "m", "data": {"requiredCapabilities": {"elicitation": {}}}}
modern tools/list
  version 2027-01-01
  -> error -32022 {"message": "m", "data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
legacy initialize
  -> error -32022 {"message": "m", "data": {"supported": ["2026-07-28"]}}
modern foo/bar
  -> error -32601
modern tools/call {"name": "echo"}
  -> 401 application/json {"error": "invalid_token", "error_description": "d"}
modern tools/call {"name": "echo"}
  -> header Retry-After: 5
  -> 429 text/plain slow down
POST
  header Content-Type: application/json
  body [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "method": "notifications/x"}]
  -> 400 application/json {"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no batch"}}
""",
    "legacy": r"""
legacy initialize {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}, "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}}}, "clientInfo": {"name": "c", "version": "1"}}
  -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}, "prompts": {}, "completions": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}, "instructions": "i"}
legacy-notify notifications/initialized
  -> 202
GET
  header Accept: text/event-stream
  header Mcp-Session-Id: s1
  header MCP-Protocol-Version: 2025-11-25
  label stream
  -> sse
  -> sse-raw id: 1\nretry: 10\ndata:\n\n
  -> notify notifications/tools/list_changed
  -> ask 5 roots/list
  -> open
legacy-reply 5 {"roots": [{"uri": "file:///r"}]}
  -> 202
legacy tools/list
  -> result {"tools": [{"name": "echo", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}
legacy tools/call {"name": "echo", "arguments": {}, "_meta": {"progressToken": 9}}
  label call
  -> sse
  -> notify notifications/progress {"progressToken": 9, "progress": 1}
  -> ask 6 elicitation/create {"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
  -> open
legacy-reply 6 {"action": "accept", "content": {"a": "x"}}
  -> 202
continue call
  -> result {"content": [{"type": "text", "text": "x"}]}
legacy tools/call {"name": "echo", "arguments": {}, "task": {"ttl": 1000}}
  -> result {"task": {"taskId": "t1", "status": "working", "createdAt": "2025-01-01T00:00:00Z", "lastUpdatedAt": "2025-01-01T00:00:00Z", "ttl": 1000, "pollInterval": 100}}
legacy tasks/get {"taskId": "t1"}
  -> result {"taskId": "t1", "status": "completed", "createdAt": "2025-01-01T00:00:00Z", "ttl": 1000}
legacy tasks/result {"taskId": "t1"}
  -> result {"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}}
legacy tasks/list
  -> result {"tasks": [{"taskId": "t1", "status": "completed"}]}
legacy logging/setLevel {"level": "info"}
  -> result {}
legacy resources/subscribe {"uri": "file:///a"}
  -> result {}
legacy resources/read {"uri": "file:///a"}
  -> error -32002 {"data": {"uri": "file:///a"}}
legacy ping
  -> result {}
legacy-notify notifications/cancelled {"requestId": 3, "reason": "r"}
  -> 202
legacy tools/call {"name": "u", "arguments": {}}
  -> error -32042 {"data": {"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://a.example", "message": "m"}]}}
DELETE
  header Mcp-Session-Id: s1
  -> 204
legacy tools/list
  -> 404 application/json {"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "gone"}}
""",
    "legacy-old": r"""
legacy initialize {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
  -> result {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
POST
  header Content-Type: application/json
  header Accept: application/json, text/event-stream
  header Mcp-Session-Id: s1
  body [{"jsonrpc": "2.0", "id": 10, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 11, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
  -> 200 application/json [{"jsonrpc": "2.0", "id": 10, "result": {"tools": []}}, {"jsonrpc": "2.0", "id": 11, "result": {}}]
""",
    "http-sse": r"""
GET /sse
  header Accept: text/event-stream
  label s
  -> sse
  -> sse-raw event: endpoint\ndata: /messages?sessionId=abc\n\n
  -> open
POST /messages?sessionId=abc
  header Content-Type: application/json
  body {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
  -> 202 text/plain Accepted
continue s
  -> event {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}
  -> open
POST /messages?sessionId=abc
  header Content-Type: application/json
  body {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
  -> 202 text/plain Accepted
continue s
  -> event {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
  -> closed server
""",
    "oauth": r"""
modern tools/list
  -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="a b"
  -> 401 application/json {"error": "invalid_token"}
GET http://server.example/.well-known/oauth-protected-resource/mcp
  -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["http://as.example"], "scopes_supported": ["a"], "bearer_methods_supported": ["header"]}
GET http://as.example/.well-known/oauth-authorization-server
  -> 200 application/json {"issuer": "http://as.example", "authorization_endpoint": "http://as.example/authorize", "token_endpoint": "http://as.example/token", "registration_endpoint": "http://as.example/register", "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"], "grant_types_supported": ["authorization_code"], "authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true, "token_endpoint_auth_methods_supported": ["none"]}
POST http://as.example/register
  header Content-Type: application/json
  body {"client_name": "c", "redirect_uris": ["http://localhost/cb"], "grant_types": ["authorization_code"], "token_endpoint_auth_method": "none", "application_type": "native"}
  -> 201 application/json {"client_id": "id", "client_secret": "sec", "redirect_uris": ["http://localhost/cb"]}
GET http://as.example/authorize?response_type=code&client_id=id&redirect_uri=http%3A%2F%2Flocalhost%2Fcb&state=st&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http%3A%2F%2Fserver.example%2Fmcp&scope=a
  -> header Location: http://localhost/cb?code=c0de&state=st&iss=http%3A%2F%2Fas.example
  -> 302
POST http://as.example/token
  header Content-Type: application/x-www-form-urlencoded
  body grant_type=authorization_code&code=c0de&redirect_uri=http%3A%2F%2Flocalhost%2Fcb&client_id=id&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk&resource=http%3A%2F%2Fserver.example%2Fmcp
  -> 200 application/json {"access_token": "tok", "token_type": "Bearer", "expires_in": 3600, "scope": "a", "refresh_token": "ref"}
modern tools/list
  header Authorization: Bearer tok
  -> result {"tools": []}
modern tools/list
  header Authorization: Bearer tok
  -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="a b c"
  -> 403 application/json {"error": "insufficient_scope"}
OPTIONS
  header Origin: http://web.example
  header Access-Control-Request-Method: POST
  header Access-Control-Request-Headers: mcp-method
  -> 204
""",
}
