"""The types of resources, and what is true of each without looking at one (ADR 0073).

What is done to a resource of a type is an adapter's, in `infrastructure/sandbox`. The few facts
that rules and messages need are here, so that none of them asks for a type by its name.
"""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.errors import UsageError


class ResourceType(str):
    """What an action file calls it; `type_named` makes one of a text."""

    __slots__ = ()


class ResourceKind(Struct, frozen=True, kw_only=True):
    """`is_folder`: it is made of paths, which can be named one by one; anything else is one thing
    as a whole, and if it is a file, its sandbox has a folder of its own. What is on no disk has a
    `url_pattern`, and people are told how such a URL begins, `url_start`. `beside` are the endings
    of files that belong to it and lie next to it. `has_repository`: its sandbox has a repository of
    its own, which steps can break without breaking the files. `strategy` says for people how the
    sandbox is made. `planned`: nothing can work on it yet."""

    type: ResourceType
    is_folder: bool = False
    is_database: bool = False
    has_repository: bool = False
    beside: tuple[str, ...] = ()
    strategy: str = "copy"
    url_pattern: str = ""
    url_start: str = ""
    planned: bool = False

    @property
    def key(self) -> str:
        """Where an action file says which one it is."""
        return "url" if self.url_pattern else "path"


GIT_CHECKOUT = ResourceKind(
    type=ResourceType("git-checkout"), is_folder=True, has_repository=True, strategy="git clone"
)
FS_DIRECTORY = ResourceKind(type=ResourceType("fs-directory"), is_folder=True)
SQLITE = ResourceKind(
    type=ResourceType("sqlite"), is_database=True, beside=("-wal", "-shm", "-journal")
)
# So that an action file which names it is told the truth, and not that there is no such word.
POSTGRES = ResourceKind(
    type=ResourceType("postgres"),
    is_database=True,
    url_pattern=r"^postgres(ql)?(\+\w+)?://.+",
    url_start="postgresql://",
    planned=True,
)

_KINDS = {kind.type: kind for kind in (GIT_CHECKOUT, FS_DIRECTORY, SQLITE, POSTGRES)}


def kinds() -> Sequence[ResourceKind]:
    """In the order in which people are told of them; `working` are those that can be used."""
    return tuple(_KINDS.values())


def working() -> Sequence[ResourceKind]:
    return [kind for kind in kinds() if not kind.planned]


def kind_of(type_: ResourceType) -> ResourceKind:
    return _KINDS[type_]


def type_named(text: str) -> ResourceType:
    """Raises ValueError."""
    type_ = ResourceType(text)
    if type_ not in _KINDS:
        raise ValueError(f"{text!r} is no type of resource")
    return type_


def add_kind(kind: ResourceKind) -> None:
    """For whoever brings a type of their own; from then on, action files may name it."""
    if _KINDS.setdefault(kind.type, kind) != kind:
        raise UsageError(f"there is a resource type {kind.type} already", "give yours another name")
