"""Setting one value in a config file, and taking one out: everything else stays as it was."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from cleveragents.config import files
from cleveragents.config.keys import KEYS, ConfigProblem, Key, as_text, find_key
from cleveragents.config.values import Base, Value


class Unset(Struct, frozen=True, kw_only=True):
    """`removed` False: the file did not have the key, or is not there."""

    file: str
    removed: bool


def set_value(
    key: str, text: str, *, home: str, cwd: str, config_path: str | None, project: bool
) -> str:
    """Write one value to the global or the project file and give back that file's path.

    Everything is checked before anything is written. Raises ConfigProblem.
    """
    where = "`config set`"
    found = find_key(key, where)
    if project:
        found.refuse_in_project(where)
    base = Base(home=home, folder=cwd)
    value = found.checked(found.kind.from_text(text), base, where)
    _refuse_what_no_file_holds(found, value, where)
    target = files.file_to_write(home, cwd, config_path, project=project)
    read = _Read.of(target)
    written = _as_toml(value)
    wanted = _with_value(read.content, found.path, written, read.where)
    edited = _edited(read, wanted, key, lambda document: _put(document, found.path, written))
    files.make_folder(os.path.dirname(target), private=not project)
    files.replace_file(target, edited)
    return target


def unset_value(key: str, *, home: str, cwd: str, config_path: str | None, project: bool) -> Unset:
    """Take one value out of the global or the project file. Raises ConfigProblem.

    Also one that is no key of ours, if the file has it: nothing works until that is out.
    """
    target = files.file_to_write(home, cwd, config_path, project=project)
    read = _Read.of(target)
    path = next((path for name, path in _values(read.content) if name == key), None)
    if path is None:
        find_key(key, "`config unset`")
        return Unset(file=target, removed=False)
    wanted = _without_value(read.content, path)
    edited = _edited(read, wanted, key, lambda document: _take_out(document, path))
    files.replace_file(target, edited)
    return Unset(file=target, removed=True)


# --- values -------------------------------------------------------------------------------------


def _refuse_what_no_file_holds(key: Key, value: Value, where: str) -> None:
    """The value may come from where we are, as a path does, and so from bytes that are no UTF-8."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        problem = "a config file holds UTF-8 text only, and this is none"
        raise ConfigProblem("bad-value", key.name, where, problem) from None


def _as_toml(value: Value) -> object:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return as_text(value) if value is None else value


# --- files --------------------------------------------------------------------------------------


class _Read(Struct, frozen=True, kw_only=True):
    """A config file as it is; empty if it is not there."""

    where: str
    text: str
    content: dict[str, Any]

    @classmethod
    def of(cls, file: str) -> "_Read":
        where = f"config file {file}"
        text, content = files.read_toml(file, where) if files.is_there(file) else ("", {})
        return cls(where=where, text=text, content=content)


def _edited(read: _Read, wanted: Mapping[str, Any], key: str, change: Callable[[Any], None]) -> str:
    """The file's text after the change, and everything else as it was."""
    import tomlkit  # noqa: PLC0415 - slow to load, and only these two commands write
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    try:
        document = tomlkit.parse(read.text)
        change(document)
        edited = tomlkit.dumps(document)
        outcome = tomlkit.parse(edited).unwrap()
    except (TOMLKitError, RecursionError) as error:
        raise ConfigProblem("bad-file", "", read.where, f"cannot be edited: {error}") from error
    # Read back: a layout that the editor does not master must not cost other values. A table that
    # is empty, or not there, says the same.
    if dict(files.leaves(outcome)) != dict(files.leaves(wanted)):
        raise ConfigProblem("bad-file", "", read.where, f"edit `{key}` there by hand")
    return edited


def _put(document: Any, path: Sequence[str], value: object) -> None:
    import tomlkit  # noqa: PLC0415 - as above

    table = document
    for part in path[:-1]:
        table = table.setdefault(part, tomlkit.table())
    table[path[-1]] = value


def _take_out(document: Any, path: Sequence[str]) -> None:
    """A table that no key needs goes with its last value: it would be a mistake of its own."""
    if len(path) > 1:
        _take_out(document[path[0]], path[1:])
        if document[path[0]] or _is_needed(path[0]):
            return
    del document[path[0]]


def _with_value(
    table: Mapping[str, Any], path: Sequence[str], value: object, where: str
) -> dict[str, Any]:
    if len(path) == 1:
        return {**table, path[0]: value}
    inner = table.get(path[0], {})
    if not isinstance(inner, dict):
        raise ConfigProblem("bad-file", path[0], where, "must be a table")
    changed = _with_value(cast("Mapping[str, Any]", inner), path[1:], value, where)
    return {**table, path[0]: changed}


def _without_value(table: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    rest = {name: value for name, value in table.items() if name != path[0]}
    if len(path) == 1:
        return rest
    inner = _without_value(table[path[0]], path[1:])
    return {**table, path[0]: inner} if inner or _is_needed(path[0]) else rest


def _is_needed(part: str) -> bool:
    return any(part in key.path for key in KEYS)


def _values(
    table: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What can be taken out: by its name, as `files.leaves` has it, the way to it."""
    for part, value in table.items():
        path = (*above, part)
        name = ".".join(one if "." not in one else f'"{one}"' for one in path)
        if isinstance(value, dict):
            yield from _values(cast("Mapping[str, Any]", value), path)
        if not isinstance(value, dict) or not any(k.name.startswith(f"{name}.") for k in KEYS):
            yield name, path
