"""litmus against Apache's mod_dav."""

import re
import shutil
from pathlib import Path

from chain import Way
from server import MODULES, Server, run

LINE = re.compile(r"^\s*(\d+\. \w+)\.+ (pass|FAIL|WARNING|SKIPPED|skipped)(.*)", re.MULTILINE)
SETS = ("basic", "copymove", "props", "locks", "http")


class Litmus(Server):
    name, title = "litmus", "litmus, WebDAV by Apache"
    # One is a warning of what Apache does, without a proxy too.
    expected = 101

    @classmethod
    def lacks(cls, packages: Path) -> str:
        if not shutil.which("litmus"):
            return "litmus is not to be had"
        return "" if (MODULES / "mod_dav_fs.so").exists() else "Apache is not to be had"

    def start(self) -> None:
        (self.folder / "files").mkdir()
        self.launch_apache(
            ["dav", "dav_fs"],
            [
                f"DocumentRoot {self.folder}/files",
                f"DavLockDB {self.folder}/files.lock",
                f"<Directory {self.folder}/files>",
                "  Dav on",
                "  Require all granted",
                "</Directory>",
            ],
        )

    def cases(self, way: Way) -> dict[str, str]:
        found = {}
        for name in SETS:
            # It writes debug.log where it is.
            said = run(["litmus", "-k", f"{way.url}/"], 120, self.folder, {"TESTS": name}).stdout
            cases = LINE.findall(said.replace("\r", "\n"))
            for case, result, why in cases:
                found[f"{name} {case}"] = "" if result == "pass" else f"{result} {why.strip()}"
            if "<- summary for" not in said:
                found[f"{name} as a whole"] = said[-200:].replace("\n", " ")
        return found
