"""Clients of old that offer compression of records: it must be had where `tls-compression allow` stands, and nowhere else."""

from nassl.legacy_ssl_client import LegacySslClient
from nassl.ssl_client import OpenSslVerifyEnum, OpenSslVersionEnum

from finding import Finding, tried
from proxy import BODY, NAME, Terse

HOW = "a client of OpenSSL 1.0.2"


class Counted:
    """A socket that counts what comes, in place of the one that the client reads from."""

    def __init__(self, io):
        self.io = io
        self.received = 0

    def recv(self, count: int) -> bytes:
        got = self.io.recv(count)
        self.received += len(got)
        return got

    def send(self, content: bytes) -> int:
        return self.io.send(content)

    def close(self) -> None:
        self.io.close()


def rows(terse: Terse) -> list[Finding]:
    wanted = {
        "plain": ("records of a plain line", False),
        "detect": ("records with 'tls-compression detect'", False),
        "allow": ("records with 'tls-compression allow'", True),
    }
    return [tried(what, HOW, lambda name=name, on=on: look(terse, name, on)) for name, (what, on) in wanted.items()]


def look(terse: Terse, name: str, wanted: bool) -> tuple[str, str]:
    method, received = fetch(terse, name)
    if bool(method) != wanted:
        return (f"compressed by {method}" if method else "not compressed"), ""
    # The handshake's certificates are in it, too.
    is_short = received < len(BODY) / 2
    if is_short != wanted:
        return f"{received} bytes for {len(BODY)}", ""
    return "", f"{'compressed, ' if wanted else ''}{received} bytes for {len(BODY)}"


def fetch(terse: Terse, name: str) -> tuple[str | None, int]:
    """How records of a connection are compressed, and the bytes that came for a body; two requests, since a coder remembers."""
    counted = Counted(terse.connect(name))
    client = LegacySslClient(underlying_socket=counted, ssl_version=OpenSslVersionEnum.TLSV1_2, ssl_verify=OpenSslVerifyEnum.NONE)
    client.set_tlsext_host_name(NAME)
    client.do_handshake()
    before = 0
    for _ in range(2):
        before = counted.received
        client.write(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        got = b""
        while len(got.partition(b"\r\n\r\n")[2]) < len(BODY):
            got += client.read(65536)
        if got.partition(b"\r\n\r\n")[2].decode() != BODY:
            raise RuntimeError("another body")
    received = counted.received - before
    method = client.get_current_compression_method()
    client.shutdown()
    return method, received
