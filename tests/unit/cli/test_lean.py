"""What stands in for a module does what that module does, and is seen by one library only."""

import gettext as translations
import inspect
import platform
import subprocess
import sys
import uuid

import pytest

from cleveragents.cli.lean import UUID, cleandoc, gettext, ngettext, python_implementation

ALONE = """
import sys
import cleveragents.cli
loaded = "inspect" in sys.modules
import click, inspect
print(loaded, inspect.__file__ is not None, click.core.inspect.signature is inspect.signature)
"""

TYPES = """
import sys
import cleveragents.cli
from cleveragents.cli.lean import load_msgspec
load_msgspec()
loaded = {"decimal", "numbers", "uuid", "inspect", "textwrap"} & set(sys.modules)
import decimal, uuid, msgspec
class Value(msgspec.Struct):
    name: str
    number: float
print(loaded, uuid.uuid4().version, decimal.Decimal("0.5"))
print(msgspec.json.decode(msgspec.json.encode(Value("a", 0.5)), type=Value))
"""

COLLECTING = """
import gc
before = gc.get_threshold()
import cleveragents.cli.main
from cleveragents.cli.lean import load_for_work, load_msgspec
load_msgspec(), load_for_work()
print(gc.isenabled() and gc.get_threshold() == before)
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one",
        "  one  ",
        "one\n    two\n      three\n    ",
        "\n\n  one\n two\n\n",
        "\tone\n\ttwo",
        "one\n\n\n    two",
        "   \n  \n",
        "one\n   ",
        "\x0cone\n  two",
    ],
)
def test_indentation_goes_as_python_itself_takes_it_away(text: str) -> None:
    assert cleandoc(text) == inspect.cleandoc(text)


def test_python_is_called_as_python_itself_calls_it() -> None:
    assert python_implementation() == platform.python_implementation()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_messages_are_those_of_a_place_without_translations(number: int) -> None:
    known = translations.NullTranslations()

    assert gettext("Aborted!") == known.gettext("Aborted!")
    assert ngettext("a file", "files", number) == known.ngettext("a file", "files", number)


def test_who_makes_a_uuid_by_the_stand_in_gets_a_real_one() -> None:
    made = UUID("12345678123456781234567812345678")

    assert type(made) is uuid.UUID
    assert made.int == 0x12345678123456781234567812345678


def test_only_click_sees_the_stand_in_and_gets_the_rest_of_the_module_by_it() -> None:
    assert said_alone(ALONE) == "False True True\n"


def test_only_msgspec_sees_the_types_that_stand_in() -> None:
    assert said_alone(TYPES) == "set() 4 0.5\nValue(name='a', number=0.5)\n"


def test_who_imports_the_command_keeps_its_own_garbage_collection() -> None:
    assert said_alone(COLLECTING) == "True\n"


def said_alone(script: str) -> str:
    """By a process of its own, in which nothing else is loaded: not even what measures coverage."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={"LANG": "C.UTF-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
