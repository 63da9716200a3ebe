"""What people install: the wheel and the sdist, in an environment with nothing else in it.

Only pip and the package registry are needed. Without the registry this fails at once and says so.
"""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import cleveragents

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
# Seconds that the registry may keep us waiting for one answer; it is not asked twice.
PATIENCE = "15"
OFFLINE = (
    "No matching distribution found",
    "Could not fetch URL",
    "Failed to establish a new connection",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Read timed out",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One wheel and one sdist of this source."""

    wheel: Path
    sdist: Path

    @property
    def wheel_names(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    @property
    def sdist_names(self) -> set[str]:
        with tarfile.open(self.sdist) as archive:
            return {name.partition("/")[2] for name in archive.getnames()}

    @property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            return Parser().parsestr(archive.read(name).decode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment that held nothing before the package came."""

    python: Path
    home: Path

    def agents(self, *argv: str) -> str:
        """As somebody types it who has just installed it: nothing of ours in the environment."""
        environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return _run(
            [self.python.with_name("agents"), "--format", "json", *argv], self.home, environ
        )

    def files(self) -> dict[str, bytes]:
        (package,) = self.python.parents[1].glob("lib/python3*/site-packages/cleveragents")
        return {
            str(path.relative_to(package.parent)): path.read_bytes()
            for path in package.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "hatchling", "build", "-d", folder], ROOT, os.environ)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel=wheel, sdist=sdist)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    top = tmp_path_factory.mktemp("empty")
    venv, home = top / "venv", top / "home"
    home.mkdir()
    _run([sys.executable, "-m", "venv", "--without-pip", venv], top, os.environ)
    made = Installed(python=venv / "bin/python", home=home)
    _pip_install(made.python, built.wheel)
    return made


def test_the_wheel_holds_all_of_the_package_and_nothing_else(built: Built) -> None:
    names = {name for name in built.wheel_names if ".dist-info/" not in name}
    assert names == _source_names()
    assert "cleveragents/py.typed" in names


def test_the_sdist_holds_what_is_needed_to_build_and_test_it(built: Built) -> None:
    names = built.sdist_names
    needed = {"pyproject.toml", "README.md", "Makefile", "noxfile.py", "CHANGELOG.md"}
    assert needed <= names
    assert {f"src/{name}" for name in _source_names()} <= names
    assert f"tests/packaging/{Path(__file__).name}" in names
    private = {".git", ".venv", "build", ".coverage", "site", ".hypothesis"}
    assert {name.partition("/")[0] for name in names} & private == set()


def test_the_metadata_says_who_we_are_and_which_extras_there_are(built: Built) -> None:
    told = built.metadata
    assert told["Name"] == "cleveragents"
    assert told["Version"] == cleveragents.__version__
    assert told["Requires-Python"] == ">=3.11"
    assert told["Description-Content-Type"] == "text/markdown"
    # No `postgres` before there is a resource of that type that needs a driver: ADR 0034.
    assert sorted(told.get_all("Provides-Extra", [])) == ["docs", "llm"]


def test_what_is_tested_is_what_the_extras_bring() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = pyproject["project"]["optional-dependencies"]
    wanted = {text for texts in extras.values() for text in texts}
    assert wanted <= set(pyproject["dependency-groups"]["dev"])


def test_the_installed_command_says_its_version(installed: Installed) -> None:
    assert cleveragents.__version__ in installed.agents("--version")


def test_a_plan_runs_and_goes_back_and_is_applied_with_nothing_else_installed(
    installed: Installed, tmp_path: Path
) -> None:
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "logo.txt").write_text("old\n")
    step = {"resource": "assets", "path": "logo.txt", "content": "new\n"}
    action = {
        "name": "small",
        "description": "A new logo",
        "resources": {"assets": {"type": "fs-directory", "path": str(folder)}},
        "steps": [{"name": "logo", "tool": "file.write", "with": step}],
    }
    (tmp_path / "a.yaml").write_text(json.dumps(action))

    plan = json.loads(installed.agents("plan", "use", str(tmp_path / "a.yaml")))["data"]["plan_id"]
    installed.agents("plan", "execute", plan)
    installed.agents("plan", "rollback", "--yes", plan, "start")
    status = json.loads(installed.agents("plan", "status", plan))["data"]
    (sandbox,) = (Path(item["path"]) for item in status["sandboxes"])
    assert (sandbox / "logo.txt").read_text() == "old\n"
    installed.agents("plan", "execute", plan)
    installed.agents("plan", "apply", "--yes", plan)

    assert (folder / "logo.txt").read_text() == "new\n"


def test_the_sdist_builds_and_installs_the_same_files(built: Built, installed: Installed) -> None:
    from_wheel = installed.files()
    # Builds in an environment of its own, with no more than `build-system` asks for.
    _pip_install(installed.python, built.sdist, "--no-deps", "--force-reinstall")
    assert installed.files() == from_wheel


def test_without_the_registry_it_says_so_at_once(tmp_path: Path) -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], tmp_path, os.environ)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull}
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    with pytest.raises(pytest.fail.Exception, match="the package registry cannot be reached"):
        _pip_install(tmp_path / "v/bin/python", "xxhash", environ={**bare, **nowhere})


def _source_names() -> set[str]:
    return {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "cleveragents").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _pip_install(
    python: Path, what: Path | str, *options: str, environ: Mapping[str, str] = os.environ
) -> None:
    pip = [sys.executable, "-m", "pip", "--python", python, "--no-input", "install", "--quiet"]
    quick = ["--no-compile", "--retries", "0", "--timeout", PATIENCE]
    try:
        _run([*pip, *quick, *options, what], python.parent, environ)
    except AssertionError as error:
        if any(text in str(error) for text in OFFLINE):
            pytest.fail(f"the package registry cannot be reached, and is needed here: {error}")
        raise


def _run(argv: Sequence[str | Path], cwd: Path, environ: Mapping[str, str]) -> str:
    # Coverage measures the source, not what is installed elsewhere.
    environ = {key: value for key, value in environ.items() if not key.startswith("COVERAGE_")}
    done = subprocess.run(
        argv, cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout
