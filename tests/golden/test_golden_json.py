"""The JSON of every command is what it was: an envelope for each, kept in `envelopes/`.

After a change that is meant: `CLEVERAGENTS_TEST_GOLDEN=write pytest tests/golden`, and a look at
what git says of it, then `python docs/generate.py`: the page on JSON shows them. Ids, times,
hashes, sizes and places are told apart, not compared.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import click
import pytest
from tests.golden.key_paths import paths
from tests.support.day import Told, tell
from tests.support.world import World

from cleveragents.cli.main import root

ENVELOPES = Path(__file__).with_name("envelopes")
KEYS = Path(__file__).with_name("keys.txt")
WRITE = os.environ.get("CLEVERAGENTS_TEST_GOLDEN") == "write"
# Not asked by people, or not answered in JSON, or its answer stands in the docs to the letter.
UNTOLD = {"completion", "hook pre-tool", "hook post-tool", "hook pause", "action schema"}
# How the machine can confine, how fast and how large it is.
OF_THE_MACHINE = {"base", "confinement", "dedup", "duration", "duration_ms", "elapsed"}
_ULID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_HASH = re.compile(r"\b[0-9a-f]{40,64}\b")
_SHORT_HASH = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,12}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?(Z|\+00:00)?| UTC)")
_SIZE = re.compile(r"\b\d+(\.\d+)? (bytes|B|kB|KB|KiB|MB|MiB|GB|GiB|ms|s)\b")
"""Told to people with a unit."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Told]:
    world = World(tmp_path_factory.mktemp("day"))
    return world, tell(world)


def test_every_command_is_told_of(told: tuple[World, Told]) -> None:
    names = {name.partition(",")[0] for name in told[1]}
    assert set(leaves(root, ())) - UNTOLD - names == set()


def test_every_envelope_is_what_it_was(told: tuple[World, Told]) -> None:
    world, answers = told
    plain = Plain(world)
    different = []
    for name, answer in answers.items():
        file = ENVELOPES / f"{name.replace(', ', '__').replace(' ', '-')}.json"
        text = json.dumps(plain(answer.envelope), indent=1, ensure_ascii=False) + "\n"
        if WRITE:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            different.append(f"{name}:\n{text}")
    assert different == []


def test_nothing_is_kept_that_nobody_tells(told: tuple[World, Told]) -> None:
    kept = {path.stem for path in ENVELOPES.glob("*.json")}
    assert kept == {name.replace(", ", "__").replace(" ", "-") for name in told[1]}


def test_keys_are_only_added(told: tuple[World, Told]) -> None:
    """To refresh adds keys and takes none away: to rename one breaks the programs of others."""
    known = KEYS.read_text().splitlines()
    now = {f"{answer.envelope['command']}: {path}" for answer in told[1].values()
           for path, _ in paths(answer.data)}  # fmt: skip
    if WRITE:
        KEYS.write_text("\n".join(sorted({*known, *now})) + "\n")

    assert sorted({*known} - now) == [], "these are promised, and are gone"
    assert WRITE or sorted(now - {*known}) == [], "these are new: refresh, as is said above"


def test_a_plan_is_called_plan_id_wherever_one_plan_is_meant(told: tuple[World, Told]) -> None:
    """`plan` of two summaries, which are exact, is not the only name of it there."""
    about_one = {name: answer for name, answer in told[1].items()
                 if name.startswith("plan ") and not name.startswith("plan list")
                 and answer.envelope["status"] != "error"}  # fmt: skip
    assert len(about_one) > 30
    assert [name for name, answer in about_one.items() if "plan_id" not in answer.data] == []


def leaves(command: click.Command, words: tuple[str, ...]) -> list[str]:
    if not isinstance(command, click.Group):
        return [" ".join(words)]
    context = click.Context(command)
    found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, sub in found if sub for leaf in leaves(sub, (*words, name))]


class Plain:
    """An envelope without what differs from run to run; the same id is the same word throughout."""

    def __init__(self, world: World) -> None:
        self._ids: dict[str, str] = {}
        self._places = {str(world.project.path): "PROJECT", str(world.home): "HOME",
                        str(world.top): "TOP"}  # fmt: skip

    def __call__(self, value: Any, key: str = "") -> Any:
        if key in OF_THE_MACHINE:
            return f"<{key}>"
        # How many snapshots of an ended plan are swept already is a matter of time.
        if key == "snapshots" and isinstance(value, int):
            return f"<{key}>"
        if key.endswith(("bytes", "_hash")) and value is not None:
            return f"<{key}>"
        if isinstance(value, dict):
            return {self._text(name): self(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self(inner, key) for inner in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for place, word in self._places.items():
            text = text.replace(place, word)
        text = _ULID.sub(lambda found: self._id(found[0]), text)
        text = _TIME.sub("<time>", _HASH.sub("<hash>", text))
        return _SIZE.sub("<size>", _SHORT_HASH.sub("<hash>", text))

    def _id(self, ulid: str) -> str:
        return self._ids.setdefault(ulid, f"ID-{len(self._ids) + 1}")
