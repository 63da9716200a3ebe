"""`agents run` with pip and npm as they are, in a fresh home: what they do goes back and forth.

The packages come from PyPI and npm by name, and are small.
"""

import shutil
import subprocess
import sys

import pytest
from tests.support.environments import Furnished, files_above, versions
from tests.support.world import World

TESTS = ".venv/bin/python -B check.py && node check.js"
QUIET = "--no-audit --no-fund --silent"
INSTALL = f"npm ci {QUIET} && .venv/bin/pip install -q -U six"
# How this machine reaches the registries, if it has to be said.
ROUTES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "HTTPS_PROXY")


@pytest.fixture
def furnished(world: World) -> Furnished:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed here")
    project = Furnished(world)
    run = {"cwd": project.top, "check": True, "env": world.agents.environ}
    subprocess.run(["npm", "install", *QUIET.split()], **run)
    subprocess.run([sys.executable, "-m", "venv", ".venv"], **run)
    subprocess.run([".venv/bin/pip", "install", "-q", "six==1.16.0"], **run)
    project.commit()
    return project


def test_tests_pass_inside_and_nothing_is_copied(furnished: Furnished) -> None:
    before = furnished.users
    done = furnished.run(TESTS)

    assert "python 1.16.0\nnode true\n" in done.ok().err
    assert files_above(furnished.plan(done)) == []
    assert furnished.users == before


def test_what_npm_and_pip_installed_is_undone_and_redone(furnished: Furnished) -> None:
    before, agents = furnished.users, furnished.world.agents
    note = f"({TESTS}) >> {furnished.told}/it"
    allowed = ["--network", "--write", str(furnished.told), "--write", "~/.npm"]
    allowed += [word for name in ROUTES for word in ("--env", name)]
    done = furnished.run(f"{note} && {INSTALL} && {note}", *allowed)
    plan = furnished.plan(done)

    assert furnished.notes[:2] == ["python 1.16.0", "node true"]
    newer = furnished.notes[2].removeprefix("python ")
    assert newer != "1.16.0"
    assert furnished.notes[3] == "node true"
    installed = files_above(plan)
    assert f"six-{newer}.dist-info" in versions(plan.sandbox)
    assert "node_modules/is-odd/package.json" in installed

    # A pause between npm and pip makes two steps of it.
    steps = ("-n", str(len(plan.status["progress"])))
    agents("undo", *steps).ok()
    assert files_above(plan) == []
    agents("redo", *steps).ok()
    assert files_above(plan) == installed
    agents("undo", *steps).ok()
    agents.process("plan", "resume", timeout=300).ok()
    assert furnished.notes[4:] == furnished.notes[:4], "inside it was the old one again"
    assert furnished.users == before
