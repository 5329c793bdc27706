# ruff: noqa: E501 - a line of a script is a message
"""One secret planted at each place and in each spelling, each a value of its own, so that what leaks says where it stood."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.flow_io import flows_of
from tests.cli.recordings import record, write

PROTOCOL = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Planted:
    """The secrets by the place that they were planted at."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        number = len(self.secrets)
        return self.secrets.setdefault(place, f"Zq{number:03d}x7Kd9{chr(97 + number % 26)}4Wm2pT8v")

    def pem(self, place: str) -> str:
        inner = self(place)
        return f"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{inner}\n{inner}Q==\n-----END RSA PRIVATE KEY-----\n"


HEADERS = (
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "X-Api-Key",
    "Api-Key",
    "apikey",
    "X-Auth-Token",
    "X-Goog-Api-Key",
    "X-Amz-Security-Token",
    "CF-Access-Client-Secret",
    "X-Client-Secret",
    "X-Password",
    "X-Vault-Token",
    "PRIVATE-TOKEN",
    "X-CSRF-Token",
    "Ocp-Apim-Subscription-Key",
    "X-Functions-Key",
    "X-Access-Key",
    "X-Session",
    "X-Signature",
    "Mcp-Param-Token",
    "Mcp-Param-Api-Key",
    "Cf-Access-Jwt-Assertion",
)
MEMBERS = (
    "password",
    "PASSWORD",
    "DB_PASSWORD",
    "dbPassword",
    "user-password",
    "passphrase",
    "pwd",
    "ssh_key",
    "sshKey",
    "bearer",
    "auth",
    "cookie",
    "otp",
    "connection_string",
    "connectionString",
    "api_key",
    "API-KEY",
    "apiKey",
    "apikey",
    "token",
    "accessToken",
    "authorization",
    "aws_secret_access_key",
    "client_secret",
    "private_key",
    "session_id",
    "access_token",
    "refresh_token",
    "github_token",
    "com.example/api-key",
    "secret",
    "webhook.secret",
)
PARAMETERS = ("pwd", "jwt", "login_token", "subscription-key", "api_key", "token", "code", "password", "access_token", "sig")
READABLE = {
    "max_tokens": "4096-per-call-limit1",
    "tokenizer": "cl100k-base-tokens1",
    "nextPageToken": "CAUQ1234567890abcdef",
    "pinned": "yes-since-2024-01",
    "author": "n1nja-0123456789abc",
    "authority": "ca-0123456789-abcdef",
    "keyword": "kw-0123456789abcdef",
    "primary_key": "pk-0123456789abcdef",
    "session_count": "sc-0123456789abcdef",
    "key": "reports/2024/q3.pdf",
    "code": "print(1 + 1)",
    "country_code": "IT",
    "pin": "left",
    "auth": "oauth2",
    "token_type": "Bearer",
    "city": "Rome",
}


def plant(path: Path) -> Planted:
    """Write a recording."""
    secret = Planted()
    session = secret("session id")
    arguments = {name: secret(f"argument {name}") for name in MEMBERS}
    arguments |= {
        "database": f"postgres://app:{secret('userinfo of an argument')}@db/x",
        "key_file": secret.pem("private key in an argument"),
        "readable": READABLE,  # type: ignore[dict-item]
        "pin": "4711",
    }
    meta = {f"com.example/{name}": secret(f"_meta {name}") for name in ("password", "api-key", "token")}
    result = {
        "content": [
            {
                "type": "text",
                "text": json.dumps({name: secret(f"JSON in a text {name}") for name in ("access_token", "password", "apiKey")}),
            },
            {"type": "text", "text": f"export DB_PASSWORD={secret('assignment')} token={secret('assignment of token')}; done"},
            {"type": "text", "text": f"see https://user:{secret('userinfo of a text')}@host.example/x"},
            {"type": "text", "text": f"again {secret('argument password')} and {session}, {secret('header X-Password')}"},
            {"type": "text", "text": f"Authorization: Bearer {secret('bearer in a text')}"},
            {"type": "text", "text": f"X-Api-Key: {secret('header in a text')}"},
            {"type": "resource_link", "name": "r", "uri": f"https://u:{secret('userinfo of a resource')}@h.example/r"},
        ],
        "structuredContent": {name: secret(f"structured {name}") for name in MEMBERS},
    }
    schema = {
        "password": {"type": "string", "default": secret("default of a password")},
        "pass_code": {"type": "string", "format": "password", "default": "abc"},
    }
    log = {
        "headers": {
            name: secret(f"headers of a log {name}") for name in ("Authorization", "X-Session", "Cookie", "X-Functions-Key")
        },
        "list": [{"name": "X-Api-Key", "value": secret("named value in a log")}],
        "env": {"DB_PASSWORD": secret("environment of a log")},
    }
    events = {"delivery": {"mode": "webhook", "url": "https://w.example/h", "secret": secret("params.delivery.secret")}}
    query = "&".join(f"{name}={secret(f'parameter {name}')}" for name in PARAMETERS)
    more = "".join(
        f"  +header {name}: {'Bearer ' if name == 'Authorization' else 'sid=' if name == 'Cookie' else ''}{secret(f'header {name}')}\n"
        for name in HEADERS
    )
    sent = json.dumps(arguments)
    answer = json.dumps(result)
    pieces = [
        f'legacy initialize {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "clientInfo": {{"name": "c", "version": "1"}}}}\n'
        f"  -> header Mcp-Session-Id: {session}\n"
        f'  -> result {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}}}',
        f"modern tools/list\n  -> tool login {json.dumps(schema)}",
        f'modern tools/call {{"name": "login", "arguments": {sent}}}\n{more}'
        f"  +header Referer: https://app.example/cb?code={secret('code of the Referer')}&x=1\n"
        f"  +header Origin: https://o:{secret('userinfo of the Origin')}@o.example\n"
        + "".join(f"  meta {name} {json.dumps(value)}\n" for name, value in meta.items())
        + f"  path /mcp?{query}\n  -> header Set-Cookie: sid={secret('Set-Cookie')}; Path=/\n  -> result {answer}",
        f'modern tools/call {{"name": "login", "arguments": {{}}, "requestState": "{secret("requestState")}"}}\n'
        f'  -> error -32602 {{"message": "Session not found: {session}, state {secret("requestState")}, token {secret("header X-Auth-Token")}",'
        f' "data": {{"url": "https://x:{secret("userinfo of an error")}@h.example/", "password": "{secret("data of an error")}"}}}}',
        f'modern tools/call {{"name": "login", "arguments": {{}}}}\n  -> sse\n  -> notify notifications/message {json.dumps({"level": "info", "data": log})}\n'
        f"  -> event not json Bearer {secret('event that is no JSON')}\n"
        f'  -> result {{"content": []}}',
        f'modern resources/read {{"uri": "file:///x?token={secret("parameter of a name")}"}}\n  -> error -32602',
        f'modern resources/read {{"uri": "https://u:{secret("userinfo of a name")}@h.example/x"}}\n'
        f'  header Mcp-Name: https://u:{secret("userinfo of Mcp-Name")}@h.example/y\n  -> result {{"contents": []}}',
        f"modern events/subscribe {json.dumps(events)}\n  -> error -32601",
        f'modern tools/call {{"name": "login", "arguments": {{"raw": [["Authorization", "Bearer {secret("pair of a header")}"]]}}}}\n'
        f'  -> result {{"content": [], "note": "{quote(secret("argument pwd"))}%20x", "b": "x"}}',
        f"POST http://as.example/token\n  header Content-Type: application/x-www-form-urlencoded\n"
        f"  body grant_type=authorization_code&code={secret('code of a form')}&client_secret={secret('client secret of a form')}&password={secret('password of a form')}\n"
        f"  -> 200 application/json {json.dumps({'access_token': secret('access token'), 'token_type': 'Bearer', 'refresh_token': secret('refresh token'), 'error_description': 'bad token ' + secret('refresh token')})}",
        "POST http://server.example/mcp\n  header Content-Type: multipart/form-data; boundary=b\n"
        + f'  body --b\\r\\ncontent-disposition: form-data; name="password"\\r\\n\\r\\n{secret("multipart password")}\\r\\n--b\\r\\nContent-Disposition: form-data; name="token"\\r\\n\\r\\n{secret("multipart token")}\\r\\n--b--\n'
        + "  -> 400 text/plain no",
        f'modern tools/call {{"name": "login", "arguments": {{}}}}\n  -> 500 text/plain failed: password={secret("text body")} at https://a:{secret("userinfo of a text body")}@b',
        f'POST http://as.example/token\n  header Content-Type: application/json\n  body {{"grant_type":"x"}}\n'
        f'  -> 200 application/json {{"token_type":"Bearer","access_token":"{secret("cut access token")}',
        f'modern tools/call {{"name": "login", "arguments": {{}}}}\n  -> 200 application/json {{"jsonrpc":"2.0","id":1,"result":{{"requestState":"{secret("cut after the quote")}"',
        f'modern tools/call {{"name": "login", "arguments": {{}}}}\n  -> sse\n  -> sse-raw data: {{"result":{{"requestState":"{secret("cut event")}',
        f"modern tools/call {json.dumps({'name': 'login', 'arguments': {'x': base64.b64encode(('a ' + session).encode()).decode()}})}\n"
        '  -> result {"content": []}',
    ]
    record(path, "\n".join(pieces) + "\n")
    return secret


def with_comments(path: Path, secret: Planted) -> None:
    """What a person and other addons left on the flows."""
    flows = [flow for flow in flows_of(path) if isinstance(flow, HTTPFlow)]
    flows[0].metadata["note"] = f"password={secret('metadata of another addon')}"
    with path.open("wb") as file:
        for flow in flows:
            write(file, flow)
