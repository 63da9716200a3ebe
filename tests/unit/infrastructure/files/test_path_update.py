"""A set of paths changes as one: each by a rename, and nothing that is somebody else's goes."""

import os
import shutil
import stat
import subprocess
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from tests.support.kill_points import kill_points, killed

from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.update.path_update import (
    Becomes,
    MovedOnError,
    PathChange,
    PathUpdate,
    signature,
    status_at,
)
from cleveragents.infrastructure.files.update.rooted_writer import Sync
from cleveragents.infrastructure.files.update.stage_folder import StageFolder

BEFORE = {"a": "old a\n", "d/b": "old b\n", "swap": "a file\n", "full/x": "x\n", "full/y": "y\n"}


class Place:
    """A folder with files, and a stage beside them."""

    def __init__(self, top: Path) -> None:
        self.top = top / "top"
        self.stage = top / "stage"
        for name, text in BEFORE.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)
        self.stage.mkdir()

    def staged(self, path: str, text: str, mode: int | None = None) -> PathChange:
        name = path.replace("/", "-")
        (self.stage / name).write_text(text)
        return self.change(path, Becomes.FILE, staged=name.encode(), mode=mode)

    def change(self, path: str, becomes: Becomes, **more) -> PathChange:
        with RootedFolder(str(self.top)) as root:
            now = signature(status_at(root, path.encode()))
        return PathChange(path.encode(), becomes, now, **more)

    def run(
        self, changes: Iterable[PathChange], *, patient: bool = False, stays: str = ""
    ) -> PathUpdate:
        stage = StageFolder(str(self.stage))
        try:
            with RootedFolder(str(self.top), open_up=True) as root:
                update = PathUpdate(
                    root, stage.fd, lambda inside: inside[0].decode() == stays, patient=patient
                )
                update.run(list(changes), Sync.EACH)
                return update
        finally:
            stage.close()

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.top)): path.read_text()
            for path in self.top.rglob("*")
            if path.is_file()
        }

    def mode(self, name: str) -> int:
        return stat.S_IMODE((self.top / name).lstat().st_mode)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_files_come_change_and_go_and_folders_with_them(place: Place) -> None:
    place.run(
        [
            place.staged("a", "new a\n"),
            place.change("swap", Becomes.FOLDER, mode=0o750),
            place.staged("swap/in", "in\n", mode=0o600),
            place.change("full/x", Becomes.ABSENT),
            place.change("full/y", Becomes.ABSENT),
            place.staged("full", "no folder any more\n"),
            place.change("new", Becomes.FOLDER),
            place.staged("new/file", "n\n"),
            place.change("d/b", Becomes.CHMODDED, mode=0o640),
        ]
    )
    assert place.files() == {
        **{"a": "new a\n", "swap/in": "in\n", "full": "no folder any more\n"},
        **{"new/file": "n\n", "d/b": "old b\n"},
    }
    assert (place.mode("swap"), place.mode("swap/in"), place.mode("d/b")) == (0o750, 0o600, 0o640)
    assert list(place.stage.iterdir()) == []


def test_a_file_that_was_written_since_it_was_looked_at_stays(place: Place) -> None:
    changes = [place.staged("a", "new a\n"), place.change("d/b", Becomes.ABSENT)]
    (place.top / "a").write_text("mine\n")
    (place.top / "d/b").write_text("mine too\n")
    with pytest.raises(MovedOnError):
        place.run(changes)
    assert place.files() == {**BEFORE, "a": "mine\n", "d/b": "mine too\n"}


def test_a_file_that_came_since_is_not_replaced(place: Place) -> None:
    change = place.staged("fresh", "ours\n")
    (place.top / "fresh").write_text("theirs\n")
    with pytest.raises(MovedOnError) as caught:
        place.run([change])
    assert caught.value.paths == (b"fresh",)
    assert place.files()["fresh"] == "theirs\n"


def test_a_patient_update_goes_on_and_says_what_is_somebody_elses(place: Place) -> None:
    changes = [
        place.staged("a", "new a\n"),
        place.staged("full", "file\n"),
        place.change("full/x", Becomes.ABSENT),
        place.change("d", Becomes.ABSENT),
        place.staged("swap", "swapped\n"),
    ]
    (place.top / "a").write_text("mine\n")
    done = place.run(changes, patient=True)
    assert sorted(done.theirs) == [b"a", b"d/b", b"full"]
    assert done.failed == {}
    assert place.files() == {
        **{"a": "mine\n", "d/b": "old b\n", "full/y": "y\n"},
        "swap": "swapped\n",
    }


def test_a_patient_update_says_what_could_not_be_done(place: Place) -> None:
    missing = PathChange(b"a", Becomes.FILE, place.staged("a", "").expected, b"never staged")
    done = place.run([missing, place.staged("swap", "swapped\n")], patient=True)
    assert list(done.failed) == [b"a"]
    assert place.files() == {**BEFORE, "swap": "swapped\n"}


def test_a_folder_stays_for_what_may_stay_in_it_and_for_nothing_else(place: Place) -> None:
    gone = [place.change("full/x", Becomes.ABSENT), place.change("full", Becomes.ABSENT)]
    place.run(gone, stays="full/y")
    assert place.files() == {name: text for name, text in BEFORE.items() if name != "full/x"}
    with pytest.raises(MovedOnError) as caught:
        place.run([place.change("full", Becomes.ABSENT)])
    assert caught.value.paths == (b"full/y",)


def test_a_link_in_the_place_of_a_folder_is_never_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(place.top / "d", outside)
    changes = [place.change("d/b", Becomes.ABSENT), place.staged("d/c", "ours\n")]
    shutil.rmtree(place.top / "d")
    (place.top / "d").symlink_to(outside)
    with pytest.raises(OSError, match="Not a directory|Too many levels"):
        place.run(changes)
    assert [path.name for path in outside.iterdir()] == ["b"]


def test_a_closed_folder_is_opened_for_the_update_and_closed_again(place: Place) -> None:
    (place.top / "d").chmod(0o555)
    place.run([place.staged("d/b", "new b\n")])
    assert place.files()["d/b"] == "new b\n"
    assert place.mode("d") == 0o555


@pytest.fixture
def mounted(place: Place) -> Generator[Place]:
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place.top / "d")]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", str(place.top / "d")], check=True)


def test_another_file_system_below_the_root_is_reached_too(mounted: Place) -> None:
    (mounted.stage / "link").symlink_to("nowhere")
    (mounted.stage / "closed").write_text("closed\n")
    (mounted.stage / "closed").chmod(0o200)
    mounted.run(
        [
            mounted.change("d/sub", Becomes.FOLDER, mode=0o710),
            mounted.staged("d/sub/new", "new\n", mode=0o604),
            mounted.change("d/link", Becomes.FILE, staged=b"link"),
            mounted.change("d/closed", Becomes.FILE, staged=b"closed"),
        ]
    )
    assert (mounted.mode("d/sub"), mounted.mode("d/sub/new")) == (0o710, 0o604)
    assert (mounted.top / "d/link").readlink() == Path("nowhere")
    assert mounted.mode("d/closed") == 0o200
    assert sorted(path.name for path in (mounted.top / "d").iterdir()) == ["closed", "link", "sub"]
    assert [path.name for path in mounted.stage.iterdir()] == ["folder"]


def test_killed_anywhere_every_path_is_old_new_or_absent_and_repeating_ends_it(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    after = {"a": "new a\n", "swap/in": "in\n", "full": "no folder\n", "d/b": "old b\n"}

    def work() -> None:
        changes = [
            place.change("swap", Becomes.FOLDER, mode=0o750),
            place.change("d/b", Becomes.CHMODDED, mode=0o640),
        ]
        changes += [place.change(name, Becomes.ABSENT) for name in ("full/x", "full/y")]
        changes += [place.staged(n, text) for n, text in after.items() if n != "d/b"]
        place.run(changes)

    def begin() -> None:
        shutil.rmtree(place.top)
        shutil.rmtree(place.stage)
        Place(tmp_path)

    points = list(kill_points(work, watched=[tmp_path]))
    assert len(points) > 15
    for point in points:
        begin()
        killed(work, point)
        for name, text in place.files().items():
            assert text in (BEFORE.get(name), after.get(name)), point
        work()
        assert place.files() == after
        assert (place.mode("swap"), place.mode("d/b")) == (0o750, 0o640)


def test_what_is_kept_is_the_users_very_file(place: Place) -> None:
    stage = StageFolder(str(place.stage))
    folder = os.open(place.top, os.O_RDONLY)
    try:
        stage.keep(b"old", folder, b"a")
        stage.keep(b"old", folder, b"a")
    finally:
        os.close(folder)
        stage.close()
    assert (place.stage / "old").stat().st_ino == (place.top / "a").stat().st_ino


def test_where_files_cannot_be_linked_a_whole_copy_is_kept(mounted: Place) -> None:
    (mounted.top / "d/b").write_text("elsewhere\n")
    (mounted.top / "d/b").chmod(0o400)
    os.utime(mounted.top / "d/b", ns=(1, 2))
    stage = StageFolder(str(mounted.stage))
    folder = os.open(mounted.top / "d", os.O_RDONLY)
    try:
        stage.keep(b"old", folder, b"b")
    finally:
        os.close(folder)
        stage.close()
    kept = (mounted.stage / "old").stat()
    assert (mounted.stage / "old").read_text() == "elsewhere\n"
    assert (stat.S_IMODE(kept.st_mode), kept.st_mtime_ns) == (0o400, 2)
