"""What has to be found out about this machine before a program can be run in a plan of its own."""

from typing import Protocol

from msgspec import Struct


class StandingPlace(Struct, frozen=True, kw_only=True):
    """The repository or folder that one stands in, and where in it."""

    top: str
    below: str
    is_repository: bool


class RunSurroundings(Protocol):
    def place(self) -> StandingPlace: ...

    def kind_of_place(self, path: str) -> str | None:
        """Why a folder is no project, in words: a home folder, the top of the machine, our own
        data. None if it may be one."""
        ...

    def type_of(self, path: str) -> str:
        """The type of resource that is there, by a look at it."""
        ...

    def absolute(self, path: str) -> str:
        """As seen from where one stands."""
        ...

    def program(self, name: str) -> str | None:
        """Where it is; None if there is no such program."""
        ...

    def similar_program(self, name: str) -> str | None:
        """One that is there, and was probably meant."""
        ...

    def is_there(self, path: str) -> bool:
        """`~` being the home folder."""
        ...

    def is_set(self, variable: str) -> bool:
        """Whether the environment has it."""
        ...
