"""What came of a suite on one way."""

from chain import Way


class Verdict:
    """Cases by name with what is wrong, which is empty where they passed."""

    def __init__(self, suite, way: Way, cases: dict[str, str], others: "list[Verdict]"):
        self.way = way
        self.cases = cases
        self.passed = sum(not problem for problem in cases.values())
        self.failed = {name: problem for name, problem in cases.items() if problem}
        self.faults = list(self._faults(suite, others))

    def _faults(self, suite, others: "list[Verdict]"):
        where = f"{suite.title}, {self.way.name}"
        if not self.way.of_terse:
            # The server itself is not as it was when the number was taken: nothing follows from the rest.
            if not others and self.passed < suite.expected:
                yield f"FAULT: {where}: {self.passed} pass, of {suite.expected} that must"
            return
        rival = next(other for other in others if other.way.name == self.way.rival)
        pardoned = sum(name in rival.failed for name in self.failed)
        if self.passed + pardoned < suite.expected:
            yield f"FAULT: {where}: {self.passed} pass, of {suite.expected} that must"
        for name, problem in self.failed.items():
            if name not in rival.failed:
                yield f"FAULT: {where}: {name}, which passes by {rival.way.name}: {problem}"

    def line(self) -> str:
        words = f"{self.passed:4} of {len(self.cases):3}"
        if not self.failed:
            return words
        shown = [f"{name}: {problem}"[:150] for name, problem in list(self.failed.items())[:5]]
        return words + "  not: " + "; ".join(shown)
