"""Texts that should be opaque."""

import base64
import hashlib
import json
import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.opaque import LONGEST, open_

DATA = json.dumps({"user": "ada", "step": 2}).encode()
TAG = hashlib.sha256(b"key").digest()


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (DATA.decode(), "JSON"),
        (b64(DATA), "Base64 of JSON"),
        (base64.b64encode(DATA).decode(), "Base64 of JSON"),
        (b64(zlib.compress(DATA)), "Base64 of zlib of JSON"),
        (DATA.hex(), "hexadecimal of JSON"),
        (b64(b64(DATA).encode()), "Base64 of Base64 of JSON"),
        ("%7B%22user%22%3A%22ada%22%2C%22step%22%3A2%7D", "percent-encoded JSON"),
    ],
)
def test_what_anybody_can_read_is_told_with_its_members(text: str, form: str) -> None:
    found = open_(text)
    assert found is not None
    assert (found.form, found.members) == (form, ("user", "step"))


def test_readable_text_needs_some_structure() -> None:
    found = open_(b64(b"user=ada;step=2"))
    assert found is not None and found.form == "Base64 of text"
    assert open_(b64(b"550e8400-e29b-41d4-a716-446655440000")) is None


@pytest.mark.parametrize(
    "text",
    [
        b64(DATA + TAG),
        b64(TAG + DATA),
        b64(DATA) + "." + b64(TAG),
        b64(DATA) + "--" + TAG.hex(),
        b64(DATA + b"." + TAG.hex().encode()),
        b64(json.dumps({"user": "ada", "sig": "x"}).encode()),
        b64(os.urandom(120)),
        TAG.hex(),
        "550e8400-e29b-41d4-a716-446655440000",
        "pay:step2:17",
        "x",
        "",
    ],
)
def test_what_is_signed_sealed_or_a_handle_is_left_alone(text: str) -> None:
    assert open_(text) is None


def test_a_bomb_is_not_blown_up() -> None:
    assert open_(b64(zlib.compress(b"[" * 50_000_000))) is None
    assert open_("a" * (LONGEST + 1)) is None


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    open_(text)
