"""git and svn, over HTTP, against Apache."""

import filecmp
import hashlib
import os
import shutil
from pathlib import Path

from chain import PATIENCE_S, Way
from server import MODULES, Server, Steps, must, run

CGI = Path("/usr/lib/git-core/git-http-backend")
FILES = 300
# A small buffer: what is larger goes in chunks, of unknown length.
CHUNKED = ["-c", "http.postBuffer=65536"]
AUTHOR = {f"GIT_{role}_{what}": word for role in ("AUTHOR", "COMMITTER") for what, word in (("NAME", "a"), ("EMAIL", "a@localhost"))}
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"} | AUTHOR


def write_tree(folder: Path) -> None:
    """Small texts in folders, and a large file that does not compress."""
    for number in range(FILES):
        file = folder / f"part{number % 7}" / f"file{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text {number} of many\n" * (number % 50 + 1))
    (folder / "large").write_bytes(hashlib.shake_128(b"large").digest(5 << 20))


def are_same(left: Path, right: Path) -> bool:
    """Whether two folders hold the same files, but for what the programs keep there."""
    def files(folder: Path) -> dict[str, Path]:
        found = (file for file in folder.rglob("*") if file.is_file())
        return {str(file.relative_to(folder)): file for file in found if not {".git", ".svn"} & set(file.parts)}

    ours, theirs = files(left), files(right)
    return ours.keys() == theirs.keys() and all(filecmp.cmp(ours[name], theirs[name], shallow=False) for name in ours)


class Repositories(Server):
    speaks_tls = True
    variables: dict[str, str] = {}

    def program(self, words: list, folder: Path | None = None) -> str:
        done = run(words, 120, folder, QUIET | self.variables | {"HOME": str(self.folder)})
        must(done.returncode == 0, f"{' '.join(map(str, words[:6]))}: {done.stdout[-300:]}")
        return done.stdout

    def belong_to_apache(self, folder: Path) -> None:
        if os.geteuid() == 0:
            run(["chown", "-R", "www-data:", folder], PATIENCE_S)


class Git(Repositories):
    name, title = "git", "git by Apache's CGI"
    expected = 8

    @classmethod
    def lacks(cls, packages: Path) -> str:
        if not shutil.which("git") or not CGI.exists():
            return "git is not to be had"
        return "" if (MODULES / "mod_cgid.so").exists() else "Apache is not to be had"

    def start(self) -> None:
        (self.folder / "bare").mkdir()
        self.launch_apache(
            ["alias", "cgid", "env"],
            [
                f"SetEnv GIT_PROJECT_ROOT {self.folder}/bare",
                "SetEnv GIT_HTTP_EXPORT_ALL 1",
                f"ScriptSock {self.folder}/cgid",
                f"ScriptAlias / {CGI}/",
                f"<Directory {CGI.parent}>",
                "  Require all granted",
                "</Directory>",
            ],
        )

    def cases(self, way: Way) -> dict[str, str]:
        steps, at = Steps(), self.folder / f"git-{way.port}"
        bare = self.folder / f"bare/{way.port}.git"
        self.program(["git", "init", "-q", "--bare", "-b", "main", bare])
        self.program(["git", "-C", bare, "config", "http.receivepack", "true"])
        self.belong_to_apache(bare)
        write_tree(at / "one")
        if way.is_tls:
            # It goes before the configuration, and may be set.
            self.variables = {"GIT_SSL_CAINFO": str(way.authority)}
        one, two, url = at / "one", at / "two", f"{way.url}/{way.port}.git"
        self.program(["git", "init", "-q", "-b", "main", one])
        self.commit(one)
        steps("a large push, in chunks", lambda: self.program(["git", *CHUNKED, "push", "-q", url, "main"], one))
        steps("a clone", lambda: self.program(["git", "clone", "-q", url, two]))
        steps("the clone is the same", lambda: must(are_same(one, two), "other files"))
        (one / "part0/file0.txt").write_text("changed\n")
        self.commit(one)
        steps("a small push", lambda: self.program(["git", "push", "-q", url, "main"], one))
        steps("a fetch", lambda: self.program(["git", "pull", "-q", "--ff-only"], two))
        steps("what was fetched is the same", lambda: must(are_same(one, two), "other files"))
        steps("a shallow clone", lambda: self.shallow(["git", "clone", "-q", "--depth", "1", url, at / "three"], at / "three"))
        steps("all objects are whole", lambda: self.program(["git", "fsck", "--full", "--strict"], two))
        return steps.cases

    def commit(self, folder: Path) -> None:
        self.program(["git", "add", "-A"], folder)
        self.program(["git", "commit", "-q", "-m", "a change"], folder)

    def shallow(self, words: list, folder: Path) -> None:
        self.program(words)
        must(self.program(["git", "rev-list", "--count", "HEAD"], folder).strip() == "1", "more than one commit")


class Subversion(Repositories):
    name, title = "svn", "svn by Apache's mod_dav_svn"
    expected = 9

    @classmethod
    def lacks(cls, packages: Path) -> str:
        if not shutil.which("svn"):
            return "svn is not to be had"
        return "" if (MODULES / "mod_dav_svn.so").exists() else "Apache's mod_dav_svn is not to be had"

    def start(self) -> None:
        (self.folder / "svn").mkdir()
        self.launch_apache(["dav", "dav_svn"], ["<Location />", "  DAV svn", f"  SVNParentPath {self.folder}/svn", "</Location>"])

    def cases(self, way: Way) -> dict[str, str]:
        steps, at, url = Steps(), self.folder / f"svn-{way.port}", f"{way.url}/{way.port}"
        repository = self.folder / f"svn/{way.port}"
        self.program(["svnadmin", "create", repository])
        self.belong_to_apache(repository)
        write_tree(at / "tree")
        option = "--config-option=servers:global:"
        trust = [f"{option}ssl-authority-files={way.authority}"] if way.is_tls else []
        svn = ["svn", "--non-interactive", "--no-auth-cache", f"--config-dir={self.folder}/svn-settings", *trust]
        tree, one, two = at / "tree", at / "one", at / "two"
        steps("an import", lambda: self.program([*svn, "import", "-q", "-m", "all", tree, url]))
        steps("a check-out", lambda: self.program([*svn, "checkout", "-q", url, one]))
        steps("the check-out is the same", lambda: must(are_same(tree, one), "other files"))
        steps("another check-out", lambda: self.program([*svn, "checkout", "-q", url, two]))
        (one / "part0").mkdir(parents=True, exist_ok=True)
        (one / "part0/file0.txt").write_text("changed\n")
        (one / "large").write_bytes(hashlib.shake_128(b"another").digest(6 << 20))
        steps("a commit", lambda: self.program([*svn, "commit", "-q", "-m", "a change"], one))
        steps("an update", lambda: self.program([*svn, "update", "-q"], two))
        steps("the update is the same", lambda: must(are_same(one, two), "other files"))
        steps("a log and a difference", lambda: must("+changed" in self.program([*svn, "diff", "-c", "2", url]), "no difference"))
        steps("an export of the first", lambda: self.program([*svn, "export", "-q", "-r", "1", url, at / "three"]))
        return steps.cases
