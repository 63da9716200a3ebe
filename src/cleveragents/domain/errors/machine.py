"""What can go wrong with the machine: database, disk, git, terminal."""

from cleveragents.domain.errors.base import PlanError


class DatabaseBusyError(PlanError, code="database-busy"):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"the database {path} is locked by another process",
            "try again in a moment; nothing was lost",
        )


class DatabaseDamagedError(PlanError, code="database-damaged"):
    """A row is not as we write them: somebody else did, or the disk."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the database {path} is damaged: {reason}",
            "see all that is wrong with it with `agents doctor`, then put back a copy of it, or the"
            " value itself",
        )


class DatabaseTooNewError(PlanError, code="database-too-new"):
    def __init__(self, path: str, revision: str) -> None:
        super().__init__(
            f"the database {path} was written by a newer version (schema {revision})",
            "upgrade with `pip install -U cleveragents`, or use another --data-dir",
        )


class DatabaseTooOldError(PlanError, code="database-too-old"):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"the database {path} was written by a version that this one cannot read",
            "use another --data-dir, or move the data folder away and begin anew",
        )


class DatabaseUnusableError(PlanError, code="database-unusable"):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the database {path} cannot be used: {reason}",
            "check the file, or use another --data-dir",
        )


class DataDirError(PlanError, code="data-dir-unusable"):
    def __init__(self, path: str, reason: str, remedy: str = "make it writable") -> None:
        super().__init__(
            f"the data folder {path} cannot be used: {reason}",
            f"{remedy}, or choose another with --data-dir or CLEVERAGENTS_DATA_DIR",
        )


class GitUnavailableError(PlanError, code="git-unavailable"):
    def __init__(self, reason: str) -> None:
        super().__init__(f"git cannot be used: {reason}", "install git 2.38 or newer")


class CurrentFolderError(PlanError, code="current-folder-gone"):
    def __init__(self) -> None:
        super().__init__("the current folder does not exist any more", "change to another folder")


class HomeUnknownError(PlanError, code="home-unknown"):
    def __init__(self) -> None:
        super().__init__(
            "no home folder is known: HOME is not set, and the system knows none for this user",
            "set HOME to a folder of yours",
        )


class MachineError(PlanError, code="machine-error"):
    """The operating system refused something that no adapter foresaw, such as a full disk."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the operating system refused: {reason}",
            "check the disk and the permissions, then run the command again",
        )


class OutOfResourcesError(PlanError, code="out-of-resources"):
    """The machine, or a limit on this process, has no more of something; nothing is broken."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, f"{remedy}, then run the command again")


class OutputNotWrittenError(PlanError, code="output-not-written"):
    """The answer of a command could not be written; `done` is a command that did its work."""

    def __init__(self, reason: str, done: str | None = None) -> None:
        if done is None:
            super().__init__(
                f"the answer could not be written to standard output: {reason}",
                "make room there or send it elsewhere, then run the command again",
            )
        else:
            super().__init__(
                f"`{done}` is done; only its answer could not be written to standard"
                f" output: {reason}",
                "do not run it again; see what it did with a command that changes nothing, such as"
                " `agents plan status` or `agents config list`",
            )


class InterruptedCommandError(PlanError, code="command-interrupted", exit_code=130):
    def __init__(self) -> None:
        super().__init__(
            "interrupted", "run the command again; what was unfinished is mended first"
        )
