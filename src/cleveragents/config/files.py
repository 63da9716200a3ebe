"""The config files: where they are, how they are read, and how they are replaced.

Paths are text: every command looks for these files, and `pathlib` would cost it more than that.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from cleveragents.config.keys import KEYS, ConfigProblem
from cleveragents.config.values import Base

FOLDER = ".cleveragents"
FILE = "config.toml"


def global_file(home: str, cwd: str, config_path: str | None) -> str | None:
    """The file that is there; one that was asked for and is not there is a ConfigProblem."""
    if config_path is None:
        file = _file_in(home)
        return file if is_there(file) else None
    file = Base(home=home, folder=cwd).absolute(config_path)
    if not is_there(file):
        raise ConfigProblem("bad-file", "", f"config file {file}", "there is no such file")
    return file


def project_file(home: str, cwd: str, config_path: str | None) -> str | None:
    """The nearest one, from `cwd` upwards."""
    folder, below = cwd, ""
    while folder != below:
        file = _file_in(folder)
        if is_there(file) and not _is_global(file, home, cwd, config_path):
            return file
        folder, below = os.path.dirname(folder), folder
    return None


def file_to_write(home: str, cwd: str, config_path: str | None, *, project: bool) -> str:
    if not project:
        return global_file(home, cwd, config_path) or _file_in(home)
    file = project_file(home, cwd, config_path) or _file_in(cwd)
    if _is_global(file, home, cwd, config_path):
        problem = "this is the global config; a project needs a folder of its own"
        raise ConfigProblem("bad-file", "", f"project config {file}", problem)
    return file


def is_there(file: str) -> bool:
    """A folder that we may not look into, such as another user's, holds no config of ours."""
    return os.path.exists(file)


def read_toml(file: str, where: str) -> tuple[str, dict[str, Any]]:
    """The text and what it means. Raises ConfigProblem naming `where`."""
    import tomllib  # noqa: PLC0415 - only needed where there is a config file

    text = _read_text(file, where)
    try:
        return text, tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        last = f"line {text.count(chr(10)) + 1}, the end of the file"
        reason = str(error).replace("end of document", last)
        raise ConfigProblem("bad-file", "", where, f"is not valid TOML: {reason}") from error


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Each value under its dotted name; a table that no key needs counts as a value."""
    for part, value in table.items():
        # A quoted key with dots in it is not the same as tables, and must not look the same.
        name = prefix + (part if "." not in part else f'"{part}"')
        is_known = any(key.name == name for key in KEYS)
        leads_on = any(key.name.startswith(f"{name}.") for key in KEYS)
        if isinstance(value, dict) and not is_known and (value or leads_on):
            yield from leaves(cast("Mapping[str, Any]", value), f"{name}.")
        else:
            yield name, value


def make_folder(folder: str, *, private: bool) -> None:
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700 if private else 0o777)
    except OSError as error:
        raise _cannot("make", f"folder {folder}", error) from error


def replace_file(file: str, text: str) -> None:
    """Whole or not at all, and durable; the file is then readable by its owner only."""
    target = os.path.realpath(file)  # a symlink stays one: it may lead to a folder kept under git
    try:
        _write_over(target, text)
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        raise _cannot("write", f"config file {file}", error) from error


def _file_in(folder: str) -> str:
    return os.path.join(folder, FOLDER, FILE)


def _is_global(file: str, home: str, cwd: str, config_path: str | None) -> bool:
    # With --config-path the usual global file is unused, but it does not become a project's.
    own = [_file_in(home)]
    if config_path is not None:
        own.append(Base(home=home, folder=cwd).absolute(config_path))
    return os.path.realpath(file) in [os.path.realpath(path) for path in own]


def _read_text(file: str, where: str) -> str:
    try:
        if not os.path.isfile(file):
            raise ConfigProblem("bad-file", "", where, "is not a file")
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise _cannot("read", where, error) from error
    except UnicodeDecodeError as error:
        raise ConfigProblem("bad-file", "", where, "is not UTF-8 text") from error


def _write_over(target: str, text: str) -> None:
    import tempfile  # noqa: PLC0415 - only `config set` writes

    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=f".{FILE}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot(what: str, where: str, error: OSError) -> ConfigProblem:
    return ConfigProblem("bad-file", "", where, f"cannot {what} it: {error.strerror or error}")
