"""Adds up the JUnit reports of all suites and prints one line of counts."""

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(folder: Path) -> int:
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    reports = sorted(folder.rglob("*.xml"))
    for report in reports:
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            for name in totals:
                totals[name] += int(suite.get(name, 0))
    failed = totals["failures"] + totals["errors"]
    passed = totals["tests"] - failed - totals["skipped"]
    sys.stdout.write(f"{passed} passed, {failed} failed, {totals['skipped']} skipped\n")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
