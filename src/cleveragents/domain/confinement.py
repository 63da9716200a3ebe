"""What holds the commands of a plan inside: what is asked for, and what a machine can do."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class ConfinementMode(StrEnum):
    """Required: without all of it nothing runs. Preferred: as much of it as the machine can do."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class ConfinementMeans(StrEnum):
    KERNEL = "kernel"
    BUBBLEWRAP = "bubblewrap"
    NOTHING = "nothing"


class Guarantee(StrEnum):
    """What a command that runs for a plan cannot do."""

    ENVIRONMENT = "environment"
    WRITES = "writes"
    ATTRIBUTES = "attributes"
    PROCESSES = "processes"
    NETWORK = "network"


MEANING = {
    Guarantee.ENVIRONMENT: "sees only the variables that are on a list",
    Guarantee.WRITES: "writes only in the plan's sandboxes and its own temporary folder",
    Guarantee.ATTRIBUTES: "cannot change the mode, owner or times of any other file, and does not"
    " see what is kept for other plans",
    Guarantee.PROCESSES: "can neither signal nor look into processes that are not the step's own",
    Guarantee.NETWORK: "has no network, nor a way to the services of this machine",
}


class Confinement(Struct, frozen=True, kw_only=True):
    """What an action asks for. `mode` None: what the settings say.

    `write` are further places, which no rollback reaches; `environment` further variables.
    """

    mode: ConfinementMode | None = None
    by: ConfinementMeans = ConfinementMeans.KERNEL
    network: bool = False
    environment: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


class Abilities(Struct, frozen=True, kw_only=True):
    """What this machine offers. `landlock` is the version of its interface, 0 for none;
    `process_table`: a command can have one of its own; `layers`: it can be shown a folder of the
    user's that it changes without changing it."""

    landlock: int
    socket_filter: bool
    read_only_view: bool
    process_table: bool
    bubblewrap: bool
    layers: bool = False


# Before 2, Landlock lets nothing be renamed from one folder to another, which git has to do.
LANDLOCK_USABLE = 2
_LANDLOCK_TRUNCATE = 3
_LANDLOCK_SIGNALS = 6


class Enforcement(Struct, frozen=True, kw_only=True):
    """What holds for the commands of an action on this machine; `missing` has the reasons.
    `at_home`: they see sandboxes at their projects' own paths, and with `layers` what is ignored
    there too."""

    mode: ConfinementMode
    by: ConfinementMeans
    network: bool
    enforced: tuple[Guarantee, ...]
    missing: tuple[tuple[Guarantee, str], ...] = ()
    at_home: bool = False
    layers: bool = False

    @property
    def refusal(self) -> str | None:
        """Why nothing may run, if the confinement is required and not complete."""
        if self.mode is not ConfinementMode.REQUIRED or not self.missing:
            return None
        lacking = "; ".join(f"{what.value}: {why}" for what, why in self.missing)
        return f"confinement is required, and this machine cannot do all of it ({lacking})"


def strictest(asked: ConfinementMode | None, configured: ConfinementMode) -> ConfinementMode:
    """An action may say less than the default, but not less than what is required here."""
    if asked is None or configured is ConfinementMode.REQUIRED:
        return configured
    return asked


def enforcement(asked: Confinement, configured: ConfinementMode, machine: Abilities) -> Enforcement:
    mode = strictest(asked.mode, configured)
    wanted = [what for what in Guarantee if not (what is Guarantee.NETWORK and asked.network)]
    if mode is ConfinementMode.OFF:
        missing = tuple((what, "confinement is off") for what in wanted)
        return _result(mode, ConfinementMeans.NOTHING, asked, wanted, missing)
    if asked.by is ConfinementMeans.BUBBLEWRAP and machine.bubblewrap:
        return _result(mode, ConfinementMeans.BUBBLEWRAP, asked, wanted, _without_filter(machine))
    missing = _missing(wanted, machine)
    if asked.by is ConfinementMeans.BUBBLEWRAP and mode is ConfinementMode.REQUIRED:
        missing = ((Guarantee.WRITES, "bubblewrap is not installed or does not work"), *missing)
    result = _result(mode, ConfinementMeans.KERNEL, asked, wanted, missing)
    at_home = machine.read_only_view
    return replace(result, at_home=at_home, layers=at_home and machine.layers)


Missing = tuple[tuple[Guarantee, str], ...]


def _result(
    mode: ConfinementMode,
    by: ConfinementMeans,
    asked: Confinement,
    wanted: Sequence[Guarantee],
    missing: Missing,
) -> Enforcement:
    lacking = {what for what, _ in missing}
    return Enforcement(
        mode=mode,
        by=by,
        network=asked.network or by is ConfinementMeans.NOTHING,
        enforced=tuple(what for what in wanted if what not in lacking),
        missing=tuple(item for item in missing if item[0] in wanted),
    )


def _without_filter(machine: Abilities) -> Missing:
    if machine.socket_filter:
        return ()
    return ((Guarantee.NETWORK, "sockets of this machine's services cannot be filtered here"),)


def _missing(wanted: Sequence[Guarantee], machine: Abilities) -> Missing:
    view, version = machine.read_only_view, machine.landlock
    no_view = "user namespaces are not allowed here"
    no_table = "a process table of its own is not allowed here"
    reasons = {
        Guarantee.WRITES: None
        if view or version >= _LANDLOCK_TRUNCATE
        else f"{_landlock(version, _LANDLOCK_TRUNCATE)}, and {no_view}",
        Guarantee.ATTRIBUTES: None if view else no_view,
        Guarantee.PROCESSES: None
        if machine.process_table or version >= _LANDLOCK_SIGNALS
        else f"{_landlock(version, _LANDLOCK_SIGNALS)}, and {no_table}",
        Guarantee.NETWORK: None
        if machine.socket_filter
        else "this kernel or processor cannot filter system calls",
    }
    return tuple((what, why) for what in wanted if (why := reasons.get(what)) is not None)


def _landlock(version: int, needed: int) -> str:
    if version == 0:
        return "the kernel has no Landlock"
    return f"the kernel has Landlock {version}, and {needed} is needed"
