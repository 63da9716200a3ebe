"""What `make mutate` does beside mutmut: forgets what is out of date, and adds up the results."""

import hashlib
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

MUTANTS = Path("mutants")
TESTED_BY = MUTANTS / "tests.sha256"
VERDICTS = "exit_code_by_key"
COLUMNS = ("noticed", "never ended", "survived", "no unit test", "not tried")
OVERDUE = (36, 24, -24, 152, 255)


def begin() -> None:
    """Once the tests are others, what they reach is looked up anew, and what they did not notice
    is tried again; what they did notice stays noticed."""
    # mutmut copies tests here, and would run those on that are gone.
    shutil.rmtree(MUTANTS / "tests", ignore_errors=True)
    now = _hash_of(sorted(Path("tests/unit").rglob("*.py")))
    if TESTED_BY.exists() and TESTED_BY.read_text() != now:
        (MUTANTS / "mutmut-stats.json").unlink(missing_ok=True)
        for meta in _metas():
            data = json.loads(meta.read_text())
            verdicts = data[VERDICTS]
            data[VERDICTS] = {k: v if _fate(v) == "noticed" else None for k, v in verdicts.items()}
            meta.write_text(json.dumps(data, indent=4))
    MUTANTS.mkdir(exist_ok=True)
    TESTED_BY.write_text(now)


def summary() -> Iterable[str]:
    """What survived by name, and a row for each module, as docs/testing.md has them."""
    for meta in _metas():
        for name, exit_code in json.loads(meta.read_text())[VERDICTS].items():
            if _fate(exit_code) in ("survived", "no unit test"):
                yield f"mutmut show {name}"
    yield f"| module | mistakes | {' | '.join(COLUMNS)} |"
    yield "|---|" + "--:|" * (len(COLUMNS) + 1)
    total: Counter[str] = Counter()
    for meta in _metas():
        fates = Counter(map(_fate, json.loads(meta.read_text())[VERDICTS].values()))
        if fates:
            total += fates
            module = meta.relative_to(MUTANTS / "src/cleveragents").with_suffix("")
            yield _row(f"`{module}`", fates)
    yield _row("all", total)


def _metas() -> list[Path]:
    return sorted(MUTANTS.rglob("*.py.meta"))


def _fate(exit_code: int | None) -> str:
    """Codes of pytest, or of mutmut for a mistake whose line no test reaches."""
    if exit_code is None:
        return "not tried"
    if exit_code in OVERDUE:
        return "never ended"
    return {0: "survived", 5: "no unit test", 33: "no unit test"}.get(exit_code, "noticed")


def _row(name: str, fates: Counter[str]) -> str:
    return f"| {name} | {fates.total()} | {' | '.join(str(fates[c]) for c in COLUMNS)} |"


def _hash_of(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file}\0".encode() + file.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    if sys.argv[1:] == ["begin"]:
        begin()
    else:
        sys.stdout.write("\n".join(summary()) + "\n")
