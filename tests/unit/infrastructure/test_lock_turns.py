"""Whose turn it is when somebody's name is in a lock file (ADR 0017), in every case there is."""

import os
from itertools import product

import pytest
from msgspec.structs import replace

from cleveragents.infrastructure.locks.lock_owners import (
    LockOwner,
    LockState,
    LockTurn,
    find,
    ourselves,
    whose_turn,
)

EXPIRY = 60.0
US = ourselves("execute", "2025-03-01T12:00:00")
NOBODY = 2**22 + 1  # no process has such a number


def finding(**fields: object) -> LockState:
    values: dict[str, object] = {
        "owner": US,
        "held": True,
        "silence": 0.0,
        "alive": True,
        "same_host": True,
    }
    return LockState(**{**values, **fields})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("silence", [0.0, 59.0, 61.0, 1e9])
def test_an_owner_that_lives_on_this_machine_is_never_overtaken(silence: float) -> None:
    assert whose_turn(finding(silence=silence), EXPIRY) is LockTurn.WAIT


@pytest.mark.parametrize("silence", [0.0, 1e9])
def test_a_dead_owner_is_overtaken_at_once(silence: float) -> None:
    dead = finding(alive=False, silence=silence)
    assert whose_turn(replace(dead, held=False), EXPIRY) is LockTurn.TAKE
    # What it had started has inherited the file: a new one is put in its place.
    assert whose_turn(dead, EXPIRY) is LockTurn.REPLACE


def test_a_file_without_a_name_is_whoever_has_it() -> None:
    nobody = finding(owner=None, alive=None, same_host=False)
    assert whose_turn(nobody, EXPIRY) is LockTurn.WAIT
    assert whose_turn(replace(nobody, held=False), EXPIRY) is LockTurn.TAKE


@pytest.mark.parametrize(("silence", "turn"), [(59.0, LockTurn.WAIT), (61.0, LockTurn.REPLACE)])
@pytest.mark.parametrize("held", [True, False])
def test_an_owner_on_another_machine_has_until_its_silence_is_too_long(
    silence: float, turn: LockTurn, *, held: bool
) -> None:
    # Locks of other machines need not be seen from here: that nobody holds it proves nothing.
    far = finding(alive=None, same_host=False, held=held, silence=silence)
    assert whose_turn(far, EXPIRY) is turn


def test_a_machine_that_was_started_anew_has_no_owners_left() -> None:
    before = finding(alive=None, same_host=True, held=False)
    assert whose_turn(before, EXPIRY) is LockTurn.TAKE
    assert whose_turn(replace(before, held=True), EXPIRY) is LockTurn.WAIT


def test_nobody_is_overtaken_who_may_still_write() -> None:
    """The rule in one sentence, over everything that can be found."""
    for held, alive, same_host, silence in product(
        (True, False), (True, False, None), (True, False), (0.0, 59.9, 60.1)
    ):
        found = finding(held=held, alive=alive, same_host=same_host, silence=silence)
        turn = whose_turn(found, EXPIRY)
        if held and alive:
            assert turn is LockTurn.WAIT
        if held and turn is not LockTurn.WAIT:
            assert turn is LockTurn.REPLACE  # never by taking a file that somebody has
        if alive is None and silence <= EXPIRY and not (same_host and not held):
            assert turn is LockTurn.WAIT


# --- what is known of an owner ------------------------------------------------------------------


def test_we_ourselves_are_alive() -> None:
    found = find(US, held=True, silence=1.0)
    assert (found.alive, found.same_host) == (True, True)


@pytest.mark.parametrize(
    "owner",
    [replace(US, pid=NOBODY), replace(US, started="1"), replace(US, pid=NOBODY, started="")],
)
def test_a_number_without_a_process_or_with_another_one_is_dead(owner: LockOwner) -> None:
    assert find(owner, held=True, silence=0.0).alive is False


def test_a_container_of_this_machine_is_judged_by_the_kernel_lock() -> None:
    other = replace(US, space="pid:[1]")
    assert find(other, held=True, silence=0.0).alive is None
    assert find(other, held=False, silence=0.0).alive is False


def test_of_another_boot_or_machine_nothing_is_known() -> None:
    boot = find(replace(US, boot="x"), held=False, silence=0.0)
    far = find(replace(US, boot="x", host="far"), held=False, silence=0.0)
    assert (boot.alive, boot.same_host) == (None, True)
    assert (far.alive, far.same_host) == (None, False)


def test_one_hold_is_told_from_the_next_of_the_same_process() -> None:
    assert US.is_same(replace(US, beat=9))
    assert not US.is_same(replace(US, since="2025-03-01T12:00:01"))
    assert not US.is_same(None)
    assert US.pid == os.getpid()
