"""The config files: where they are, how they are read, and how they are replaced."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from cleveragents.config.keys import KEYS, ConfigProblem
from cleveragents.config.values import Base

FOLDER = ".cleveragents"
FILE = "config.toml"


def global_file(home: Path, cwd: Path, config_path: str | None) -> Path | None:
    """The file that is there; one that was asked for and is not there is a ConfigProblem."""
    if config_path is None:
        file = home / FOLDER / FILE
        return file if is_there(file) else None
    file = Path(Base(home=home, folder=cwd).absolute(config_path))
    if not is_there(file):
        raise ConfigProblem("bad-file", "", f"config file {file}", "there is no such file")
    return file


def project_file(home: Path, cwd: Path, config_path: str | None) -> Path | None:
    """The nearest one, from `cwd` upwards."""
    for folder in (cwd, *cwd.parents):
        file = folder / FOLDER / FILE
        if is_there(file) and not _is_global(file, home, cwd, config_path):
            return file
    return None


def file_to_write(home: Path, cwd: Path, config_path: str | None, *, project: bool) -> Path:
    if not project:
        return global_file(home, cwd, config_path) or home / FOLDER / FILE
    file = project_file(home, cwd, config_path) or cwd / FOLDER / FILE
    if _is_global(file, home, cwd, config_path):
        problem = "this is the global config; a project needs a folder of its own"
        raise ConfigProblem("bad-file", "", f"project config {file}", problem)
    return file


def is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        # A folder that we may not look into, such as another user's, holds no config of ours.
        return False


def read_toml(file: Path, where: str) -> tuple[str, dict[str, Any]]:
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


def make_folder(folder: Path, *, private: bool) -> None:
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot("make", f"folder {folder}", error) from error


def replace_file(file: Path, text: str) -> None:
    """Whole or not at all, and durable; the file is then readable by its owner only."""
    target = file.resolve()  # a symlink stays one: it may lead to a folder kept under git
    try:
        _write_over(target, text)
        _sync_folder(target.parent)
    except OSError as error:
        raise _cannot("write", f"config file {file}", error) from error


def _is_global(file: Path, home: Path, cwd: Path, config_path: str | None) -> bool:
    # With --config-path the usual global file is unused, but it does not become a project's.
    own = [home / FOLDER / FILE]
    if config_path is not None:
        own.append(Path(Base(home=home, folder=cwd).absolute(config_path)))
    return file.resolve() in [path.resolve() for path in own]


def _read_text(file: Path, where: str) -> str:
    try:
        if not file.is_file():
            raise ConfigProblem("bad-file", "", where, "is not a file")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise _cannot("read", where, error) from error
    except UnicodeDecodeError as error:
        raise ConfigProblem("bad-file", "", where, "is not UTF-8 text") from error


def _write_over(target: Path, text: str) -> None:
    import tempfile  # noqa: PLC0415 - only `config set` writes

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{FILE}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot(what: str, where: str, error: OSError) -> ConfigProblem:
    return ConfigProblem("bad-file", "", where, f"cannot {what} it: {error.strerror or error}")
