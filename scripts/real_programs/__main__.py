"""real-programs TERSE FOLDER [SUITE...]: see scripts/real-programs."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import objects
import repositories
import webdav
import websocket
from chain import Chain
from verdict import Verdict

SUITES = [
    websocket.Autobahn,
    webdav.Litmus,
    objects.Moto,
    objects.Gofakes3,
    repositories.Git,
    repositories.Subversion,
]


def main() -> int:
    names = sorted({suite.name for suite in SUITES})
    arguments = argparse.ArgumentParser(prog="real-programs")
    arguments.add_argument("terse", help="the program")
    arguments.add_argument("folder", type=Path, help="where packages from PyPI and npm lie, and reports go")
    arguments.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(names))
    options = arguments.parse_args()
    # All that was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unknown = set(options.suites) - set(names)
    if unknown:
        arguments.error(f"no such suite: {', '.join(sorted(unknown))}")
    verdicts, left_out = [], []
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        lacks = suite.lacks(options.folder)
        if lacks:
            left_out.append(f"{suite.title}: {lacks}")
            continue
        verdicts += run(suite, options)
    faults = [fault for verdict in verdicts for fault in verdict.faults]
    print()
    for fault in faults:
        print(fault)
    for reason in left_out:
        print(f"Left out: {reason}")
    passed = sum(verdict.passed for verdict in verdicts if verdict.way.of_terse)
    print(f"{passed} cases pass through terse, {len(faults)} faults")
    return 1 if faults or not verdicts else 0


def run(suite, options) -> list[Verdict]:
    """A suite each way: first without a proxy, which the other ways are compared with."""
    folder = Path(tempfile.mkdtemp(prefix="terse-real-programs-"))
    # Apache reads and writes it under another name.
    folder.chmod(0o755)
    try:
        print(f"{suite.title}: {suite.expected} must pass", flush=True)
        verdicts = []
        with suite(folder, options.folder) as server, Chain(options.terse, server.port, folder, suite.speaks_tls) as chain:
            for way in chain.ways():
                began = time.monotonic()
                cases = attempt(server, way)
                verdict = Verdict(suite, way, cases, verdicts)
                verdicts.append(verdict)
                print(f"  {way.name:34} {verdict.line()}  {time.monotonic() - began:5.1f} s", flush=True)
            if any(verdict.faults for verdict in verdicts):
                print(chain.said())
        return verdicts
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attempt(server, way) -> dict[str, str]:
    try:
        return server.cases(way)
    except Exception as problem:  # noqa: BLE001: a client that does not end, too, is a result
        return {"the suite": f"{type(problem).__name__}: {problem}".replace("\n", " ")[:300]}


if __name__ == "__main__":
    sys.exit(main())
