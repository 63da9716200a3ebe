"""Docs are tests: what they show is fresh, complete, linked and accepted by the program."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cleveragents.cli.guard import BugError
from cleveragents.domain.errors import PlanError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("", "docs/**/", "changelog.d/", ".github/")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(f"{folder}*.md"))
CITING = ("src/**/*.py", "docs/**/*.md", "tests/**/*.py", "benchmarks/**/*.py", "*.md", "*.py")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_generated_blocks_are_fresh() -> None:
    done = _run(sys.executable, "docs/generate.py", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_a_stale_block_is_noticed(tmp_path: Path) -> None:
    for folder in ("docs", "tests/golden"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    page = tmp_path / "docs/reference/database.md"
    page.write_text(_text(page).replace("| `plan_id` | text |", "| `plan_id` | blob |"))

    done = _run(sys.executable, "docs/generate.py", "--check", cwd=tmp_path)

    assert done.returncode == 1
    assert "stale: reference/database.md" in done.stderr


def test_every_error_code_has_a_section_of_its_own() -> None:
    documented = re.findall(r"^### (\S+)$", _text(ROOT / "docs/reference/errors.md"), re.MULTILINE)
    codes = {kind.code for kind in (PlanError, BugError, *_subclasses(PlanError))}
    assert sorted(documented) == sorted(codes)


def test_the_page_on_checkpoints_has_every_error_of_checkpoints() -> None:
    page = _text(ROOT / "docs/reference/checkpointing.md")
    ours = [kind for kind in _subclasses(PlanError) if kind.__module__.endswith("checkpoints")]
    assert len(ours) > 5
    assert [kind.code for kind in ours if f"(errors.md#{kind.code})" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in _relative_links(page) if not _leads_somewhere(page, link)] == []


def test_the_forms_for_issues_can_be_read() -> None:
    forms = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/[!c]*.yml"))
    for form in forms:
        body = yaml.safe_load(_text(form))["body"]
        assert all(part["attributes"]["label"] for part in body)
    assert len(forms) == 2


def test_every_decision_record_is_in_the_index() -> None:
    folder = ROOT / "docs/adr"
    records = {path.name for path in folder.glob("[0-9]*.md")}
    assert set(_relative_links(folder / "README.md")) == records


def test_every_decision_record_that_is_cited_is_there() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs/adr").glob("[0-9]*.md")}
    pages = (page for place in CITING for page in ROOT.glob(place))
    cited = {
        (number, str(page.relative_to(ROOT)))
        for page in pages
        for number in re.findall(r"\bADRs? (?:\[)?(\d{4})\b", _text(page))
    }
    assert len(cited) > 50
    assert not [found for found in cited if found[0] not in numbers]


def test_every_page_has_its_place_in_the_site() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    records = {page for page in pages if re.match(r"adr/\d", page)}  # the index of those has them
    placed = re.findall(r"^ .*: (\S+\.md)$", _text(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(placed) == sorted(pages - records)


def test_every_runtime_dependency_is_explained() -> None:
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    names = {re.split(r"[<>=\[]", text)[0] for text in project["dependencies"]}
    explained = re.findall(
        r"^\| ([\w-]+) \|", _text(ROOT / "docs/adr/0006-dependencies.md"), re.MULTILINE
    )
    assert set(explained) - {"dependency"} == names


def test_the_action_file_of_the_readme_runs_as_the_readme_says(tmp_path: Path) -> None:
    readme = _text(ROOT / "README.md")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    back_to = re.search(r"^agents plan rollback (\S+)", readme, re.MULTILINE)
    assert back_to is not None
    shop = _repository(tmp_path)
    (tmp_path / "hello.yaml").write_text(example)

    _agents(tmp_path, shop, "plan", "use", str(tmp_path / "hello.yaml"))
    _agents(tmp_path, shop, "plan", "execute")
    _agents(tmp_path, shop, "plan", "rollback", "--yes", back_to[1])
    _agents(tmp_path, shop, "plan", "resume")
    _agents(tmp_path, shop, "plan", "apply", "--yes")

    assert (shop / "hello.txt").read_text() == "Hello\n"


def test_the_demo_keeps_what_it_claims(tmp_path: Path) -> None:
    done = _run(
        sys.executable, "demo/run.py", "--fast", "--folder", str(tmp_path / "demo"), cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It worked" in done.stdout.splitlines()[-1]


def test_the_picture_shows_what_is_printed() -> None:
    done = _run(sys.executable, "demo/picture.py", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _subclasses(kind: type[PlanError]) -> Iterator[type[PlanError]]:
    # Only the program's own: tests make errors too.
    for inner in kind.__subclasses__():
        if inner.__module__.startswith("cleveragents."):
            yield inner
            yield from _subclasses(inner)


def _relative_links(page: Path) -> list[str]:
    return [link for link in LINK.findall(FENCED.sub("", _text(page))) if "://" not in link]


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in _anchors(target)


def _anchors(page: Path) -> set[str]:
    titles = HEADING.findall(FENCED.sub("", _text(page)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _repository(folder: Path) -> Path:
    shop = folder / "shop"
    shop.mkdir()
    (folder / ".gitconfig").write_text("[user]\n\tname = Test\n\temail = test@example.com\n")
    (shop / "readme.txt").write_text("A shop\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        assert _run("git", *words, cwd=shop, home=folder).returncode == 0
    return shop


def _agents(home: Path, cwd: Path, *words: str) -> str:
    done = _run(sys.executable, "-m", "cleveragents", *words, cwd=cwd, home=home)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(*argv: str, cwd: Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    ours = ("GIT_", "CLEVERAGENTS_", "COVERAGE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    if home is not None:
        environment["HOME"] = str(home)
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
