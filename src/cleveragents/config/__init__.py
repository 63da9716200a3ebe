"""The settings: what they are, where each value comes from, and how one is set."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from cleveragents.config import files, origins
from cleveragents.config.keys import KEYS, ConfigProblem, Key, Settings, as_text, find_key
from cleveragents.config.origins import way_out
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
    "way_out",
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
    base = Base(home=home, folder=cwd)
    layers = [_defaults(home)]
    if (file := files.global_file(home, cwd, config_path)) is not None:
        layers.append(_from_file(origins.of_global(file), file, home))
    if (file := files.project_file(home, cwd, config_path)) is not None:
        layers.append(_from_file(origins.of_project(file), file, home))
    layers.extend((_from_environment(environ, base), _from_flags(flags, base)))
    merged = {name: entry for layer in layers for name, entry in layer.items()}
    values: dict[str, Any] = {key.field: merged[key.name].value for key in KEYS}
    return LoadedSettings(
        settings=Settings(**values),
        origins={name: entry.origin for name, entry in merged.items()},
        warnings=tuple(_unknown_variables(environ)),
    )


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


def _defaults(home: str) -> _Layer:
    base = Base(home=home, folder=home)
    return {
        key.name: _Entry(value=key.checked(key.default, base, "default"), origin="default")
        for key in KEYS
    }


def _from_file(where: str, file: str, home: str) -> _Layer:
    base = Base(home=home, folder=os.path.dirname(file))
    layer: dict[str, _Entry] = {}
    for name, raw in files.leaves(files.read_toml(file, where)[1]):
        key = find_key(name, where)
        if origins.is_project(where):
            key.refuse_in_project(where)
        layer[name] = _Entry(value=key.checked(raw, base, where), origin=where)
    return layer


def _from_environment(environ: Mapping[str, str], base: Base) -> _Layer:
    layer: dict[str, _Entry] = {}
    for key in KEYS:
        text = environ.get(key.env)
        if text is None or (not text and not key.kind.empty_is_a_value):
            continue
        where = origins.of_environment(key.env)
        value = key.checked(key.kind.from_text(text), base, where)
        layer[key.name] = _Entry(value=value, origin=where)
    return layer


def _from_flags(flags: Mapping[str, str], base: Base) -> _Layer:
    layer: dict[str, _Entry] = {}
    for name, text in flags.items():
        where = origins.of_flag(name)
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
