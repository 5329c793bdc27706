"""What a body says in words."""

import pytest

from mcp_wiretap.wire import plain_text


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        ("Bad Request: missing Mcp-Session-Id header\nsecond line", "text/plain", "Bad Request: missing Mcp-Session-Id header"),
        ("\ufeff  \r\n  spaced   out\tline \n", None, "spaced out line"),
        ("<html><head><title>502 Bad Gateway</title></head><body><h1>x</h1>", "text/html", "502 Bad Gateway"),
        ("<!DOCTYPE html><title>Error</title><body><pre>Cannot POST /mcp</pre>", "text/html", "Error: Cannot POST /mcp"),
        ("<title>Mattermost</title><body><h1>Invalid auth code</h1>", "text/html", "Mattermost: Invalid auth code"),
        ("<title>Wiki</title><div id=root></div>", "text/html", "Wiki"),
        ("<p>Not <b>here</b>, <i>sorry</i></p><p>more</p>", "text/html", "Not here, sorry"),
        ("<script>var a = '<p>no</p>';</script><!-- <p>no</p> --><h1>Sign&nbsp;in &amp; go</h1>", None, "Sign in & go"),
        ("<html><style>p {}</style>", "text/html", ""),
        ("<script>no end " + "<p>x</p>" * 3000, "text/html", ""),
        ("<title>no end of it", "text/html", "no end of it"),
        ("<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>No</Message></Error>", "application/xml", "AccessDenied"),
        ("", "text/plain", ""),
        ("a\x00b", "text/plain", ""),
        ("ok", "text/plain; charset=no-such", "ok"),
        ("ok", "text/plain; charset=hex", "ok"),
    ],
)
def test_the_first_words_of_a_text_or_a_page(body, content_type, words):
    assert plain_text.first_words(body.encode(), content_type) == words


def test_the_charset_of_the_answer_is_read():
    assert plain_text.first_words("Zugriff verweigert für".encode("latin-1"), "text/plain; charset=iso-8859-1") == (
        "Zugriff verweigert für"
    )
    assert plain_text.first_words("nicht gefunden".encode("utf-16"), "text/plain") == "nicht gefunden"


@pytest.mark.parametrize("body", [b"x" * (1 << 20), b"<" * (1 << 20), b"<p>" * 400_000, b"<script>" * 100_000, bytes(1 << 20)])
def test_a_long_body_is_read_at_its_beginning_only(body):
    assert len(plain_text.first_words(body, "text/html")) <= plain_text.LONGEST


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"error": "invalid_grant", "error_description": "expired"}, "invalid_grant: expired"),
        ({"error": "invalid_token"}, "invalid_token"),
        ({"error": {"code": 403, "message": "quota"}}, "quota"),
        ({"message": "Forbidden"}, "Forbidden"),
        ({"Message": "User is not authorized", "__type": "x"}, "User is not authorized"),
        ({"statusCode": 404, "error": "Not Found", "message": "Cannot POST /mcp"}, "Not Found: Cannot POST /mcp"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"type": "about:blank", "title": "Forbidden", "detail": "no such tenant"}, "Forbidden: no such tenant"),
        ({"errors": [{"message": "first"}, {"message": "second"}]}, "first"),
        ({"fault": {"faultstring": "Rate limit quota violation"}}, "Rate limit quota violation"),
        ("plain", "plain"),
        ({"Output": {"a": 1}, "Version": "1"}, ""),
        ({"message": 5}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_usual_members_of_a_document_are_read(document, words):
    assert plain_text.json_words(document) == words


def test_a_document_that_is_deep_says_nothing():
    deep = {"message": "m"}
    for _ in range(50):
        deep = {"error": deep}
    assert plain_text.json_words(deep) == ""
