"""The fault whose wrong answers stand in the config: changed, replaced, or streamed event by event."""

import asyncio
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.misbehaviours import Fault, fault
from test_servers.rogues.exchange import (
    ANSWER,
    Asked,
    Cut,
    Honest,
    Out,
    asked_of,
    changed_headers,
    encoded,
    event,
    honest_answer,
    merged,
)

JSON_HEADERS = [(b"content-type", b"application/json")]
STREAM_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]


class Reply(BaseModel):
    """One answer. Without `message`, `body` and `events` it is the honest one, changed by the rest."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    status: int | None = None
    headers: dict[str, str | None] = Field(default_factory=dict, description="Set; null takes one away.")
    patch: dict[str, Any] | None = Field(default=None, description="A JSON merge patch for the JSON-RPC answer.")
    message: Any = Field(default=None, description='The whole JSON-RPC message; "$id", "$token", "$name" are filled in.')
    body: str | None = Field(default=None, description="The body as it is.")
    charset: Literal["utf-8", "latin-1"] = Field(default="utf-8", description="Of `body`.")
    events: list[dict[str, Any] | str] | None = Field(
        default=None, description='An SSE stream: messages, raw text, and "$answer" for the (patched) honest answer.'
    )
    pause_ms: int = Field(default=0, ge=0, description="Between two events.")
    end: Literal["close", "cut", "stay"] = Field(default="close", description="What happens to the connection then.")


@fault("answers")
class Answers(Fault):
    """Answers some requests as the config says; the nth time as the nth reply says, and the last one from then on."""

    def __init__(self, method: str, replies: list[Reply], name: str | None = None, path: str | None = None) -> None:
        self.method = method
        self.name = name
        self.path = path
        self.replies = replies
        self.given = 0

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or (self.path is not None and scope["path"] != self.path):
                await app(scope, receive, send)
                return
            asked, receive = await asked_of(scope, receive)
            if asked.method != self.method or (self.name is not None and asked.name != self.name):
                await app(scope, receive, send)
                return
            reply = self.replies[min(self.given, len(self.replies) - 1)]
            self.given += 1
            await _give(reply, asked, app, scope, Out(send, receive))

        return answer


async def _give(reply: Reply, asked: Asked, app: ASGIApp, scope: Scope, out: Out) -> None:
    made_up = reply.message is not None or reply.body is not None
    asks_honest = not made_up and (reply.events is None or ANSWER in reply.events)
    honest = await honest_answer(app, scope, out.receive) if asks_honest else Honest(200, JSON_HEADERS)
    message = honest.message
    if reply.patch is not None:
        message = merged(message, asked.filled(reply.patch))
    status = reply.status or honest.status
    if reply.events is not None:
        await _stream(reply, asked, message, status, out)
        return
    if made_up:
        body = reply.body.encode(reply.charset) if reply.body is not None else encoded(asked.filled(reply.message))
    elif honest.is_stream and reply.patch is not None:
        body = b"".join(event(part) for part in [*honest.events()[:-1], message])
    else:
        body = encoded(message) if reply.patch is not None else honest.body
    await out.whole(status, changed_headers(honest.headers, reply.headers), body)


async def _stream(reply: Reply, asked: Asked, answer: Any, status: int, out: Out) -> None:
    await out.start(status, changed_headers(STREAM_HEADERS, reply.headers))
    for part in reply.events or []:
        await out.write(event(answer if part == ANSWER else asked.filled(part)))
        await asyncio.sleep(reply.pause_ms / 1000)
    if reply.end == "cut":
        raise Cut
    if reply.end == "stay":
        await out.stay()
    await out.close()
