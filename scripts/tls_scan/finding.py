"""What was looked at, and what was found."""

from dataclasses import dataclass
from typing import Callable, Iterable


@dataclass(frozen=True)
class Finding:
    """A line of the table. `weak` is what is wrong; empty: nothing."""

    what: str
    weak: str
    how: str
    seen: str = ""

    @property
    def verdict(self) -> str:
        return f"WEAK: {self.weak}" if self.weak else "good" + (f": {self.seen}" if self.seen else "")


def tried(what: str, how: str, look: Callable[[], tuple[str, str]]) -> Finding:
    """Looks; what cannot be looked at is not good. `look` gives what is wrong and, for the reader, what was seen."""
    try:
        weak, seen = look()
    except Exception as error:  # Whatever it is, the check was not made.
        weak, seen = f"not tried: {type(error).__name__}: {error}", ""
    return Finding(what, weak, how, seen)


def table(findings: Iterable[Finding]) -> str:
    rows = [("what", "verdict", "how")] + [(one.what, one.verdict, one.how) for one in findings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 2)]
    lines = [f"{what:<{widths[0]}}  {how:<{widths[1]}}  {verdict}" for what, verdict, how in rows]
    return "\n".join(line.rstrip() for line in lines)
