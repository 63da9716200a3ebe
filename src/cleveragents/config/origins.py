"""Where a value comes from, in the words that `config get` shows, and what to type about that."""

_ENVIRONMENT = "environment "
_PROJECT = "project config "
_GLOBAL = "global config "
_FLAG = "flag "


def of_environment(variable: str) -> str:
    return f"{_ENVIRONMENT}{variable}"


def of_project(file: object) -> str:
    return f"{_PROJECT}{file}"


def of_global(file: object) -> str:
    return f"{_GLOBAL}{file}"


def of_flag(name: str) -> str:
    return f"{_FLAG}--{name}"


def is_project(origin: str) -> bool:
    return origin.startswith(_PROJECT)


def way_out(origin: str, key: str) -> str | None:
    """What ends the value that comes from there; None if a person has only tried to set one."""
    if origin.startswith(_ENVIRONMENT):
        variable = origin.removeprefix(_ENVIRONMENT)
        return (
            f"take it out of the environment with `unset {variable}`, or give {variable} another"
            " value"
        )
    if origin.startswith(_FLAG):
        return f"leave {origin.removeprefix(_FLAG)} out, or give it another value"
    if origin.startswith((_PROJECT, _GLOBAL)):
        project = " --project" if origin.startswith(_PROJECT) else ""
        return f"take it out with `agents config unset{project} {key}`, or correct the file"
    return None
