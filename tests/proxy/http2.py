"""Both ends of a proxy that speak HTTP/2 over TLS: fields, data, trailers and the way a stream ends, as they come."""

import contextlib
import datetime
import queue
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATIENCE = 20.0
type Fields = Sequence[tuple[bytes, bytes]]
RESET = 2  # INTERNAL_ERROR


@dataclass
class Message:
    """One side of a stream."""

    fields: list[tuple[bytes, bytes]] = field(default_factory=list)
    data: bytes = b""
    trailers: list[tuple[bytes, bytes]] = field(default_factory=list)
    end: str = ""  # ended, reset


@dataclass(frozen=True)
class Reply:
    fields: Fields
    parts: Sequence[bytes] = ()
    trailers: Fields = ()
    reset: bool = False  # in place of an end


class _End:
    """A connection that is read until a stream is over."""

    def __init__(self, stream: ssl.SSLSocket, *, client: bool) -> None:
        self.stream = stream
        config = h2.config.H2Configuration(
            client_side=client, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.connection = h2.connection.H2Connection(config)
        self.connection.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.stream.sendall(self.connection.data_to_send())

    def events(self) -> Iterator[tuple[int, Message]]:
        """Each message that is over, with its stream."""
        messages: dict[int, Message] = {}
        while data := self.stream.recv(65_536):
            for event in self.connection.receive_data(data):
                number: int = getattr(event, "stream_id", 0) or 0
                if isinstance(event, h2.events.RequestReceived | h2.events.ResponseReceived):
                    messages[number] = Message([(bytes(n), bytes(v)) for n, v in event.headers or ()])
                elif isinstance(event, h2.events.TrailersReceived):
                    messages[number].trailers = [(bytes(n), bytes(v)) for n, v in event.headers or ()]
                elif isinstance(event, h2.events.DataReceived):
                    messages[number].data += event.data or b""
                    self.connection.acknowledge_received_data(event.flow_controlled_length or 0, number)
                elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset) and number in messages:
                    messages[number].end = "ended" if isinstance(event, h2.events.StreamEnded) else "reset"
                    self.flush()
                    yield number, messages.pop(number)
            self.flush()


class Server:
    """Answers each stream with the next reply, and keeps what it was sent."""

    def __init__(self, folder: Path) -> None:
        self.replies: queue.Queue[Reply] = queue.Queue()
        self.received: list[Message] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate(folder))
        self._context.set_alpn_protocols(["h2"])
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/mcp"

    def close(self) -> None:
        self.socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, h2.exceptions.H2Error), self._context.wrap_socket(plain, server_side=True) as stream:
            end = _End(stream, client=False)
            for number, message in end.events():
                self.received.append(message)
                self._answer(end, number, self.replies.get(timeout=PATIENCE))

    @staticmethod
    def _answer(end: _End, number: int, reply: Reply) -> None:
        connection, more = end.connection, bool(reply.parts or reply.trailers or reply.reset)
        connection.send_headers(number, list(reply.fields), end_stream=not more)
        for index, part in enumerate(reply.parts):
            last = index + 1 == len(reply.parts) and not reply.trailers and not reply.reset
            connection.send_data(number, part, end_stream=last)
            end.flush()
        if reply.trailers:
            connection.send_headers(number, list(reply.trailers), end_stream=True)
        if reply.reset:
            connection.reset_stream(number, RESET)
        end.flush()


def ask(port: int, fields: Fields, parts: Sequence[bytes], *, through: str = "") -> Message:
    """Send one request; what came back. `through`: the authority that a proxy is asked to connect to."""
    plain: Any = socket.create_connection(("127.0.0.1", port), PATIENCE)
    if through:
        plain.sendall(f"CONNECT {through} HTTP/1.1\r\nHost: {through}\r\n\r\n".encode())
        while not (got := plain.recv(4_096)).endswith(b"\r\n\r\n"):
            assert got
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
        assert stream.selected_alpn_protocol() == "h2"
        end = _End(stream, client=True)
        number = end.connection.get_next_available_stream_id()
        end.connection.send_headers(number, list(fields), end_stream=not parts)
        for index, part in enumerate(parts):
            end.connection.send_data(number, part, end_stream=index + 1 == len(parts))
        end.flush()
        return next(message for _, message in end.events())


def certificate(folder: Path) -> Path:
    """Write a certificate of its own with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path
