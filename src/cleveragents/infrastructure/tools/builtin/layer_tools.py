"""The file tools on paths of ignored folders, of which a sandbox has only what was changed.

Each brings up what it needs, and then is the tool that it is everywhere. Recursive lists, and
searches, look at what the sandbox has, and not through all that a package manager installed.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError
from cleveragents.domain.resource import SandboxAddress
from cleveragents.infrastructure.files.layers.known_layers import known_layers
from cleveragents.infrastructure.files.layers.layered_folder import LayeredFolder
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.tools.builtin import file_tools
from cleveragents.infrastructure.tools.sandbox_paths import resolve

Arguments = Mapping[str, Any]


def run(tool: str, address: SandboxAddress, arguments: Arguments, most: int) -> ToolResult:
    """As `file_tools.run`."""
    root, layers = address.value, known_layers(address.value) if address.home else []
    if not layers:
        return file_tools.run(tool, root, arguments, most)
    with RootedFolder(root) as anchor:
        layered = LayeredFolder(anchor, address.home, layers)
        named = [arguments[key] for key in ("path", "to") if key in arguments]
        paths = [os.fsencode(resolve(root, path)) for path in named]
        if not any(layered.is_in_layer(path) or layered.is_layer(path) for path in paths):
            return file_tools.run(tool, root, arguments, most)
        with file_tools.reporting(arguments["path"]):
            return _in_layer(tool, layered, address, paths, arguments, most)


def _in_layer(
    tool: str,
    layered: LayeredFolder,
    address: SandboxAddress,
    paths: list[bytes],
    arguments: Arguments,
    most: int,
) -> ToolResult:
    path = paths[0]
    if tool == "file.read" and layered.shows_lower(path):
        return file_tools.read(address.home, arguments, most)
    if tool == "file.list" and not arguments.get("recursive", False):
        found = sorted(layered.names(path).items())
        return file_tools.listed([os.fsdecode(n) + ("/" if is_ else "") for n, is_ in found], most)
    if tool == "file.write":
        layered.make_room(path)
    elif tool == "file.edit":
        layered.copy_up(path)
    elif tool == "file.delete":
        return _delete(layered, address, path, arguments, most)
    elif tool == "file.move":
        return _move(layered, address, (path, paths[1]), arguments, most)
    return file_tools.run(tool, address.value, arguments, most)


def _delete(
    layered: LayeredFolder, address: SandboxAddress, path: bytes, arguments: Arguments, most: int
) -> ToolResult:
    if not layered.is_there(path):
        raise FileNotFoundError(2, os.strerror(2))
    if layered.names(path) and not arguments.get("recursive", False):
        raise ToolError(
            f"{arguments['path']}: the folder is not empty; add `recursive: true`",
            "correct the step and resume the plan",
        )
    told = ToolResult(output=f"deleted {arguments['path']}")
    if not layered.shows_lower(path):
        recursive = {**arguments, "recursive": True}
        told = file_tools.run("file.delete", address.value, recursive, most)
    layered.cover(path)
    return told


def _move(
    layered: LayeredFolder,
    address: SandboxAddress,
    paths: tuple[bytes, bytes],
    arguments: Arguments,
    most: int,
) -> ToolResult:
    source, target = paths
    if not layered.is_there(source):
        raise FileNotFoundError(2, os.strerror(2))
    if not arguments.get("overwrite", False) and layered.is_there(target):
        raise ToolError(
            f"{arguments['path']}: {arguments['to']} exists already; add `overwrite: true`",
            "correct the step and resume the plan",
        )
    layered.copy_up(source)
    layered.uncover(target)
    told = file_tools.run("file.move", address.value, arguments, most)
    layered.close_folder(target)
    with suppress(FileExistsError):
        layered.cover(source)
    return told
