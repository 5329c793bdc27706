"""What is known to be secret in a trace, so that it is masked wherever else it stands: a session id that an error repeats, a
token that a tool's text quotes.

A trace has one `KnownSecrets`. It learns from heads and bodies as they come (`Inspector`), and `knowing` makes it the one that
`concealed` goes by: whatever is shown, written or told of a trace is made inside of it.
"""

import base64
import json
import re
from collections import OrderedDict
from contextvars import ContextVar
from urllib.parse import quote, unquote

from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.pace import breathe
from mcp_wiretap.wire.secret import names
from mcp_wiretap.wire.secret.spelling import mask
from mcp_wiretap.wire.secret.texts import parameters, passwords_of_urls
from mcp_wiretap.wire.secret.visible import visible

SHORTEST = 8  # characters; a shorter secret is masked in its own place only: elsewhere it may be any word
LONGEST = 4_096  # a longer one is masked in its own place, and nobody repeats it
MOST = 4_000  # secrets that are remembered, the oldest leave
_MOST_READ = 1 << 20  # characters of one body that are searched
_HEAD = 8
_FEW = 40  # heads that are looked for one by one: that is quicker than to look at each place where one may begin
_REMEMBERED, _MOST_REMEMBERED = 200, 2_000  # characters of a text, texts
_SHORTEST_BASE64 = 12  # characters: of eight bytes
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,20000}={0,2}")
_STANDARD = str.maketrans("-_", "+/", "=")
_EVERY = 64  # members between two rests
# Where a secret may begin: not inside a word, but after an escape.
_STARTS = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))(?=\S.{7})", re.S)
# A member with its text, or the first text of its list; in JSON, and in JSON inside a text.
_MEMBER = re.compile(
    r'"([^"\\]{1,100})"\s*:\s*(?:\[\s*)?"((?:[^"\\]|\\.)*+)|\\+"([^"\\]{1,100})\\+"\s*:\s*(?:\[\s*)?\\+"([^"\\]*)', re.S
)
_HINTS = names.vocabulary(
    """
    pass pwd secret token key auth cred cookie otp bearer sess jwt code requeststate assertion connection verifier sig
    """
)
_NONE = '"progresstoken"'  # a member that is no secret and that nearly every message has
_LONGEST_NAME = 64  # characters of the name of a header field that is remembered
_COOKIE = re.compile(r"(?:^|;)\s*([^=;\s]+)=\"?([^;\"]*)")
# Words of the protocols: a secret that is one of them (a password "complete") is none anywhere else.
WORDS = frozenset(
    names.vocabulary(
        """
    complete completed input_required cancelled working accepted declined required optional disabled enabled
    application/json text/event-stream text/plain authorization_code client_credentials refresh_token access_token
    registration_access_token client_secret code_verifier code_challenge session_id sessionId requestState inputRequests
    inputResponses structuredContent initialize notifications resources templates subscriptions arguments properties
    description additionalProperties protocolVersion capabilities clientInfo serverInfo tools/call tools/list prompts/get
    prompts/list resources/read resources/list tasks/get tasks/list tasks/cancel tasks/result tasks/update
    elicitation/create sampling/createMessage roots/list server/discover resources/subscribe resources/unsubscribe
    resources/templates/list subscriptions/listen completion/complete logging/setLevel elicitation sampling password
    username undefined localhost 127.0.0.1 redacted client_secret_basic client_secret_post private_key_jwt localhost:
    redirect_uri redirect_uris response_type grant_type
    """
    )
)
_REVISION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_word(text: str) -> bool:
    """Whether a text that stands where a secret belongs is a word of the protocols all the same."""
    return text in WORDS or text.lower() in WORDS or _REVISION.fullmatch(text) is not None or not text.strip()


class KnownSecrets:
    """The secrets of a trace, bounded. What is kept is the secrets themselves: it lives as long as the trace."""

    def __init__(self) -> None:
        self._spellings: OrderedDict[str, list[str]] = OrderedDict()  # secret -> how it may be written
        self._by_head: dict[str, list[tuple[str, str]]] = {}  # first characters -> (spelling, its mask), the longest first
        self._looked_at: dict[str, str] = {}  # the same texts come with every flow

    def __len__(self) -> int:
        return len(self._spellings)

    def add(self, secret: str) -> None:
        """From now on it is masked wherever it stands."""
        if secret in self._spellings or not SHORTEST <= len(secret) <= LONGEST or is_word(secret) or secret.startswith("(sha "):
            return
        masked = mask(secret)
        in_json = json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
        in_urls = quote(secret, safe="", errors="replace"), quote(secret, errors="replace")
        spellings = list(dict.fromkeys((secret, *in_json, *in_urls, visible(secret))))
        self._spellings[secret] = spellings
        for spelling in spellings:
            same = self._by_head.setdefault(spelling[:_HEAD], [])
            same.append((spelling, masked))
            same.sort(key=lambda entry: -len(entry[0]))
        while len(self._spellings) > MOST:
            self._forget(self._spellings.popitem(last=False)[1])

    def _forget(self, spellings: list[str]) -> None:
        for spelling in spellings:
            head = spelling[:_HEAD]
            self._by_head[head] = [entry for entry in self._by_head[head] if entry[0] != spelling]
            if not self._by_head[head]:
                del self._by_head[head]

    def masked(self, text: str) -> str:
        """The text with these secrets masked, also one that is cut by an ellipsis or by the end of the text."""
        if not self._by_head or len(text) < SHORTEST:
            return text
        if len(text) > _REMEMBERED:
            return self._mask(text)
        found = self._looked_at.get(text)
        if found is None:
            if len(self._looked_at) >= _MOST_REMEMBERED:
                self._looked_at.clear()
            found = self._looked_at[text] = self._mask(text)
        return found

    def _mask(self, text: str) -> str:
        by_head = self._by_head
        if len(by_head) <= _FEW:
            for head in by_head:
                if head in text:
                    break
            else:
                return _BASE64.sub(self._masked_base64, text) if len(text) >= _SHORTEST_BASE64 else text
        parts: list[str] = []
        position = 0
        for match in _STARTS.finditer(text):
            start = match.start()
            if start < position or (entries := by_head.get(text[start : start + _HEAD])) is None:
                continue
            for spelling, instead in entries:
                end = start + len(spelling)
                if not text.startswith(spelling, start):
                    rest = text[start:end].partition("…")[0]
                    end = start + len(rest)
                    if len(rest) < _HEAD or not spelling.startswith(rest) or not _looks_cut(rest, text[end : end + 1]):
                        continue
                parts += (text[position:start], instead)
                position = end
                break
        text = "".join((*parts, text[position:])) if parts else text
        return _BASE64.sub(self._masked_base64, text) if len(text) >= _SHORTEST_BASE64 else text

    def _masked_base64(self, match: re.Match[str]) -> str:
        """A run of Base64 in which one of the secrets stands."""
        run = match.group()
        plain = run.translate(_STANDARD)
        try:
            inner = base64.b64decode(plain[: len(plain) // 4 * 4]).decode("latin-1")
        except ValueError:
            return run
        for found in _STARTS.finditer(inner):
            start = found.start()
            if any(inner.startswith(spelling, start) for spelling, _ in self._by_head.get(inner[start : start + _HEAD], ())):
                return mask(run)
        return run

    # What a trace brings

    def learn_headers(self, fields: Fields) -> None:
        """The secrets of a head."""
        for raw_name, raw_value in fields.raw:
            if (_said.get(raw_name) or _says(raw_name)) == "nothing":
                if b"@" in raw_value:
                    self._learn_urls(raw_value.decode("latin-1"))
                continue
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            lower = name.lower()
            if lower in ("cookie", "set-cookie"):
                for match in _COOKIE.finditer(value if lower == "cookie" else value.partition(";")[0]):
                    if names.looks_random(match.group(2)) or names.member(match.group(1)) != "nothing":
                        self.add(match.group(2).strip())
            elif lower.endswith("authorization"):
                scheme, space, rest = value.strip().partition(" ")
                self.add(rest.strip() if space else scheme)
            elif names.is_header(name, value):
                self.add(value.strip())

    def learn_query(self, query: str) -> None:
        """The secrets of a URL's query, or of a form."""
        for number, (name, value) in enumerate(parameters(query)):
            if number % _EVERY == 0:
                breathe()
            if names.is_parameter(name, value):
                self.add(unquote(value.replace("+", " ")))

    def _learn_urls(self, text: str) -> None:
        for password in passwords_of_urls(text):
            self.add(unquote(password))

    def learn_body(self, body: bytes) -> None:
        """The same of a body as it came, without its content coding."""
        self.learn_text(body[:_MOST_READ].decode("utf-8", "replace"))

    def learn_text(self, text: str) -> None:
        """The secrets of a body, by the names of members and of parameters; it may be cut off."""
        if len(text) > _MOST_READ:
            text = text[:_MOST_READ]
        if "@" in text and ":/" in text:
            self._learn_urls(text)
        lower = text.lower().replace(_NONE, "")
        for hint in _HINTS:
            if hint in lower:
                self._learn_members(text)
                return

    def _learn_members(self, text: str) -> None:
        for number, match in enumerate(_MEMBER.finditer(text)):
            if number % _EVERY == 0:
                breathe()
            name = match[1] or match[3]
            if names.member(name) == "nothing":
                continue
            value = _read(match.group(2)) if match.group(2) is not None else match.group(4)
            if value and names.is_member(name, value):
                self.add(value)
        if "=" in text:
            self.learn_query(text)


_said: dict[bytes, names.Says] = {}  # what the names of header fields say; traffic repeats a few
_MOST_SAID = 2_048


def _says(name: bytes) -> names.Says:
    said = names.header(name.decode("latin-1"))
    if len(name) <= _LONGEST_NAME:
        if len(_said) >= _MOST_SAID:
            _said.clear()
        _said[name] = said
    return said


def _looks_cut(rest: str, after: str) -> bool:
    """Whether the beginning of a secret is all that is left of one. A state may begin with the name of the tool that it is of,
    and a name is no secret."""
    return names.looks_random(rest) if not after else after == "…" and not names.is_readable(rest)


def _read(raw: str) -> str:
    """The content of a JSON string, which may be cut off."""
    if "\\" not in raw:
        return raw
    try:
        read = json.loads(f'"{raw}"')
    except ValueError:
        return raw
    return str(read)


_CURRENT: ContextVar[tuple[KnownSecrets, ...]] = ContextVar("known secrets", default=())


def current() -> tuple[KnownSecrets, ...]:
    """The secrets of the traces that are being followed or told of."""
    return _CURRENT.get()


def know(secret: str | None) -> None:
    """What is being followed has shown a secret by other signs than its name."""
    if secret is not None:
        for known in _CURRENT.get():
            known.add(secret)


class knowing:  # it is used as a function is; each event comes by here, so it is no generator
    """What is masked inside goes by the secrets of these traces, too: `with knowing(exchange.secrets): ...`."""

    __slots__ = ("_known", "_token")

    def __init__(self, *known: KnownSecrets) -> None:
        self._known = known

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self._known)

    def __exit__(self, *exc: object) -> None:
        _CURRENT.reset(self._token)
