"""Hellos made by hand, and what a server says to them: what no library would send (RFC 5246, RFC 8446)."""

import os
import socket
import struct
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

TLS12, TLS13 = 0x0303, 0x0304
ALERT, HANDSHAKE = 21, 22
SERVER_HELLO, KEY_EXCHANGE, HELLO_DONE = 2, 12, 14
# Extensions.
NAME, GROUPS, POINTS, SIGNATURES, HEARTBEAT, MASTER, TICKET, VERSIONS, SHARE, RENEGOTIATION = (
    0, 10, 11, 13, 15, 23, 35, 43, 51, 0xFF01,
)  # fmt: skip
P256, X25519 = 23, 29
GREASE = 0x8A8A

# Suites that are good, of TLS 1.2: ECDHE with RSA and ECDSA.
GOOD = (0xC02F, 0xC02B, 0xC030, 0xC02C)
GOOD_TLS13 = (0x1302, 0x1301)


@dataclass
class Answer:
    """What a server said, as far as it is not encrypted."""

    alert: int | None = None
    version: int | None = None
    suite: int | None = None
    random: bytes = b""
    session: bytes = b""
    compression: int | None = None
    extensions: dict[int, bytes] = field(default_factory=dict)
    messages: dict[int, bytes] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return self.suite is None


def vector(size: int, content: bytes) -> bytes:
    return len(content).to_bytes(size, "big") + content


def numbers(values) -> bytes:
    return b"".join(struct.pack(">H", value) for value in values)


def usual(name: str) -> dict[int, bytes]:
    """The extensions of a hello of TLS 1.2."""
    signatures = (0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601)
    return {
        NAME: vector(2, b"\x00" + vector(2, name.encode())),
        GROUPS: vector(2, numbers((X25519, P256, 24))),
        POINTS: b"\x01\x00",
        SIGNATURES: vector(2, numbers(signatures)),
        MASTER: b"",
        TICKET: b"",
        RENEGOTIATION: b"\x00",
    }


def newest(name: str, share: tuple[int, bytes] | None = None) -> dict[int, bytes]:
    """The extensions of a hello of TLS 1.3."""
    if share is None:
        key = x25519.X25519PrivateKey.generate().public_key()
        share = (X25519, key.public_bytes(Encoding.Raw, PublicFormat.Raw))
    group, point = share
    sent = vector(2, numbers([group]) + vector(2, point))
    return usual(name) | {VERSIONS: vector(1, numbers([TLS13, TLS12])), SHARE: sent}


def hello(suites, extensions, version: int = TLS12, session: bytes = b"", compression: bytes = b"\x00") -> bytes:
    body = struct.pack(">H", version) + os.urandom(32) + vector(1, session) + vector(2, numbers(suites)) + vector(1, compression)
    body += vector(2, b"".join(numbers([kind]) + vector(2, content) for kind, content in extensions.items()))
    message = b"\x01" + vector(3, body)
    return struct.pack(">BH", HANDSHAKE, 0x0301) + vector(2, message)


def ask(io: socket.socket, sent: bytes) -> Answer:
    """Sends a hello and reads what comes, to the end of what is not encrypted."""
    answer, messages = Answer(), b""
    with io:
        io.sendall(sent)
        while True:
            head = exactly(io, 5)
            if head is None:
                return answer
            kind, length = head[0], int.from_bytes(head[3:], "big")
            content = exactly(io, length)
            if content is None:
                return answer
            if kind == ALERT:
                answer.alert = content[1]
                return answer
            if kind != HANDSHAKE:
                # Encrypted from here on.
                return answer
            messages += content
            while len(messages) >= 4 and len(messages) >= 4 + int.from_bytes(messages[1:4], "big"):
                end = 4 + int.from_bytes(messages[1:4], "big")
                message, messages = messages[:end], messages[end:]
                take(answer, message[0], message[4:])
            if HELLO_DONE in answer.messages or VERSIONS in answer.extensions:
                return answer


def exactly(io: socket.socket, count: int) -> bytes | None:
    got = b""
    while len(got) < count:
        try:
            more = io.recv(count - len(got))
        except ConnectionError:
            return None
        if not more:
            return None
        got += more
    return got


def take(answer: Answer, kind: int, body: bytes) -> None:
    answer.messages[kind] = body
    if kind != SERVER_HELLO:
        return
    answer.version = int.from_bytes(body[:2], "big")
    answer.random = body[2:34]
    at = 35 + body[34]
    answer.session = body[35:at]
    answer.suite = int.from_bytes(body[at : at + 2], "big")
    answer.compression = body[at + 2]
    rest = body[at + 5 :]
    while rest:
        extension, length = struct.unpack(">HH", rest[:4])
        answer.extensions[extension] = rest[4 : 4 + length]
        rest = rest[4 + length :]
    if VERSIONS in answer.extensions:
        answer.version = int.from_bytes(answer.extensions[VERSIONS], "big")
