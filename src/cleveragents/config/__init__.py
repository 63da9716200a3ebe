"""The settings: what they are, where each value comes from, and how one is set."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from cleveragents.config import files
from cleveragents.config.keys import KEYS, ConfigProblem, Key, Settings, as_text, find_key
from cleveragents.config.values import (
    DEFAULT_TRIGGERS,
    FORMATS,
    TRIGGER_ALIASES,
    TRIGGERS,
    Base,
    Value,
    closest,
)

__all__ = [
    "DEFAULT_TRIGGERS",
    "FORMATS",
    "KEYS",
    "TRIGGERS",
    "TRIGGER_ALIASES",
    "ConfigProblem",
    "Key",
    "KeyDescription",
    "LoadedSettings",
    "Settings",
    "Value",
    "as_text",
    "describe_keys",
    "find_key",
    "load_settings",
    "set_value",
]

# What the sandbox tells the commands it runs; in a nested call these are not settings.
_OWN_VARIABLES = ("CLEVERAGENTS_SANDBOX_", "CLEVERAGENTS_PLAN_ID")


class LoadedSettings(Struct, frozen=True, kw_only=True):
    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def origin(self, key: str) -> str:
        """Where the value comes from, in words. Raises ConfigProblem for an unknown key."""
        return self.origins[find_key(key, "`config get`").name]

    def value(self, key: str) -> Value:
        """Raises ConfigProblem for an unknown key."""
        return getattr(self.settings, find_key(key, "`config get`").field)


class KeyDescription(Struct, frozen=True, kw_only=True):
    name: str
    value: str
    origin: str
    doc: str
    kind: str
    env: str


def load_settings(
    environ: Mapping[str, str],
    *,
    home: str,
    cwd: str,
    flags: Mapping[str, str],
    config_path: str | None,
) -> LoadedSettings:
    """Flag before environment, project config, global config, default; `flags` go by key name.

    Raises ConfigProblem for the first thing that is wrong, also where a stronger source wins.
    """
    user_home, here = Path(home), Path(cwd)
    base = Base(home=user_home, folder=here)
    layers = [_defaults(user_home)]
    if (file := files.global_file(user_home, here, config_path)) is not None:
        layers.append(_from_file("global config", file, user_home))
    if (file := files.project_file(user_home, here, config_path)) is not None:
        layers.append(_from_file("project config", file, user_home))
    layers.extend((_from_environment(environ, base), _from_flags(flags, base)))
    merged = {name: entry for layer in layers for name, entry in layer.items()}
    values: dict[str, Any] = {key.field: merged[key.name].value for key in KEYS}
    return LoadedSettings(
        settings=Settings(**values),
        origins={name: entry.origin for name, entry in merged.items()},
        warnings=tuple(_unknown_variables(environ)),
    )


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
    user_home, here = Path(home), Path(cwd)
    base = Base(home=user_home, folder=here)
    value = found.checked(found.kind.from_text(text), base, where)
    _refuse_what_no_file_holds(found, value, where)
    target = files.file_to_write(user_home, here, config_path, project=project)
    edited = _edited(target, found, _as_toml(value))
    files.make_folder(target.parent, private=not project)
    files.replace_file(target, edited)
    return str(target)


def describe_keys(loaded: LoadedSettings | None = None) -> tuple[KeyDescription, ...]:
    """Every key with its present value, or with its default where nothing was loaded."""
    return tuple(
        KeyDescription(
            name=key.name,
            value=as_text(key.shown(loaded.value(key.name)) if loaded else key.default),
            origin=loaded.origin(key.name) if loaded else "default",
            doc=key.doc,
            kind=key.kind.words,
            env=key.env,
        )
        for key in KEYS
    )


# --- layers -------------------------------------------------------------------------------------


class _Entry(Struct, frozen=True, kw_only=True):
    value: Value
    origin: str


_Layer = Mapping[str, _Entry]


def _defaults(home: Path) -> _Layer:
    base = Base(home=home, folder=home)
    return {
        key.name: _Entry(value=key.checked(key.default, base, "default"), origin="default")
        for key in KEYS
    }


def _from_file(kind: str, file: Path, home: Path) -> _Layer:
    where = f"{kind} {file}"
    base = Base(home=home, folder=file.parent)
    layer: dict[str, _Entry] = {}
    for name, raw in files.leaves(files.read_toml(file, where)[1]):
        key = find_key(name, where)
        if kind == "project config":
            key.refuse_in_project(where)
        layer[name] = _Entry(value=key.checked(raw, base, where), origin=where)
    return layer


def _from_environment(environ: Mapping[str, str], base: Base) -> _Layer:
    layer: dict[str, _Entry] = {}
    for key in KEYS:
        text = environ.get(key.env)
        if text is None or (not text and not key.kind.empty_is_a_value):
            continue
        where = f"environment {key.env}"
        value = key.checked(key.kind.from_text(text), base, where)
        layer[key.name] = _Entry(value=value, origin=where)
    return layer


def _from_flags(flags: Mapping[str, str], base: Base) -> _Layer:
    layer: dict[str, _Entry] = {}
    for name, text in flags.items():
        where = f"flag --{name}"
        key = find_key(name, where)
        value = key.checked(key.kind.from_text(text), base, where)
        layer[name] = _Entry(value=value, origin=where)
    return layer


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    known = [key.env for key in KEYS]
    for name in sorted(environ):
        if not name.startswith("CLEVERAGENTS_") or name in known or name.startswith(_OWN_VARIABLES):
            continue
        suggestion = closest(name, known)
        meant = f"; did you mean {suggestion}?" if suggestion else ""
        yield f"the environment variable {name} is not one of ours and is ignored{meant}"


# --- setting ------------------------------------------------------------------------------------


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


def _edited(file: Path, key: Key, value: object) -> str:
    """The file's text with one value changed, and everything else as it was."""
    import tomlkit  # noqa: PLC0415 - slow to load, and only `config set` writes
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    where = f"config file {file}"
    text, before = files.read_toml(file, where) if files.is_there(file) else ("", {})
    wanted = _with_value(before, key.path, value, where)
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for part in key.path[:-1]:
            table = table.setdefault(part, tomlkit.table())
        table[key.path[-1]] = value
        edited = tomlkit.dumps(document)
        outcome = tomlkit.parse(edited).unwrap()
    except (TOMLKitError, RecursionError) as error:
        raise ConfigProblem("bad-file", "", where, f"cannot be edited: {error}") from error
    # Read back: a layout that the editor does not master must not cost other values.
    if outcome != wanted:
        raise ConfigProblem("bad-file", "", where, f"set `{key.name}` there by hand")
    return edited


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
