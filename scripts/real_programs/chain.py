"""terse and Debian's haproxy in front of a server. Their listening sockets are made here and inherited: no port has to be guessed."""

import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
PATIENCE_S = 30


@dataclass
class Way:
    """An address by which the server is reached."""

    name: str
    port: int
    is_tls: bool = False
    of_terse: bool = True
    # The way that differs by terse alone: what fails there is no fault of terse.
    rival: str = "no proxy"
    # For clients that speak TLS.
    authority: Path | None = None

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}" if self.is_tls else f"http://{HOST}:{self.port}"


class Chain:
    """The ways to a server, with the two programs that make them."""

    def __init__(self, terse: str, server: int, folder: Path, speaks_tls: bool):
        self.server, self.folder, self.speaks_tls = server, folder, speaks_tls
        self.pem, self.authority = folder / "chain.pem", folder / "authority.pem"
        write_certificate(self.pem, self.authority)
        names = ("terse", "terse_tls", "terse_onward", "haproxy", "haproxy_tls", "haproxy_h2", "haproxy_onward", "haproxy_bridge")
        self.sockets = {name: socket.create_server((HOST, 0), backlog=128) for name in names}
        self.ports = {name: one.getsockname()[1] for name, one in self.sockets.items()}
        self.terse = Program([terse, "-f"], "terse", self.terse_configuration(), self._sockets_of("terse"), folder)
        try:
            self.haproxy = Program(["haproxy", "-db", "-f"], "haproxy", self.haproxy_configuration(), self._sockets_of("haproxy"), folder)
        except BaseException:
            self.terse.end()
            raise
        for one in self.sockets.values():
            one.close()

    def ways(self) -> list[Way]:
        ports = self.ports
        tls = Way("terse, TLS", ports["terse_tls"], is_tls=True, authority=self.authority)
        return [
            Way("no proxy", self.server, of_terse=False),
            Way("haproxy", ports["haproxy"], of_terse=False),
            Way("haproxy, HTTP/2, haproxy", ports["haproxy_onward"], of_terse=False),
            Way("terse, HTTP/1", ports["terse"]),
            tls if self.speaks_tls else Way("terse, TLS (a client by haproxy)", ports["haproxy_bridge"]),
            Way("haproxy, HTTP/2, terse", ports["haproxy_h2"], rival="haproxy, HTTP/2, haproxy"),
            Way("terse, HTTP/2, haproxy", ports["terse_onward"]),
        ]

    def _sockets_of(self, program: str) -> list[socket.socket]:
        """None of the other's: where a program ends, its clients shall be refused and not wait."""
        return [one for name, one in self.sockets.items() if name.startswith(program)]

    def said(self) -> str:
        return "".join(f"--- {one.name}:\n{one.said()}\n" for one in (self.terse, self.haproxy))

    def _bind(self, name: str) -> str:
        return f"  bind fd@{self.sockets[name].fileno()}"

    def terse_configuration(self) -> list[str]:
        return self._common() + [
            "frontend web",
            self._bind("terse"),
            f"{self._bind('terse_tls')} ssl crt {self.pem} alpn h2,http/1.1",
            "  compression on",
            "  default_backend server",
            "frontend onward",
            self._bind("terse_onward"),
            "  compression on",
            "  default_backend haproxy",
            "backend haproxy",
            f"  server haproxy {HOST}:{self.ports['haproxy_tls']} {self._tls_server()} alpn h2 ws h2",
        ]

    def haproxy_configuration(self) -> list[str]:
        terse = f"{HOST}:{self.ports['terse_tls']} {self._tls_server()}"
        return self._common() + [
            "frontend web",
            self._bind("haproxy"),
            f"{self._bind('haproxy_tls')} ssl crt {self.pem} alpn h2",
            "  default_backend server",
            "listen h2",
            self._bind("haproxy_h2"),
            f"  server terse {terse} alpn h2 ws h2",
            "listen onward",
            self._bind("haproxy_onward"),
            f"  server haproxy {HOST}:{self.ports['haproxy_tls']} {self._tls_server()} alpn h2 ws h2",
            "listen bridge",
            "  mode tcp",
            self._bind("haproxy_bridge"),
            f"  server terse {terse} alpn http/1.1",
        ]

    def _tls_server(self) -> str:
        return f"ssl verify required ca-file {self.authority} verifyhost localhost sni str(localhost)"

    def _common(self) -> list[str]:
        return [
            "global",
            "  log stderr format raw local0 info",
            "defaults",
            "  mode http",
            "  log global",
            "  option httplog",
            "  timeout connect 10s",
            f"  timeout client {PATIENCE_S}s",
            f"  timeout server {PATIENCE_S}s",
            "backend server",
            f"  server one {HOST}:{self.server}",
        ]

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *_) -> None:
        self.terse.end()
        self.haproxy.end()


class Program:
    """A program that runs until its end is asked for; what it says goes to a file."""

    def __init__(self, words: list[str], name: str, configuration: list[str], sockets: list, folder: Path):
        self.name = name
        file = folder / f"{name}.cfg"
        file.write_text("\n".join(configuration) + "\n")
        descriptors = [one.fileno() for one in sockets]
        self.log = (folder / f"{name}.log").open("w+")
        self.process = subprocess.Popen(
            [*words, str(file)], pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT
        )

    def said(self) -> str:
        """Its last lines."""
        self.log.seek(0)
        return "\n".join(self.log.read().splitlines()[-20:])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


def write_certificate(pem: Path, authority: Path) -> None:
    """A certificate of its own authority, with its key in PEM."""
    key = pem.with_suffix(".key")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split()
    names = ["-addext", f"subjectAltName=DNS:localhost,IP:{HOST}"]
    command = [*words, *names, "-keyout", str(key), "-out", str(authority)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    pem.write_text(authority.read_text() + key.read_text())
