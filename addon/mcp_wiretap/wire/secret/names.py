"""What names say of their values: headers, members of JSON, parameters of URLs and forms, fields of multipart bodies.

The one place where a name is told to be a secret's. Names are read by whole words, in any case and spelling (`DB_PASSWORD`,
`dbPassword`, `com.example/db-password`), and it is the end that counts: `client_secret` is one, `secret_name` is not. Some words
say too little (`key`, `token`, `code`, `auth`, `pin`, `session`): there the value must look like a secret, too.
"""

import re
from functools import lru_cache
from typing import Literal

type Says = Literal["secret", "perhaps", "nothing"]  # perhaps: where the value looks random


def vocabulary(text: str) -> tuple[str, ...]:
    """Words written one after the other."""
    return tuple(text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(vocabulary(text))


SECRET_HEADERS = _words(
    """
    authorization proxy-authorization cookie set-cookie mcp-session-id x-api-key api-key x-auth-token dpop
    """
)
SECRET_MEMBERS = _words(
    """
    requestState access_token refresh_token id_token client_secret client_assertion assertion subject_token actor_token
    code code_verifier device_code password registration_access_token
    """
)
ENTERED = frozenset({"arguments", "structuredContent", "inputResponses"})  # what people and models entered or got

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST = 200  # characters of a name that are read
_SECRET = _words(
    """
    password passwords passwd passphrase passcode pwd secret apikey credential credentials authorization ssn otp totp
    bearer cookie cookies jwt dpop accesstoken refreshtoken idtoken authtoken clientsecret secretkey privatekey sshkey
    connectionstring requeststate
    """
)
_ENDINGS = ("password", "passwd", "passphrase", "apikey")  # of words written together: PGPASSWORD
_PAIRS = _words(
    """
    request-state code-verifier device-code client-assertion jwt-assertion subject-assertion connection-string
    conn-string token-hint set-cookie
    """
)
_SECRET_KEYS = _words(
    """
    api ssh private secret access subscription signing encryption decryption master auth hmac aes rsa pgp gpg
    """
)
_OTHER_KEYS = _words(
    """
    primary foreign public cache sort partition row index unique composite natural map lookup group translation message
    object file progress idempotency routing setting feature issue project item surrogate websocket dedup deduplication
    """
)
_SECRET_TOKENS = _words(
    """
    access refresh id auth authentication bearer session security api csrf xsrf registration bot secret personal private
    oauth subject actor jwt login client identity reset verification vault
    """
)
_COUNTING = frozenset({"max", "count", "limit", "page", "next", "cursor", "num", "budget"})
_OTHER_TOKENS = _COUNTING | _words(
    """
    min counts number total prev previous progress continuation sync input output prompt completion cached reasoning used
    usage remaining per start end eos bos pad stop text
    """
)
_CODES = _words(
    """
    authorization auth user verification security access login mfa 2fa recovery backup pairing
    """
)
_PERHAPS = _words(
    """
    key token code auth pin session assertion signature sig sid sessid sessionid jsessionid
    """
)
# Words after a secret's name that leave it one: `password2`, `secret_value`, `new_password_confirmation`.
_TRAILING = _words(
    """
    value text plain plaintext raw header confirm confirmation repeat again hash b64 base64
    """
)
_IN_HEADERS = frozenset({"key", "token", "session", "signature", "sig", "auth", "assertion", "sid"})  # say enough there
_NO_SECRET_HEADERS = ("mcp-", "sec-", "access-control-")
_PARAMETER_HEADER = "mcp-param-"


def words(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return [word.lower() for word in _PARTS.findall(name[-_LONGEST:])]


@lru_cache(maxsize=8_192)
def member(name: str) -> Says:
    """What the name of a member, an argument or a variable says of its value."""
    found = words(name)
    while len(found) > 1 and (found[-1] in _TRAILING or found[-1].isdigit()):
        found.pop()
    if not found:
        return "nothing"
    last = found[-1]
    before = found[-2] if len(found) > 1 else ""
    if last in _SECRET or last.endswith(_ENDINGS) or f"{before}-{last}" in _PAIRS:
        return "secret"
    if last == "key":
        return "secret" if before in _SECRET_KEYS else "nothing" if before in _OTHER_KEYS else "perhaps"
    if last == "token":
        return "secret" if before in _SECRET_TOKENS else "nothing" if not _OTHER_TOKENS.isdisjoint(found) else "perhaps"
    if last == "code":
        return "perhaps" if not before or before in _CODES else "nothing"
    if last == "id":
        return "perhaps" if before == "session" else "nothing"
    return "perhaps" if last in _PERHAPS else "nothing"


@lru_cache(maxsize=2_048)
def header(name: str) -> Says:
    """What the name of a header field says of its value."""
    lower = name.lower()
    if lower in SECRET_HEADERS:
        return "secret"
    if lower.startswith(_PARAMETER_HEADER):  # the copy of an argument
        own = name[len(_PARAMETER_HEADER) :]
        return "secret" if looks_secret(own) else member(own)
    if lower.startswith(_NO_SECRET_HEADERS):
        return "nothing"
    said = member(name)
    if said == "perhaps":
        found = [word for word in words(name) if not word.isdigit()]
        if found[-1] in _IN_HEADERS or found[-2:] == ["session", "id"]:
            return "secret"
    return said


_PARAMETERS = _words(
    """
    session_id sessionid x-amz-signature x-amz-security-token id_token_hint subscription-key
    """
)
_PERHAPS_PARAMETERS = frozenset({"state", "token", "code", "assertion", "sig", "signature", "auth"})


@lru_cache(maxsize=4_096)
def parameter(name: str) -> Says:
    """What the name of a parameter of a URL or a form, or of a multipart field, says of its value."""
    lower = name.lower()
    if lower in _PARAMETERS:
        return "secret"
    if lower == "state":
        return "perhaps"
    return member(name)


@lru_cache(maxsize=1_024)
def of_headers(name: str) -> bool:
    """Whether a member is a set of header fields: `headers`, `requestHeaders`."""
    return words(name)[-1:] == ["headers"]


def is_member(name: str, value: str, entered: bool = False) -> bool:
    """Whether the text of a member is a secret. `entered`: it is of what somebody entered, where more names are a secret's."""
    said = member(name)
    if said == "secret":
        return True
    if said == "perhaps":
        if looks_random(value) or (words(name)[-1] == "pin" and _PIN.fullmatch(value) is not None):
            return True
        return entered and name.lower() not in _PERHAPS and looks_secret(name)
    return False


def is_number_member(name: str, value: float) -> bool:
    """Whether a number is a secret: a password, a PIN, a one-time password of digits."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1_000 <= abs(value) < 10**18:
        return False
    found = words(name)
    return bool(found) and (found[-1] in _OF_DIGITS or found[-1].endswith(_ENDINGS))


def is_header(name: str, value: str) -> bool:
    """Whether a header field is a secret as a whole. (What is secret in another's value, `secrets_in` finds.)"""
    said = header(name)
    return said == "secret" or (said == "perhaps" and looks_random(value))


def is_parameter(name: str, value: str) -> bool:
    """Whether the value of a parameter (as it is written) or of a multipart field is a secret."""
    said = parameter(name)
    if said == "secret":
        return bool(value)
    if said != "perhaps":
        return False
    if name.lower() in _PERHAPS_PARAMETERS:
        return len(value) >= 8 and not is_readable(value)
    return looks_random(value) or (len(value) >= 16 and not is_readable(value)) or _is_pin(name, value)


_OF_DIGITS = frozenset({"pin", "otp", "totp", "pwd", "passcode", "ssn"})
_PIN = re.compile(r"[0-9]{3,12}")
RANDOM = r"(?=[^0-9]*[0-9])[A-Za-z0-9._~+/=:-]{12,}"
_RANDOM = re.compile(RANDOM)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_READABLE = re.compile(r"[A-Z]?[a-z]+[0-9]{0,3}|[A-Z]+[0-9]{0,3}|[0-9]{1,6}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?")


def _is_pin(name: str, value: str) -> bool:
    return words(name)[-1:] == ["pin"] and _PIN.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Whether a text may be a code or a token: a dozen characters without a space, digits among them, and not made of words,
    numbers and dates (`reports/2024/q3.pdf`)."""
    return _RANDOM.fullmatch(value) is not None and not is_readable(value)


def is_readable(value: str) -> bool:
    """Whether a text is made of words, numbers and dates."""
    if _DATE.fullmatch(value):
        return True
    return all(_READABLE.fullmatch(part) for part in _SEPARATORS.split(value) if part)


_SECRET_WORDS = frozenset({"password", "passwd", "secret", "apikey", "credential", "credentials", "authorization", "ssn"})


@lru_cache(maxsize=1_024)
def looks_secret(name: str) -> bool:
    """Whether a parameter's name says that its value is a secret (PAR030): by whole words, not by parts of words."""
    found = words(name)
    for index, word in enumerate(found):
        beside = found[max(index - 1, 0) : index] + found[index + 1 : index + 2]
        if word in _SECRET_WORDS or (word == "api" and found[index + 1 : index + 2] == ["key"]):
            return True
        if word == "token" and not _COUNTING & set(beside):
            return True
    return member(name) == "secret"
