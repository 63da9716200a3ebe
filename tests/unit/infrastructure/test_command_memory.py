"""What an agent's program remembers: any history of its folder can be had back, at any moment."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents.domain.actor_protocol import Message
from cleveragents.infrastructure.actors.command import memory
from cleveragents.infrastructure.actors.command.memory import MemoryFolder

NAMES = st.sampled_from([b"a", b"b.jsonl", b"in/c", b"in/ner/d", b"\xff\n"])
CHANGES = st.lists(
    st.tuples(NAMES, st.sampled_from(["write", "append", "delete"]), st.binary(max_size=40)),
    max_size=6,
)


@settings(deadline=None)
@given(st.lists(CHANGES, max_size=6))
def test_every_moment_can_be_had_back(history: list[list[tuple[bytes, str, bytes]]]) -> None:
    with TemporaryDirectory() as scratch:
        folder, chain = MemoryFolder(scratch), list[Message]()
        for changes in history:
            for name, how, data in changes:
                change(folder, name, how, data)
            message, skipped = folder.changes(chain[-1].key if chain else None)
            chain += [message] if message else []
            assert not skipped
            again = MemoryFolder(scratch)
            again.fill(chain)
            assert contents(again) == contents(folder)


def change(folder: MemoryFolder, name: bytes, how: str, data: bytes) -> None:
    path = Path(folder.path) / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True, parents=True)
    if how == "delete":
        path.unlink(missing_ok=True)
        return
    with path.open("ab" if how == "append" else "wb") as file:
        file.write(data)


def contents(folder: MemoryFolder) -> dict[str, tuple[bytes, int]]:
    top = Path(folder.path)
    return {
        str(path.relative_to(top)): (path.read_bytes(), path.stat().st_mode)
        for path in top.rglob("*")
        if path.is_file()
    }


def test_of_a_file_that_grew_only_the_end_is_stored(tmp_path: Path) -> None:
    folder = MemoryFolder(str(tmp_path))
    change(folder, b"log", "write", b"x" * 100_000)
    first, _ = folder.changes(None)
    change(folder, b"log", "append", b"more")
    second, _ = folder.changes("h")

    assert first is not None
    assert second is not None
    assert len(second.body) < 200 < len(first.body)
    assert folder.changes("h") == (None, ())


def test_what_is_too_large_is_named(tmp_path: Path) -> None:
    folder = MemoryFolder(str(tmp_path))
    with (Path(folder.path) / "huge").open("wb") as file:
        file.truncate(memory.LARGEST_FILE + 1)
    assert folder.changes(None) == (None, ("huge",))


def test_links_are_no_memory(tmp_path: Path) -> None:
    folder = MemoryFolder(str(tmp_path))
    (Path(folder.path) / "link").symlink_to("/etc/hostname")
    assert folder.changes(None) == (None, ())
