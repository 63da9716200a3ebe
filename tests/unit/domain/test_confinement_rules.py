"""What is asked for, what a machine can do, and what is said about the rest."""

import pytest
from msgspec.structs import replace

from cleveragents.domain.confinement import (
    Abilities,
    Confinement,
    ConfinementMeans,
    ConfinementMode,
    Guarantee,
    enforcement,
    strictest,
)

ALL = Abilities(
    landlock=7, socket_filter=True, read_only_view=True, process_table=True, bubblewrap=True
)
NOTHING = Abilities(
    landlock=0, socket_filter=False, read_only_view=False, process_table=False, bubblewrap=False
)
PREFERRED, REQUIRED, OFF = (
    ConfinementMode.PREFERRED,
    ConfinementMode.REQUIRED,
    ConfinementMode.OFF,
)


def missing(machine: Abilities) -> dict[Guarantee, str]:
    return dict(enforcement(Confinement(), PREFERRED, machine).missing)


def test_a_machine_that_can_do_everything_does() -> None:
    found = enforcement(Confinement(), REQUIRED, ALL)
    assert set(found.enforced) == set(Guarantee)
    assert found.refusal is None
    assert (found.by, found.network) == (ConfinementMeans.KERNEL, False)


def test_a_machine_that_can_do_nothing_says_so_and_may_be_refused() -> None:
    assert set(missing(NOTHING)) == set(Guarantee) - {Guarantee.ENVIRONMENT}
    found = enforcement(Confinement(mode=REQUIRED), PREFERRED, NOTHING)
    assert found.refusal is not None
    assert "no Landlock" in found.refusal
    assert "user namespaces" in found.refusal
    assert enforcement(Confinement(), PREFERRED, NOTHING).refusal is None


@pytest.mark.parametrize(
    ("landlock", "view", "lacking"),
    [
        (1, False, {Guarantee.WRITES, Guarantee.ATTRIBUTES, Guarantee.PROCESSES}),
        (2, False, {Guarantee.WRITES, Guarantee.ATTRIBUTES, Guarantee.PROCESSES}),
        (3, False, {Guarantee.ATTRIBUTES, Guarantee.PROCESSES}),
        (0, True, {Guarantee.PROCESSES}),
        (5, True, {Guarantee.PROCESSES}),
        (6, True, set()),
    ],
)
def test_each_version_has_its_own_gaps(
    landlock: int, view: object, lacking: set[Guarantee]
) -> None:
    machine = replace(ALL, landlock=landlock, read_only_view=bool(view), process_table=False)
    assert set(missing(machine)) == lacking


def test_a_process_table_of_its_own_does_what_a_scope_of_signals_does() -> None:
    assert missing(replace(ALL, landlock=0)) == {}


def test_the_reason_says_what_the_machine_lacks() -> None:
    no_view = "user namespaces are not allowed here"
    no_table = "a process table of its own is not allowed here"
    assert missing(NOTHING) == {
        Guarantee.WRITES: f"the kernel has no Landlock, and {no_view}",
        Guarantee.ATTRIBUTES: no_view,
        Guarantee.PROCESSES: f"the kernel has no Landlock, and {no_table}",
        Guarantee.NETWORK: "this kernel or processor cannot filter system calls",
    }
    older = missing(replace(NOTHING, landlock=2))
    assert older[Guarantee.WRITES].startswith("the kernel has Landlock 2, and 3 is needed")
    assert older[Guarantee.PROCESSES].startswith("the kernel has Landlock 2, and 6 is needed")
    less = replace(ALL, landlock=1, process_table=False)
    refusal = enforcement(Confinement(), REQUIRED, less).refusal
    assert refusal is not None
    assert f"(processes: the kernel has Landlock 1, and 6 is needed, and {no_table})" in refusal


def test_who_asks_for_the_network_misses_no_filter() -> None:
    machine = replace(ALL, socket_filter=False)
    assert set(missing(machine)) == {Guarantee.NETWORK}
    found = enforcement(Confinement(network=True), REQUIRED, machine)
    assert (found.refusal, found.network) == (None, True)
    assert Guarantee.NETWORK not in found.enforced


def test_off_enforces_nothing() -> None:
    found = enforcement(Confinement(mode=OFF), PREFERRED, ALL)
    assert (found.by, found.enforced, found.refusal) == (ConfinementMeans.NOTHING, (), None)
    assert found.mode is OFF
    assert found.network
    assert dict(found.missing) == dict.fromkeys(Guarantee, "confinement is off")


def test_bubblewrap_is_used_where_it_is_and_asked_for() -> None:
    asked = Confinement(by=ConfinementMeans.BUBBLEWRAP)
    used = enforcement(asked, REQUIRED, ALL)
    assert (used.mode, used.by) == (REQUIRED, ConfinementMeans.BUBBLEWRAP)
    without = replace(ALL, bubblewrap=False)
    assert enforcement(asked, PREFERRED, without).by is ConfinementMeans.KERNEL
    assert enforcement(asked, PREFERRED, without).missing == ()
    refused = enforcement(asked, REQUIRED, replace(without, landlock=5, process_table=False))
    assert dict(refused.missing) == {
        Guarantee.WRITES: "bubblewrap is not installed or does not work",
        Guarantee.PROCESSES: "the kernel has Landlock 5, and 6 is needed, "
        "and a process table of its own is not allowed here",
    }
    bare = enforcement(asked, PREFERRED, replace(ALL, socket_filter=False))
    told = "sockets of this machine's services cannot be filtered here"
    assert dict(bare.missing) == {Guarantee.NETWORK: told}


def test_what_the_settings_require_no_action_undoes() -> None:
    assert strictest(None, OFF) is OFF
    assert strictest(OFF, PREFERRED) is OFF
    assert strictest(REQUIRED, OFF) is REQUIRED
    assert strictest(OFF, REQUIRED) is REQUIRED


@pytest.mark.parametrize("layers", [False, True])
@pytest.mark.parametrize("view", [False, True])
def test_a_step_is_at_home_where_it_has_a_view_and_has_layers_only_there(
    *, view: bool, layers: bool
) -> None:
    found = enforcement(Confinement(), PREFERRED, replace(ALL, read_only_view=view, layers=layers))

    assert (found.at_home, found.layers) == (view, view and layers)
