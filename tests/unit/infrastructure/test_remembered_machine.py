"""What a machine can hold inside is remembered as long as nothing that it depends on changes."""

import json
import os
from pathlib import Path

import pytest

from cleveragents.domain.confinement import Abilities
from cleveragents.infrastructure.confinement import remembered
from cleveragents.infrastructure.confinement.remembered import RememberedMachine

ALL = Abilities(
    landlock=7, socket_filter=True, read_only_view=True, process_table=True, bubblewrap=False
)
NONE = Abilities(
    landlock=0, socket_filter=False, read_only_view=False, process_table=False, bubblewrap=False
)


class Asked:
    """A machine that counts who asks it."""

    def __init__(self, *answers: Abilities) -> None:
        self.answers = list(answers)
        self.times = 0

    def __call__(self) -> Abilities:
        self.times += 1
        return self.answers[min(self.times, len(self.answers)) - 1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


def test_a_second_command_does_not_ask(file: Path) -> None:
    first, second = Asked(ALL), Asked(NONE)

    assert RememberedMachine(str(file), first).abilities() == ALL
    assert RememberedMachine(str(file), second).abilities() == ALL
    assert (first.times, second.times) == (1, 0)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_whatever_it_depends_on_makes_the_machine_be_asked_again(file: Path) -> None:
    RememberedMachine(str(file), Asked(ALL)).abilities()
    memory = json.loads(file.read_bytes())

    for number, told in enumerate(memory["depends_on"]):
        changed = list(memory["depends_on"])
        changed[number] = f"{told} another"
        file.write_text(json.dumps({**memory, "depends_on": changed}))
        asked = Asked(NONE)
        assert RememberedMachine(str(file), asked).abilities() == NONE, told
        assert asked.times == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"depends_on": [], "abilities": {}}', b"\xff\xfe", b'{"abilities": 7}'],
)
def test_a_memory_that_cannot_be_read_is_none(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert RememberedMachine(str(file), Asked(ALL)).abilities() == ALL


def test_who_has_asked_puts_a_wrong_memory_right(file: Path) -> None:
    RememberedMachine(str(file), Asked(ALL)).abilities()

    assert RememberedMachine(str(file), Asked(NONE)).found_out() == NONE
    assert RememberedMachine(str(file), Asked(ALL)).abilities() == NONE


def test_where_nothing_can_be_written_the_machine_is_asked(tmp_path: Path) -> None:
    machine = RememberedMachine(str(tmp_path / "no folder" / "machine.json"), Asked(ALL, NONE))

    assert [machine.abilities(), machine.abilities()] == [ALL, NONE]


def test_a_machine_that_does_not_say_since_when_it_runs_is_always_asked(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "_BOOT_ID", os.devnull)
    machine = RememberedMachine(str(file), Asked(ALL, NONE))

    assert [machine.abilities(), machine.abilities()] == [ALL, NONE]
    assert not file.exists()
