"""What servers have in common: they start, tell their port, and end."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from chain import HOST, PATIENCE_S

MODULES = Path("/usr/lib/apache2/modules")
PORT = re.compile(r"^(?:.* )?port: (\d+)$", re.MULTILINE)


class Server:
    """A suite's server; the class says what the suite is, its `cases` run it by one way."""

    name = title = ""
    expected = 0
    # Whether the suite's client speaks TLS itself.
    speaks_tls = False

    @classmethod
    def lacks(cls, packages: Path) -> str:
        """What cannot be had, if anything."""
        raise NotImplementedError

    def __init__(self, folder: Path, packages: Path):
        self.folder, self.packages = folder, packages
        self.port, self.process = 0, None

    def start(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> "Server":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        if self.process:
            # With its children, which Apache has.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def launch(self, words: list[str]) -> None:
        """A server that says its port, in a line's last word, when it listens."""
        file = self.folder / "server.log"
        with file.open("w") as log:
            self.process = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE_S
        while not (said := PORT.search(file.read_text())):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{words[0]} does not serve: {file.read_text()[-2000:]}")
            time.sleep(0.02)
        self.port = int(said[1])

    def launch_apache(self, modules: list[str], lines: list[str]) -> None:
        """Apache takes no socket and tells no port: a free one may be taken until it starts, and then it ends."""
        names = ["mpm_event", "authz_core", *modules]
        user = ["User www-data", "Group www-data"] if os.geteuid() == 0 else []
        for _ in range(10):
            with socket.create_server((HOST, 0)) as free:
                self.port = free.getsockname()[1]
            text = [
                f"ServerRoot {self.folder}",
                "ServerName localhost",
                f"Listen {HOST}:{self.port}",
                f"PidFile {self.folder}/apache.pid",
                f"ErrorLog {self.folder}/apache.log",
                *user,
                *(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in names),
                *lines,
            ]
            file = self.folder / "apache.conf"
            file.write_text("\n".join(text) + "\n")
            if user:
                subprocess.run(["chown", "-R", "www-data:", str(self.folder)], check=True, timeout=PATIENCE_S)
            self.process = subprocess.Popen(
                ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", str(file)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )
            if self._listens():
                return
            self.process.wait()
        raise RuntimeError(f"Apache does not start: {(self.folder / 'apache.log').read_text()[-2000:]}")

    def _listens(self) -> bool:
        """Waits until it does, or until it has ended; the file with its number is written once it has its port."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            if (self.folder / "apache.pid").exists():
                return True
            if time.monotonic() > deadline:
                os.killpg(self.process.pid, signal.SIGKILL)
                return False
            time.sleep(0.02)
        return False


def run(words: list, limit_s: int = 120, folder: Path | None = None, variables: dict | None = None) -> subprocess.CompletedProcess:
    """A client, which ends in time."""
    return subprocess.run(
        [str(word) for word in words], cwd=folder, env=os.environ | (variables or {}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s,
    )


class Steps:
    """Cases in an order, each of which is named, and fails where it raises an exception."""

    def __init__(self):
        self.cases: dict[str, str] = {}

    def __call__(self, name: str, step) -> None:
        try:
            step()
            self.cases[name] = ""
        except Exception as problem:  # noqa: BLE001: whatever a client says is the result
            self.cases[name] = f"{type(problem).__name__}: {problem}".replace("\n", " ")[:300]


def must(is_so: bool, what: object) -> None:
    if not is_so:
        raise AssertionError(what)
