"""Content codings undone on a copy: in any portions, bounded, never raising."""

import gzip
import random
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.coding import Decoder, decode_body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEGA = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=4)),
    "zstd": ("zstd", zstd.compress),
    "gzip in gzip": ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    "br in zlib": ("br,deflate", lambda data: zlib.compress(brotli.compress(data, quality=4))),
    "deflate in zstd": ("deflate , identity, zstd", lambda data: zstd.compress(zlib.compress(data))),
}
NOISE = random.Random(1).randbytes(1_000)
BODIES = {
    "nothing": b"",
    "one byte": b"x",
    "text": b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    "zeros": bytes(300_000),
    "repeats": NOISE * 300,
    "noise": random.Random(2).randbytes(200_000),
}
all_codings = pytest.mark.parametrize(("name", "encode"), CODINGS.values(), ids=CODINGS)


def in_chunks(data: bytes, name: str, size: int, most: int = 8 * MEGA) -> tuple[bytes, str | None]:
    decoder = Decoder(name, most)
    out = b"".join(decoder.feed(data[i : i + size]) for i in range(0, len(data), size)) + decoder.finish()
    return out, decoder.problem


@all_codings
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_comes_out_as_it_went_in(name: str, encode: Callable[[bytes], bytes], body: bytes) -> None:
    encoded = encode(body)
    assert decode_body(encoded, name, 8 * MEGA) == (body, None)
    for size in (1, 7, 4_095, 4_096, 4_097) if len(encoded) < 20_000 else (1_000, 70_000):
        assert in_chunks(encoded, name, size) == (body, None)


@given(st.binary(max_size=200), st.sampled_from(sorted(CODINGS)), st.lists(st.integers(0, 300), max_size=5))
def test_chunks_carry_no_meaning(body: bytes, coding: str, cuts: list[int]) -> None:
    name, encode = CODINGS[coding]
    encoded = encode(body)
    ends = [*sorted(min(cut, len(encoded)) for cut in cuts), len(encoded)]
    decoder = Decoder(name, MEGA)
    out = b"".join(decoder.feed(encoded[a:b]) for a, b in zip([0, *ends], ends, strict=False))
    decoder.finish()
    assert (out, decoder.problem) == (body, None)


def zlib_flushed(wbits: int) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(b"data: a\n\n") + compressor.flush(zlib.Z_SYNC_FLUSH)


def br_flushed() -> bytes:
    compressor = brotli.Compressor()
    return compressor.process(b"data: a\n\n") + compressor.flush()


@pytest.mark.parametrize(
    ("name", "flushed"),
    [
        ("gzip", zlib_flushed(31)),
        ("deflate", zlib_flushed(15)),
        ("deflate", zlib_flushed(-15)),
        ("br", br_flushed()),
        ("zstd", zstd.ZstdCompressor().compress(b"data: a\n\n", zstd.ZstdCompressor.FLUSH_BLOCK)),
    ],
)
def test_what_a_server_flushed_comes_out_at_once(name: str, flushed: bytes) -> None:
    assert Decoder(name, MEGA).feed(flushed) == b"data: a\n\n"


@pytest.mark.parametrize("name", [None, "", "identity", " Identity , ", ","])
def test_no_coding_leaves_a_body_as_it_is(name: str | None) -> None:
    assert decode_body(b"abc", name, 10) == (b"abc", None)
    assert decode_body(b"abc", name, 2) == (b"ab", "decodes to more than the limit")


@pytest.mark.parametrize("name", ["compress", "aws-chunked", "gzip, utf-8", "utf-8, gzip", "x" * 1_000, "gzip;q=1"])
def test_an_unknown_coding_is_named_and_nothing_comes_out(name: str) -> None:
    decoder = Decoder(name, 100)
    assert decoder.problem is not None and "unknown coding" in decoder.problem and len(decoder.problem) < 100
    assert decoder.feed(gzip.compress(b"abc")) == b""
    assert decoder.dropped == len(gzip.compress(b"abc"))


def test_many_stacked_codings_are_not_tried() -> None:
    assert decode_body(b"abc", ", ".join(["gzip"] * 9), 10) == (b"", "9 codings stacked")
    body = b"abc"
    for _ in range(8):
        body = gzip.compress(body)
    assert decode_body(body, ", ".join(["gzip"] * 8), 100) == (b"abc", None)


@all_codings
def test_a_body_cut_short_says_so_and_keeps_what_there_was(name: str, encode: Callable[[bytes], bytes]) -> None:
    encoded = encode(NOISE * 10)
    out, problem = decode_body(encoded[: len(encoded) * 9 // 10], name, MEGA)
    assert problem == "cut short"
    assert (NOISE * 10).startswith(out)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_members_follow_each_other(coding: str) -> None:
    name, encode = CODINGS[coding]
    first, second = encode(b"first "), encode(b"second")
    assert decode_body(first + second, name, MEGA) == (b"first second", None)
    assert in_chunks(first + second, name, 1) == (b"first second", None)
    decoder = Decoder(name, MEGA)
    assert decoder.feed(first) + decoder.feed(second) == b"first second"


def test_a_gzip_member_may_be_padded_with_zeros() -> None:
    body = gzip.compress(b"a") + bytes(10_000)
    assert decode_body(body, "gzip", MEGA) == (b"a", None)
    assert in_chunks(body, "gzip", 3) == (b"a", None)
    assert decode_body(body + gzip.compress(b"b"), "gzip", MEGA) == (b"ab", None)


def test_what_follows_a_deflated_body_is_no_part_of_it_and_is_not_kept() -> None:
    decoder = Decoder("deflate", MEGA)
    assert decoder.feed(zlib.compress(b"a")) == b"a"
    tracemalloc.start()
    for _ in range(1_000):
        assert decoder.feed(b"x" * 4_096) == b""
    assert tracemalloc.get_traced_memory()[0] < 100_000
    tracemalloc.stop()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate", "br", "zstd", "gzip in gzip"])
def test_broken_data_keeps_what_came_before_it(coding: str) -> None:
    name, encode = CODINGS[coding]
    body = BODIES["noise"]
    encoded = bytearray(encode(body))
    encoded[150_000:150_100] = b"\xff" * 100
    for out, problem in (decode_body(bytes(encoded), name, MEGA), in_chunks(bytes(encoded), name, 999)):
        if problem is not None:  # a coding without checksum may not notice
            assert problem.startswith("broken data") or problem == "cut short"
            assert len(out) > 60_000
        assert out[:60_000] == body[:60_000]


def test_nothing_comes_out_after_a_problem() -> None:
    decoder = Decoder("gzip", MEGA)
    assert decoder.feed(b"no gzip at all") == b""
    assert decoder.problem is not None
    assert decoder.feed(gzip.compress(b"a")) == b""
    assert decoder.dropped == len(gzip.compress(b"a"))
    problem = decoder.problem
    decoder.finish()
    assert decoder.problem == problem


@given(st.binary(max_size=400), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, deflate"]))
def test_no_bytes_make_decoding_fail(body: bytes, name: str) -> None:
    decode_body(body, name, 10_000)
    in_chunks(body, name, 1, 10_000)


@given(st.binary(max_size=300), st.sampled_from(sorted(CODINGS)), st.data())
def test_no_damage_makes_decoding_fail(body: bytes, coding: str, draw: st.DataObject) -> None:
    name, encode = CODINGS[coding]
    encoded = bytearray(encode(body))
    for _ in range(draw.draw(st.integers(1, 3))):
        encoded[draw.draw(st.integers(0, len(encoded) - 1))] = draw.draw(st.integers(0, 255))
    out, _ = decode_body(bytes(encoded), name, 10_000)
    assert len(out) <= 10_000


BOMB = bytes(64 * MEGA)
BOMBS = {
    "gzip": ("gzip", lambda: gzip.compress(BOMB, 1)),
    "deflate": ("deflate", lambda: zlib.compress(BOMB, 1)),
    "br": ("br", lambda: brotli.compress(BOMB, quality=1)),
    "zstd": ("zstd", lambda: zstd.compress(BOMB)),
    "gzip in gzip": ("gzip, gzip", lambda: gzip.compress(gzip.compress(BOMB, 1))),
    "many members": ("gzip", lambda: gzip.compress(bytes(10_000)) * 20_000),
}


@pytest.mark.parametrize(("name", "bomb"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_stopped_at_the_limit(name: str, bomb: Callable[[], bytes]) -> None:
    body = bomb()
    started = time.process_time()
    tracemalloc.start()
    out, problem = decode_body(body, name, MEGA)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(out), problem) == (MEGA, "decodes to more than the limit")
    assert peak < 5 * MEGA
    assert time.process_time() - started < 2


def test_a_bomb_between_two_codings_is_stopped_too() -> None:
    """The inner gzip is 3 MB of empty members: nothing comes out of it, ever."""
    inner = gzip.compress(b"") * (3 * MEGA // len(gzip.compress(b"")))
    started = time.process_time()
    assert decode_body(gzip.compress(inner), "gzip, gzip", MEGA) == (b"", "decodes to more than the limit")
    assert time.process_time() - started < 2


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_of_just_the_limit_is_whole(coding: str) -> None:
    name, encode = CODINGS[coding]
    for body in (bytes(200_000), BODIES["noise"]):
        assert decode_body(encode(body), name, len(body)) == (body, None)
        assert decode_body(encode(body), name, len(body) - 1)[1] == "decodes to more than the limit"


def test_a_zstd_frame_may_not_ask_for_gigabytes() -> None:
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    compressor = zstd.ZstdCompressor(options=options)
    body = compressor.compress(bytes(1_000)) + compressor.flush()
    out, problem = decode_body(body, "zstd", MEGA)
    assert out == b"" and problem is not None and problem.startswith("broken data")
