"""How far a call of a tool looks and writes, as far as that is known or declared.

What it may write is decided elsewhere: `confinement/places.py`, and `sandbox_paths.py` for tools
that run in our own process."""

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.domain.action import Action, ResourceSpec, ToolSpec
from cleveragents.domain.footprint import EVERYTHING, Reach, Reads, parents
from cleveragents.infrastructure.files.excludes import excludes

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")
# They look at or change one file, and nothing that may lie below its path.
_SINGLE = ("file.read", "file.write", "file.edit")
# What built-in tools write that they need not have read.
_TARGETS: Mapping[str, tuple[str, ...]] = {"file.write": ("{path}",)}


def reach_of(
    spec: ToolSpec, arguments: Mapping[str, Any], action: Action, sandboxes: Mapping[str, str]
) -> Reach:
    """`sandboxes` are those that the call was made in, by the names of their resources."""
    acts = spec.writes or bool(spec.outside_effects)
    if spec.reads is None or spec.validation is not None:
        return Reach(writes_hidden=acts)
    call = _ToolCall(spec, arguments, action, sandboxes)
    reads, targets = call.places(spec.reads), call.places(_TARGETS.get(spec.name, spec.write_scope))
    if reads is None or targets is None:
        return Reach(writes_hidden=acts)  # it leads to where nobody has declared anything
    is_hidden = spec.network or call.is_hidden
    return Reach(
        reads=reads,
        targets=targets,
        reads_hidden=is_hidden,
        # A built-in tool changes what it was told to; a program may leave something anywhere.
        writes_hidden=acts and (is_hidden or not call.is_built_in),
    )


class _ToolCall:
    """One call of a tool, and whether some of what it looks at or writes is in no snapshot."""

    def __init__(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> None:
        self._spec = spec
        self._arguments = arguments
        self._action = action
        self._sandboxes = sandboxes
        self.is_hidden = False

    @property
    def is_built_in(self) -> bool:
        """Only they are told by each call what to work on."""
        return self._spec.resource is None

    def places(self, declared: Sequence[str]) -> Reads | None:
        """By resource, the paths that these stand for in this call; None if that is not clear."""
        found: dict[str, list[str]] = {}
        for entry in declared:
            resource, path = self._meant(entry)
            if resource is None or path is None:
                return None
            real = _real(self._sandboxes.get(resource.name, ""), path)
            found.setdefault(resource.name, []).extend(dict.fromkeys((path, real or path)))
            single = self._spec.name in _SINGLE
            self.is_hidden |= real is None or _is_hidden(resource, path, single=single)
        return {name: tuple(paths) for name, paths in found.items()}

    def _meant(self, entry: str) -> tuple[ResourceSpec | None, str | None]:
        """The resource, and the path in it."""
        whole = None if self.is_built_in else self._action.resource(entry)
        if whole is not None:
            return whole, EVERYTHING
        name, resources = self._spec.resource, self._action.resources
        name = name or self._arguments.get("resource")
        if name is None and len(resources) == 1:
            name = resources[0].name
        return self._action.resource(str(name)), _path(entry, self._arguments)


def _path(entry: str, arguments: Mapping[str, Any]) -> str | None:
    """Without an argument that may be left out it is all of the resource; None if it is no path."""
    names = PLACEHOLDER.findall(entry)
    if any(name not in arguments for name in names):
        return EVERYTHING
    filled = PLACEHOLDER.sub(lambda found: str(arguments[found[1]]), entry)
    path = posixpath.normpath(filled)
    leads_out = posixpath.isabs(path) or path.split("/")[0] == ".."
    return None if not filled or "\0" in filled or leads_out else path


def _real(root: str, path: str) -> str | None:
    """Where that is once links are followed; None if they lead out of the sandbox."""
    if path == EVERYTHING:
        return path
    top = os.path.realpath(root)
    relative = os.path.relpath(os.path.realpath(os.path.join(top, path)), top)
    return None if relative.split(os.sep)[0] == os.pardir else relative


def _is_hidden(resource: ResourceSpec, path: str, *, single: bool) -> bool:
    """Whether some of what is there may be in no snapshot."""
    if not resource.checkpointable:
        return True
    if not resource.exclude or not single:
        return bool(resource.exclude)
    left_out = excludes(resource.exclude)
    folders = [(os.fsencode(folder), True) for folder in parents(path)]
    return any(one in left_out for one in [(os.fsencode(path), False), *folders])
