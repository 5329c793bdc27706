"""Messages that were cut off have their secrets redacted and masked like whole ones, wherever the cut is."""

import base64
import gzip
import json
import zlib

import pytest

from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.wire.secret import concealed

SECRET = "Zq33cutState0123456789abcdefX7"
DOCUMENT = f'{{"jsonrpc":"2.0","id":1,"result":{{"requestState":"{SECRET}","n":[1,2],"resultType":"input_required"}}}}'
STATE = DOCUMENT.index(SECRET)


def _redacted(data: bytes, *known: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    redactor = Redactor()
    states = [{"type": "http", "request": {"headers": headers, "content": content}, "metadata": {}} for content in (*known, data)]
    for state in states:
        redactor.collect(state)
    content = redactor.redact(states[-1])["request"]["content"]
    assert isinstance(content, bytes)
    return content


@pytest.mark.parametrize("end", range(STATE + 4, len(DOCUMENT) + 1))
def test_json_that_is_cut_anywhere(end: int) -> None:
    data = DOCUMENT[:end]
    made = _redacted(data.encode())
    assert b"Zq33" not in made and made.startswith(data[: STATE - 1].encode())
    assert "Zq33" not in concealed(data)


@pytest.mark.parametrize(
    "data",
    [
        'data: {"requestState":"Zq33cutSta',
        'event: message\ndata: {"a":1}\n\ndata: {"requestState":"Zq33cutSta',
        '{"password":"Zq33cut\\',
        '{"password":"Zq33cut\\u00',
        '{"password":"Zq33cutü',
        '{"text":"{\\"access_token\\": \\"Zq33cut',
        '{"headers":{"X-Api-Key":"Zq33cut',
        '[{"name":"X-Api-Key","value":"Zq33cut',
        '{"passwords":["abc","Zq33cut',
        "grant_type=x&password=Zq33cut",
        "grant_type=x&client_secret=Zq33cut%4",
        "a=b&code=Zq33cutState01234",
        "postgres://app:Zq33cut@db",
        '--b\r\ncontent-disposition: form-data; name="password"\r\n\r\nZq33cut',
        "-----BEGIN PRIVATE KEY-----\nZq33cutMIIEabcdefgh12345\nabc",
    ],
)
def test_other_texts_that_are_cut(data: str) -> None:
    assert b"Zq33" not in _redacted(data.encode())
    assert b"Zq33" not in _redacted(data.encode()[:-1])
    if "headers" not in data and "name" not in data and "passwords" not in data:
        assert "Zq33" not in concealed(data) and "Zq33" not in concealed(data[:-1])


def test_base64_that_is_cut() -> None:
    coded = base64.b64encode(DOCUMENT.encode())
    for end in range(4 * (STATE + 12) // 3, len(coded)):
        made = _redacted(coded[:end])
        padded = made[: len(made) // 4 * 4]
        assert b"Zq33cut" not in base64.b64decode(padded), end


def test_gzip_that_is_cut_is_decoded_as_far_as_it_goes() -> None:
    packed = gzip.compress((DOCUMENT + " " + json.dumps(list(range(2_000)))).encode())[:-400]
    made = _redacted(packed, headers=((b"Content-Encoding", b"gzip"),))
    assert b"Zq33" not in zlib.decompressobj(31).decompress(made)


def test_a_known_secret_that_is_cut_with_the_text_that_repeats_it() -> None:
    known = json.dumps({"requestState": SECRET}).encode()
    assert b"Zq33" not in _redacted(b'{"error":{"message":"no such state: ' + SECRET[:20].encode(), known)


def test_a_name_without_a_value_stays() -> None:
    assert _redacted(b'{"city":"Rome","pass') == b'{"city":"Rome","pass'
    assert _redacted(b'{"city":"Rome","password":') == b'{"city":"Rome","password":'
    assert _redacted(b'{"password":"Zq33cutS","cit').endswith(b'","cit')
