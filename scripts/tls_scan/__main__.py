"""tls-scan TERSE [--open]: see scripts/tls-scan."""

import argparse
import sys
import tempfile
from pathlib import Path

import records
import scanner
from finding import table
from handmade import Checks
from proxy import Terse


def main() -> int:
    arguments = argparse.ArgumentParser(prog="tls-scan")
    arguments.add_argument("terse", help="the program")
    arguments.add_argument("--open", action="store_true", help="scans a line that allows everything weak")
    options = arguments.parse_args()
    name = "open" if options.open else "plain"
    with tempfile.TemporaryDirectory(prefix="terse-tls-scan-") as folder:
        with Terse(str(Path(options.terse).resolve()), Path(folder)) as terse:
            findings = scanner.scan(terse.port(name), terse.authority) + Checks(terse, name).all() + records.rows(terse)
    print(table(findings))
    weak = [one for one in findings if one.weak]
    print(f"\n{len(findings)} checks, {len(weak)} weaknesses")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
