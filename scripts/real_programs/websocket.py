"""The cases of Autobahn's test suite, run by kosoku, against an echo by ws."""

import json
import shutil
import sys
from pathlib import Path

from chain import HOST, Way
from server import Server, run

ECHO = """
const { WebSocketServer } = require(process.argv[1]);
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: true });
server.on('listening', () => console.log('port:', server.address().port));
server.on('connection', one => {
    one.on('error', () => {});
    one.on('message', (data, isBinary) => one.send(data, { binary: isBinary }));
});
"""
KOSOKU = Path(sys.executable).parent / "kosoku"
# Limits and speed, and compression: what takes hours, and is the two ends' own.
LEFT_OUT = ("9.*", "12.*", "13.*")
GOOD = {"OK", "NON-STRICT", "INFORMATIONAL"}


class Autobahn(Server):
    name, title = "autobahn", "Autobahn's cases, WebSocket"
    expected = 247

    @classmethod
    def lacks(cls, packages: Path) -> str:
        if not KOSOKU.exists():
            return "kosoku is not to be had"
        if not shutil.which("node") or not (packages / "node_modules/ws").is_dir():
            return "ws for Node.js is not to be had"
        return ""

    def start(self) -> None:
        self.launch(["node", "-e", ECHO, str(self.packages / "node_modules/ws")])

    def cases(self, way: Way) -> dict[str, str]:
        reports = self.folder / "reports"
        shutil.rmtree(reports, ignore_errors=True)
        without = [word for pattern in LEFT_OUT for word in ("-x", pattern)]
        said = run([KOSOKU, "-p", "4", *without, "-o", reports, f"{HOST}:{way.port}"], 300)
        if not (reports / "index.json").exists():
            return {"all": said.stdout[-300:]}
        index = json.loads((reports / "index.json").read_text())
        # By agents, as servers name themselves: the handshake's answer is the server's, whatever is between.
        found = {name: case for agent in index.values() for name, case in agent.items()}
        return {name: self.problem(case) for name, case in found.items()}

    @staticmethod
    def problem(case: dict) -> str:
        is_good = case["behavior"] in GOOD and case["behaviorClose"] in GOOD
        return "" if is_good else f"{case['behavior']}, closed {case['behaviorClose']}"
