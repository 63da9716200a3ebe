"""`secrets: skip`: what is called like a secret is in no group, and stays where it is."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_place import Place, error_of
from tests.support.world import World, action, shell, write

SECRET, NEWER = "TOKEN=do-not-store-me-5f2c", "TOKEN=do-not-store-me-9a1b"
_SKIP = ("--skip-secrets",)


@pytest.fixture
def place(world: World) -> Place:
    found = Place(world)
    world.project.write(".gitignore", ".env\n")
    world.project.write("certs/tracked.pem", "known to all\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "more")
    world.project.write(".env", SECRET)
    world.project.write(".env.example", "TOKEN=\n")
    world.project.write("certs/own.key", SECRET)
    # Commands are on record, and so what they say must not be it.
    (world.beside / "newer").write_text(NEWER)
    return found


def stored(world: World) -> Iterator[Path]:
    """The files of ours that hold the words of a secret, packed or not."""
    for path in world.agents.data_dir.rglob("*"):
        if path.is_file() and b"do-not-store-me" in path.read_bytes():
            yield path


def newer(place: Place, path: str) -> str:
    return f"cat {place.world.beside}/newer > {path}"


def test_in_place_secrets_are_in_no_group_and_a_rollback_leaves_and_names_them(
    place: Place,
) -> None:
    begun = place.world.agents.inside(
        *("run", "--in-place", *_SKIP, "--", "sh", "-c"),
        f"echo x > x.txt; {newer(place, '.env')}; {newer(place, 'made.pem')}; echo 1 >.env.example",
    )
    assert "certs/own.key" in begun.err
    assert "tracked.pem" in begun.err

    back = place("undo").ok()

    assert not (place.path / "x.txt").exists()
    assert place.project.read(".env.example") == "TOKEN=\n"
    for path in (".env", "made.pem"):
        assert place.project.read(path).strip() == NEWER
    assert "secrets, left in place: .env, certs/own.key, made.pem" in back.out
    assert not list(stored(place.world))


def test_what_git_tracks_is_captured_all_the_same(place: Place) -> None:
    place.run("echo other > certs/tracked.pem", *_SKIP).ok()

    place("undo").ok()

    assert place.project.read("certs/tracked.pem") == "known to all\n"


def test_without_it_secrets_are_captured_and_go_back(place: Place) -> None:
    place.run(newer(place, ".env")).ok()

    place("undo").ok()

    assert place.project.read(".env") == SECRET
    assert list(stored(place.world))


@pytest.mark.parametrize("strategy", ["in-place", "sandbox"])
def test_in_an_action_file_it_is_a_key_of_the_resource(place: Place, strategy: str) -> None:
    code: dict[str, Any] = {"type": "git-checkout", "path": ".", "strategy": strategy}
    code |= {"secrets": "skip", **({"include": [".env"]} if strategy == "sandbox" else {})}
    steps = (shell(f"grep -q do-not .env; {newer(place, '.env')}; echo x > x.txt"), write("y", "y"))

    plan = place.world.run(*steps, resources={"code": code})
    sandbox = plan.sandbox
    assert (sandbox / ".env").read_text().strip() == NEWER
    back = plan.rollback("0").ok()

    assert not (sandbox / "x.txt").exists()
    assert (sandbox / ".env").read_text().strip() == NEWER
    assert ".env" in back.out
    assert (place.path / ".env").read_text().strip() == (
        NEWER if strategy == "in-place" else SECRET
    )
    in_sandboxes = [path for path in stored(place.world) if "sandboxes" in path.parts]
    assert list(stored(place.world)) == in_sandboxes


def test_the_setting_holds_where_nobody_says_anything(place: Place) -> None:
    place("config", "set", "store.secrets", "skip").ok()
    place.run(f"{newer(place, '.env')}; echo x > x.txt").ok()

    place("undo").ok()

    assert place.project.read(".env").strip() == NEWER
    assert not list(stored(place.world))


def test_a_project_may_not_say_that_secrets_are_stored(place: Place) -> None:
    folder = place.path / ".cleveragents"
    folder.mkdir()
    (folder / "config.toml").write_text('[store]\nsecrets = "capture"\n')

    assert place("config", "list").code != 0


def test_a_timeline_that_has_secrets_does_not_begin_to_skip_them(place: Place) -> None:
    place.run("true").ok()

    assert error_of(place.run("true", *_SKIP)) == "timeline-terms"


def test_it_is_only_for_folders(place: Place) -> None:
    db = {"type": "sqlite", "path": "app.db", "secrets": "skip"}
    path = place.world.write_action(action(shell("true"), resources={"db": db}))

    found = place("action", "check", "--file-only", path)

    assert "resources.db.secrets: is only for folders" in found.error["message"]


def test_what_is_stored_is_for_nobody_else_to_read(place: Place) -> None:
    place.run("echo x > x.txt").ok()
    top = place.world.agents.data_dir

    assert stat.S_IMODE(top.stat().st_mode) == 0o700
    files = [path for path in (top / "snapshots").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
