"""Recordings: every flow of the file, in the order of time, and a clear word where the file is damaged."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy.io import FlowReader, FlowWriter, tnetstring
from mitmproxy.test import tflow

from mcp_wiretap.proxy import flowfile
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from tests.proxy import flows


def at(start, *, length=0.3, **kwargs):
    """A whole flow that starts at a moment."""
    flow = flows.finished(**kwargs)
    flow.request.timestamp_start, flow.request.timestamp_end = start, start + 0.01
    flow.response.timestamp_start, flow.response.timestamp_end = start + 0.02, start + length
    return flow


def written(path: Path, *some) -> Path:
    with path.open("wb") as file:
        for flow in some:
            FlowWriter(file).add(flow)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.flow"


def test_events_come_in_the_order_of_time_whatever_the_order_of_the_file(path):
    long, short, between = at(10.0, length=9.0), at(12.0), at(11.0)
    recording = Recording(written(path, short, between, long))
    events = list(recording.events())
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert [event.flow for event in events if isinstance(event, RequestSeen)] == [long.id, between.id, short.id]
    assert events[-1].flow == long.id
    assert recording.flow_ids == [short.id, between.id, long.id]
    assert recording.flows == 3 and recording.damage is None


def test_events_of_streams_interleave_with_other_flows(path):
    stream = at(10.0, length=5.0, answer=flows.response(b"data: 1\n\ndata: 2\n\n", flows.SSE))
    stream.metadata["mcp.events"] = [10.5, 13.0]
    events = list(Recording(written(path, at(11.0), stream)).events())
    kinds = [(type(event), event.flow == stream.id) for event in events]
    assert kinds.index((StreamData, True)) < kinds.index((RequestSeen, False))
    assert kinds[-2:] == [(StreamData, True), (ExchangeEnded, True)]


def test_only_flows_that_are_open_are_held(path, monkeypatch):
    many = [at(float(start)) for start in range(50)]
    recording = Recording(written(path, *many))
    held = set()
    most = 0
    read = flowfile.read

    def counting(file, record):
        nonlocal most
        held.add(record.id)
        most = max(most, len(held))
        return read(file, record)

    monkeypatch.setattr(flowfile, "read", counting)
    for event in recording.events():
        if isinstance(event, ExchangeEnded):
            held.discard(event.flow)
    assert most == 1


def test_the_events_can_be_asked_for_again(path):
    recording = Recording(written(path, at(10.0), at(11.0)))
    assert list(recording.events()) and [e.at for e in recording.events()] == [e.at for e in recording.events()]


def test_what_is_read_is_what_mitmproxy_reads(path):
    flow = at(10.0, answer=flows.response(flows.event(flows.result()), flows.SSE))
    flow.metadata.update({"mcp.events": [10.1], "other": {"deep": [1, 2.5, None, True, False, b"x", "é"]}, "mcp.ended": "client"})
    flows.broken(flow, at=11.0)
    written(path, flow)
    with path.open("rb") as file:
        whole = next(iter(FlowReader(file).stream())).get_state()
        record = next(flowfile.records(file.seek(0) or file))
        ours = flowfile.read(file, record)
    for part in ("id", "type", "version", "request", "response", "error"):
        assert ours[part] == _listed(whole[part]), part
    assert [repr(e) for e in events_of(ours, 1000)] == [repr(e) for e in events_of(whole, 1000)]


def _listed(item):
    if isinstance(item, dict):
        return {name: _listed(inner) for name, inner in item.items()}
    return [_listed(inner) for inner in item] if isinstance(item, list | tuple) else item


def test_a_flow_that_was_written_twice_counts_once_as_it_was_last(path):
    flow, other = at(10.0), at(11.0)
    early = flow.get_state()
    flow.response.status_code = 202
    with path.open("wb") as file:
        tnetstring.dump(early, file)
        FlowWriter(file).add(other)
        FlowWriter(file).add(flow)
    recording = Recording(path)
    assert recording.flow_ids == [flow.id, other.id]
    assert [e.status for e in recording.events() if isinstance(e, ResponseStarted)] == [202, 200]


def test_flows_that_are_not_http_are_left_out(path):
    recording = Recording(written(path, tflow.ttcpflow(), at(10.0), tflow.tdnsflow(), tflow.tudpflow()))
    assert recording.flows == 1 and recording.others == 3 and recording.damage is None


def test_an_empty_file_is_a_recording_of_nothing(path):
    path.write_bytes(b"")
    recording = Recording(path)
    assert recording.flows == 0 and recording.damage is None and not list(recording.events())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_that_was_cut_is_read_up_to_the_cut(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "a.flow"
    size = [len(_bytes(flow)) for flow in _TWO]
    written(path, *_TWO)
    cut = data.draw(st.integers(1, sum(size) - 1))
    path.write_bytes(path.read_bytes()[:cut])
    recording = Recording(path)
    assert recording.flows == (0 if cut < size[0] else 1)
    assert (recording.damage is None) == (cut == size[0])
    if recording.damage is not None:
        assert f"byte {cut}" in recording.damage


_TWO = [at(10.0), at(11.0)]


def _bytes(flow):
    out = io.BytesIO()
    FlowWriter(out).add(flow)
    return out.getvalue()


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_flipped_byte_never_raises(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flip") / "a.flow"
    damaged = bytearray(_bytes(_TWO[0]) + _bytes(_TWO[1]))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    recording = Recording(path)
    events = list(recording.events())
    assert {e.flow for e in events} <= set(recording.flow_ids)


@pytest.mark.parametrize("content", [b"hello", b"\x00" * 100, b"12:", b"999999999999:x", b"3:abc,", b"0:~", b"[]"])
def test_what_is_no_recording_is_called_damaged(path, content):
    path.write_bytes(content)
    recording = Recording(path)
    assert recording.flows == 0 and recording.damage


def test_a_member_that_this_mitmproxy_does_not_know_does_no_harm(path):
    state = at(10.0).get_state() | {"invented": 1}
    path.write_bytes(tnetstring.dumps(state))
    recording = Recording(path)
    assert recording.damage is None and len(list(recording.events())) == 3


def test_a_flow_without_what_a_flow_needs_is_left_out_and_said(path):
    state = at(10.0).get_state()
    del state["request"]["host"]
    path.write_bytes(tnetstring.dumps(state) + _bytes(_TWO[1]))
    recording = Recording(path)
    assert {e.flow for e in recording.events()} == {_TWO[1].id}
    assert "host is missing" in recording.damage


def test_files_of_an_older_mitmproxy_are_migrated(path):
    state = at(10.0).get_state()
    state["version"] = 20
    for side in ("client_conn", "server_conn"):
        state[side]["tls_version"] = state[side].get("tls_version")
    path.write_bytes(tnetstring.dumps(state))
    recording = Recording(path)
    assert recording.damage is None and len(list(recording.events())) == 3


def test_files_of_a_future_mitmproxy_are_refused_in_words(path):
    path.write_bytes(tnetstring.dumps(at(10.0).get_state() | {"version": 9_999}))
    assert "flow format version 9999" in Recording(path).damage


def test_a_file_that_is_not_there_is_an_oserror(tmp_path):
    with pytest.raises(OSError):
        Recording(tmp_path / "none.flow")


# HAR


def entry(body='{"jsonrpc": "2.0"}', content=None, status=200, start="2026-11-30T10:00:00.000Z", headers=()):
    content = {"size": 2, "mimeType": "application/json", "text": "{}"} if content is None else content
    return {
        "startedDateTime": start,
        "time": 50,
        "request": {
            "method": "POST",
            "url": "https://mcp.example/mcp",
            "httpVersion": "HTTP/2",
            "headers": [{"name": ":authority", "value": "mcp.example"}, {"name": "Mcp-Method", "value": "tools/list"}],
            "postData": {"mimeType": "application/json", "text": body},
        },
        "response": {
            "status": status,
            "httpVersion": "HTTP/2",
            "headers": [{"name": "content-type", "value": content.get("mimeType", "")}, *headers],
            "content": content,
        },
    }


def har(path, *entries):
    path.write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8-sig")
    return Recording(path)


def test_a_har_is_read_with_ids_by_place(tmp_path):
    recording = har(tmp_path / "a.har", entry(start="2026-11-30T10:00:05Z"), entry())
    assert recording.flow_ids == ["har-0", "har-1"]
    assert [e.flow for e in recording.events() if isinstance(e, RequestSeen)] == ["har-1", "har-0"]


def test_header_fields_of_a_har_are_those_of_the_entry(tmp_path):
    seen = next(iter(har(tmp_path / "a.har", entry()).events()))
    assert list(seen.fields) == [("Mcp-Method", "tools/list")]
    assert (seen.scheme, seen.host, seen.port, seen.target) == ("https", "mcp.example", 443, "/mcp")


def test_text_of_a_har_is_utf8(tmp_path):
    said = '{"jsonrpc": "2.0", "x": "Zoë 世界"}'
    stream = {"size": 9, "mimeType": "text/event-stream", "text": "data: Zoë\n\n"}
    events = list(har(tmp_path / "a.har", entry(said, stream)).events())
    assert events[0].body == said.encode()
    assert next(e for e in events if isinstance(e, StreamData)).data == "data: Zoë\n\n".encode()


def test_a_body_that_a_har_leaves_out_is_not_an_empty_one(tmp_path):
    ended = list(har(tmp_path / "a.har", entry(content={"size": 500, "mimeType": "application/json"})).events())[-1]
    assert ended.body is None


def test_base64_and_undone_codings_of_a_har(tmp_path):
    content = {"size": 2, "mimeType": "application/json", "text": "e30=", "encoding": "base64"}
    coded = [{"name": "Content-Encoding", "value": "gzip"}]
    events = list(har(tmp_path / "a.har", entry(content=content, headers=coded)).events())
    assert events[-1].body == b"{}"
    assert not events[1].fields.has("content-encoding")


def test_a_request_without_response_in_a_har(tmp_path):
    events = list(har(tmp_path / "a.har", entry(status=0)).events())
    assert [type(e) for e in events] == [RequestSeen, ExchangeEnded]
    assert events[1].error == "no response in the HAR"


def test_an_entry_of_a_har_that_is_wrong_is_passed_over_and_said(tmp_path):
    recording = har(tmp_path / "a.har", entry(), {"request": {}}, entry("\ud800"), entry())
    assert recording.flow_ids == ["har-0", "har-3"]
    assert recording.damage.startswith("entry 1 of the HAR cannot be read") and recording.damage.endswith(", nor can 1 more")
    assert len([e for e in recording.events() if isinstance(e, RequestSeen)]) == 2


@pytest.mark.parametrize("text", ["{", '{"log": 1}', "{}", '{"log": {"entries": 5}}', '{"log": {"entries": [5]}}'])
def test_json_that_is_no_har_is_called_damaged(tmp_path, text):
    (tmp_path / "a.har").write_text(text)
    recording = Recording(tmp_path / "a.har")
    assert recording.flows == 0 and recording.damage
