"""The disk that power cuts are made on, by itself: what was synced is there after every cut, and
what was not can be lost behind right sizes and times."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.power.log import Images, Log, Mode
from tests.support.power.logging_disk import LoggingDisk
from tests.support.power.machine import SIZE, Loop, free_loop, missing, mounted, own_mounts

LINES = 12
_WRONG = missing("ext4")
if "CLEVERAGENTS_TEST_POWER" not in os.environ:
    # Steps of other tests see copies of our mounts, and keep an old state in use with them.
    _WRONG = [
        *_WRONG,
        "not beside other tests (CLEVERAGENTS_TEST_POWER=1 says that there are none)",
    ]
pytestmark = pytest.mark.skipif(bool(_WRONG), reason="no power cuts here: " + "; ".join(_WRONG))


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    own_mounts()  # steps of other tests would keep ours in use with the copies that they see
    with free_loop() as found:
        yield found


@pytest.fixture(scope="module")
def log(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Two files that grow by a line each time: one is synced, the other is not."""
    folder = tmp_path_factory.mktemp("disk")
    place = folder / "mounted"
    with LoggingDisk(folder / "image", folder / "log", SIZE) as disk, loop.over(disk.place):
        loop.make("ext4")
        with mounted(loop, place, "ext4"):
            for name in ("synced", "lax"):
                append(place / name, "0\n", sync=True)
            disk.mark("line 0")
            for number in range(1, LINES):
                append(place / "lax", f"{number}\n", sync=False)
                append(place / "synced", f"{number}\n", sync=True)
                disk.mark(f"line {number}")
    return Log.read(folder / "log")


def append(path: Path, text: str, *, sync: bool) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(text.encode())
        if sync:
            os.fsync(file.fileno())


def after(loop: Loop, images: Images, point: int, mode: Mode) -> dict[str, bytes]:
    image = images.cut(point, mode, f"{point}")
    place = image.parent / "mounted"
    with loop.over(image), mounted(loop, place, "ext4"):
        return {name: (place / name).read_bytes() for name in ("synced", "lax")}


@pytest.mark.parametrize("mode", list(Mode))
def test_what_was_synced_before_a_cut_is_there_after_it(
    log: Log, loop: Loop, tmp_path: Path, mode: Mode
) -> None:
    images = Images(log, tmp_path, SIZE)
    for point, text in log.marks():
        number = int(text.split()[1])
        lines = "".join(f"{n}\n" for n in range(number + 1)).encode()

        assert after(loop, images, point + 1, mode)["synced"].startswith(lines)


def test_what_was_not_synced_can_be_lost_behind_its_size(
    log: Log, loop: Loop, tmp_path: Path
) -> None:
    images = Images(log, tmp_path, SIZE)
    point, _ = log.marks()[-1]

    lax = after(loop, images, point + 1, Mode.LOST)["lax"]

    assert len(lax) > 2 and lax[2:] == bytes(len(lax) - 2)


def test_a_cut_leaves_all_that_came_before_the_last_flush(log: Log) -> None:
    point = log.flushes[-1]

    assert log.flushed(point + 1) == point
    assert log.window(point + 1) == []
    assert log.flushed(point) < point
