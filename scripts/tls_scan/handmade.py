"""Checks as testssl.sh makes them, where sslyze has none: hellos that no library would send, and what is said to them."""

import re
import ssl

from nassl.ssl_client import OpenSslVerifyEnum, OpenSslVersionEnum, SslClient

import hello
from finding import Finding, tried
from hello import GOOD, GOOD_TLS13, GREASE, TLS12, TLS13, Answer
from proxy import NAME, Terse

HOW = "a hello by hand"

# What no server should take, one hello each: RFC 5246 appendix A.5 and its successors.
CLASSES = {
    "export ciphers (FREAK, LOGJAM)": (0x0003, 0x0006, 0x0008, 0x000B, 0x000E, 0x0011, 0x0014, 0x0017, 0x0019, *range(0x0026, 0x002C), *range(0x0060, 0x0066)),
    "ciphers without encryption": (0x0001, 0x0002, 0x002C, 0x002D, 0x002E, 0x003B, 0xC001, 0xC006, 0xC00B, 0xC010),
    "ciphers without certificate": (0x0018, 0x001A, 0x001B, 0x0034, 0x003A, 0x006C, 0x006D, 0x00A6, 0x00A7, *range(0xC015, 0xC01A)),
    "RC4 (BAR MITZVAH)": (0x0004, 0x0005, 0xC002, 0xC007, 0xC00C, 0xC011),
    "blocks of 64 bits (SWEET32)": (0x0007, 0x0009, 0x000A, 0x0012, 0x0013, 0x0015, 0x0016, 0xC003, 0xC008, 0xC00D, 0xC012),
    "CBC (LUCKY13, BEAST)": (0x002F, 0x0033, 0x0035, 0x0039, 0x003C, 0x003D, 0x0041, 0x0067, 0x006B, 0x0084, 0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028),
    "keys by RSA (no forward secrecy)": (0x002F, 0x0035, 0x003C, 0x003D, 0x009C, 0x009D, 0xC09C, 0xC09D),
}  # fmt: skip
FINITE = (0x009E, 0x009F, 0xCCAA, 0x0033, 0x0039, 0x0067, 0x006B)
LEAST_PRIME_BITS = 2048
ILLEGAL_PARAMETER = 47
# RFC 8446 section 4.1.3.
SENTINEL = b"DOWNGRD\x01"


class Checks:
    def __init__(self, terse: Terse, name: str):
        self.terse = terse
        self.name = name

    def all(self) -> list[Finding]:
        rows = [tried(what, HOW, lambda suites=suites: self.refuses(suites)) for what, suites in CLASSES.items()]
        looks = {
            "length of Diffie-Hellman's prime (LOGJAM)": self.prime,
            "order of ciphers": self.order,
            "signatures with SHA-1 and MD5 (SLOTH)": self.signatures,
            "downgrade sentinel": self.sentinel,
            "unknown versions, ciphers, groups (GREASE)": self.tolerance,
            "heartbeats": self.heartbeat,
            "compression offered with TLS 1.3": self.compression_tls13,
            "points off the curve, points of no order": self.points,
            "ticketbleed": self.ticketbleed,
        }
        rows += [tried(what, HOW, look) for what, look in looks.items()]
        rows.append(tried("end of the connection is said", "a client of Python's", self.close_notify))
        rows.append(tried("BREACH: bodies are compressed where a rule says so", "a client of Python's", self.breach))
        return rows

    def ask(self, sent: bytes) -> Answer:
        return hello.ask(self.terse.connect(self.name), sent)

    def refuses(self, suites) -> tuple[str, str]:
        answer = self.ask(hello.hello(suites, hello.usual(NAME)))
        return ("" if answer.refused else f"takes {answer.suite:04x}"), ""

    def prime(self) -> tuple[str, str]:
        answer = self.ask(hello.hello(FINITE, hello.usual(NAME)))
        if answer.refused:
            return "", "not taken"
        exchange = answer.messages[hello.KEY_EXCHANGE]
        bits = int.from_bytes(exchange[2 : 2 + int.from_bytes(exchange[:2], "big")], "big").bit_length()
        return (f"{bits} bits" if bits < LEAST_PRIME_BITS else ""), f"{bits} bits"

    def order(self) -> tuple[str, str]:
        chosen = []
        for suites, extensions in ((GOOD, hello.usual(NAME)), (GOOD_TLS13, hello.newest(NAME))):
            both = {self.ask(hello.hello(order, extensions)).suite for order in (suites, suites[::-1])}
            if len(both) != 1 or None in both:
                return "the client's", ""
            chosen += [f"{suite:04x}" for suite in both]
        return "", "the server's"

    def signatures(self) -> tuple[str, str]:
        old = hello.vector(2, hello.numbers((0x0201, 0x0203, 0x0101)))
        answer = self.ask(hello.hello(GOOD, hello.usual(NAME) | {hello.SIGNATURES: old}))
        return ("" if answer.refused else "made"), ""

    def sentinel(self) -> tuple[str, str]:
        answer = self.ask(hello.hello(GOOD, hello.usual(NAME)))
        return ("" if answer.random.endswith(SENTINEL) else "missing"), ""

    def tolerance(self) -> tuple[str, str]:
        newer = self.ask(hello.hello(GOOD, hello.usual(NAME), version=0x0305))
        if newer.version != TLS12:
            return f"a newer version ends the handshake: alert {newer.alert}", ""
        extensions = hello.newest(NAME)
        extensions[hello.GROUPS] = hello.vector(2, hello.numbers((GREASE, hello.X25519)))
        extensions[hello.VERSIONS] = hello.vector(1, hello.numbers((GREASE, TLS13)))
        extensions = {GREASE: b"\x00"} | extensions
        answer = self.ask(hello.hello((GREASE, *GOOD_TLS13), extensions))
        return ("" if answer.version == TLS13 else f"not passed over: alert {answer.alert}"), ""

    def heartbeat(self) -> tuple[str, str]:
        answer = self.ask(hello.hello(GOOD, hello.usual(NAME) | {hello.HEARTBEAT: b"\x01"}))
        if answer.refused:
            raise RuntimeError(f"alert {answer.alert}")
        return ("offered" if hello.HEARTBEAT in answer.extensions else ""), ""

    def compression_tls13(self) -> tuple[str, str]:
        """RFC 8446 section 4.1.2."""
        answer = self.ask(hello.hello(GOOD_TLS13, hello.newest(NAME), compression=b"\x01\x00"))
        return ("" if answer.alert == ILLEGAL_PARAMETER else "not refused"), ""

    def points(self) -> tuple[str, str]:
        shares = {
            "a point that is not on P-256": (hello.P256, b"\x04" + b"\x01" * 64),
            "a point without order of X25519": (hello.X25519, bytes(32)),
        }
        for what, share in shares.items():
            answer = self.ask(hello.hello(GOOD_TLS13, hello.newest(NAME, share)))
            if not answer.refused or answer.alert is None:
                return f"{what} is taken", ""
        return "", ""

    def ticketbleed(self) -> tuple[str, str]:
        """CVE-2016-9244: the server's answer to a session's name of one byte must not be longer."""
        ticket = self.ticket()
        extensions = hello.usual(NAME) | {hello.TICKET: ticket}
        answer = self.ask(hello.hello(GOOD, extensions, session=b"\xa5"))
        # Gone on with, it echoes the name; otherwise it makes one of its own, or none.
        if answer.session == b"\xa5":
            return "", ""
        if hello.HELLO_DONE in answer.messages:
            raise RuntimeError("the session was not resumed")
        return f"{len(answer.session)} bytes for one", ""

    def ticket(self) -> bytes:
        with self.terse.connect(self.name) as io:
            client = SslClient(underlying_socket=io, ssl_version=OpenSslVersionEnum.TLSV1_2, ssl_verify=OpenSslVerifyEnum.NONE)
            client.set_tlsext_host_name(NAME)
            client.set_cipher_list("ECDHE+AESGCM")
            client.do_handshake()
            text = client.get_session().as_text()
        dump = text.split("TLS session ticket:", 1)[1].split("\n\n", 1)[0]
        lines = re.findall(r"^\s+[0-9a-f]{4} - ((?:[0-9a-f]{2}[ -]){1,16})", dump, re.MULTILINE)
        return bytes.fromhex("".join(lines).replace("-", " "))

    def client(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.terse.authority))
        return context.wrap_socket(self.terse.connect(self.name), server_hostname=NAME, suppress_ragged_eofs=False)

    def close_notify(self) -> tuple[str, str]:
        """Who cuts the line must not be able to pass for the server's end (RFC 8446 section 6.1)."""
        try:
            self.get("Connection: close")
        except ssl.SSLEOFError:
            return "not said", ""
        return "", ""

    def breach(self) -> tuple[str, str]:
        head = self.get("Accept-Encoding: gzip, br, zstd\r\nConnection: close").split(b"\r\n\r\n", 1)[0]
        return ("they are anyhow" if b"content-encoding" in head.lower() else ""), ""

    def get(self, fields: str) -> bytes:
        with self.client() as io:
            io.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n{fields}\r\n\r\n".encode())
            got = b""
            while more := io.recv(65536):
                got += more
        return got
