"""The comparison tells what was measured: its pages are made from its results and nothing else."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/evidence/results.json"
MADE = ["docs/reference/comparison.md", "docs/images/comparison.svg", "README.md"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What the generator reads and writes, in a place of its own."""
    shutil.copytree(
        ROOT / "benchmarks/peers",
        tmp_path / "benchmarks/peers",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "benchmarks/__init__.py").touch()
    for name in [*MADE, "docs/evidence/results.json"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_page_picture_and_readme_are_made_from_the_results(copy: Path) -> None:
    done = _report(copy, "--check")
    assert done.returncode == 0, done.stderr
    _report(copy)
    assert [name for name in MADE if _text(copy / name) != _text(ROOT / name)] == []


@pytest.mark.parametrize("name", MADE)
def test_a_figure_that_was_changed_by_hand_is_noticed(copy: Path, name: str) -> None:
    text = _text(copy / name)
    spot = text.index("make compare", max(0, text.find("<!-- generated:comparison -->")))
    (copy / name).write_text(text[:spot] + "12345 " + text[spot:], encoding="utf-8")
    done = _report(copy, "--check")
    assert done.returncode == 1
    assert f"stale: {Path(name).name}" in done.stderr


def test_another_result_makes_other_pages(copy: Path) -> None:
    kept = copy / "docs/evidence/results.json"
    results = json.loads(_text(kept))
    files = max(results["speed"], key=int)
    results["speed"][files]["ours"]["checkpoint 1"]["median_ms"] = 98700
    for verdicts in results["fidelity"].values():
        verdicts.update(dict.fromkeys(verdicts, "broken"))
    kept.write_text(json.dumps(results), encoding="utf-8")
    _report(copy)
    assert all("99 s" in _text(copy / name) for name in MADE)
    assert "✓" not in _text(copy / MADE[0])


def test_a_tool_that_is_not_there_has_its_row_with_the_reason(copy: Path) -> None:
    kept = copy / "docs/evidence/results.json"
    results = json.loads(_text(kept))
    (borg,) = (tool for tool in results["tools"] if tool["key"] == "borg")
    borg.update(missing="there is no apt-get here", version="")
    results["fidelity"].pop("borg", None)
    for by_tool in results["speed"].values():
        by_tool.pop("borg", None)
    kept.write_text(json.dumps(results), encoding="utf-8")
    _report(copy)
    assert "not installed: there is no apt-get here" in _text(copy / MADE[0])
    assert "| borg |" in _text(copy / MADE[0])


def test_the_results_say_where_and_when_and_name_no_machine() -> None:
    results = json.loads(_text(RESULTS))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", results["begun"]["at"])
    assert {"cores", "memory_gib", "kernel", "filesystem"} <= results["machine"].keys()
    assert all(tool["version"] or tool["missing"] for tool in results["tools"])
    assert not re.search(r"/(home|root|work|tmp|var|dev)/", _text(RESULTS))


def test_what_was_judged_is_what_the_cases_are() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIST_CASES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(_text(RESULTS))["groups"] == json.loads(done.stdout)


def test_the_picture_is_well_formed_and_knows_dark_ground() -> None:
    text = _text(ROOT / MADE[1])
    assert ET.fromstring(text).tag.endswith("svg")
    assert "prefers-color-scheme: dark" in text


LIST_CASES = """
import json
from benchmarks.peers.fidelity import GROUPS
print(json.dumps({name: [case.name for case in group] for name, group in GROUPS.items()}))
"""


def _report(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.report", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "benchmark",
    [["-m", "benchmarks.peers"], *([f"benchmarks/{name}.py"] for name in ("replay", "steps"))],
    ids=lambda words: words[-1],
)
def test_the_comparison_can_be_started_as_make_does(benchmark: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *benchmark, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
