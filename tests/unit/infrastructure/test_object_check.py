"""Objects of a repository that are not what their names say are found, and go."""

import subprocess
from pathlib import Path

import pytest

from cleveragents.infrastructure.sandbox.git.repository.object_check import clear_broken_objects


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=U", "-c", "user.email=u@example.org", "-c", "gc.auto=0")
    done = subprocess.run(
        ["git", "-C", str(folder), *names, *words], check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    git(tmp_path, "init", "-q", f"--object-format={request.param}")
    (tmp_path / "a").write_text("a\n")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path / ".git"


def objects(repository: Path) -> set[Path]:
    return {path for path in (repository / "objects").rglob("*") if path.is_file()}


def emptied(path: Path) -> Path:
    path.chmod(0o600)
    path.write_bytes(b"")
    return path


def test_in_a_whole_repository_nothing_goes(repository: Path) -> None:
    before = objects(repository)
    assert clear_broken_objects(str(repository)) is False
    assert objects(repository) == before
    git(repository.parent, "repack", "-qad")
    packed = objects(repository)
    assert clear_broken_objects(str(repository)) is False
    assert objects(repository) == packed


def test_a_loose_object_without_its_bytes_goes_alone(repository: Path) -> None:
    before = objects(repository)
    broken = emptied(min(before))
    assert clear_broken_objects(str(repository)) is True
    assert objects(repository) == before - {broken}


def test_a_loose_object_with_the_bytes_of_another_goes(repository: Path) -> None:
    one, other, *_ = sorted(objects(repository))
    one.chmod(0o600)
    one.write_bytes(other.read_bytes())
    assert clear_broken_objects(str(repository)) is True
    assert not one.exists()
    assert other.exists()


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_a_pack_goes_with_all_that_tells_of_it(repository: Path, ending: str) -> None:
    git(repository.parent, "repack", "-qad")
    emptied(next(path for path in objects(repository) if path.suffix == ending))
    assert clear_broken_objects(str(repository)) is True
    assert [path for path in objects(repository) if path.name.startswith("pack-")] == []
