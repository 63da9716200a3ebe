"""How a command's output shows that something was refused to it, and what would allow it.

That is the place that the output names, and the line for the action file.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence

from cleveragents.domain.confinement import Confinement, ConfinementMeans

_MOST_LINES = 10
_LONGEST = 300
_LAST_LINES = 3
_REFUSED = re.compile(
    r"permission denied|read-only file system|operation not permitted|\b(EACCES|EROFS|EPERM)\b",
    re.IGNORECASE,
)
# Quoted, as most programs do it, or as a word that ends before a colon or a bracket.
_PATHS = re.compile(r"""['"‘“`]([~/][^'"’”`]*)['"’”`]|(?<![^\s(=])([~/][^\s:,;()'"]*)""")
_NETWORK = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
# Folders of a home that many programs share; one of them has its own below.
_SHARED = {".config": 2, ".cache": 2, ".local": 3}
_PLAIN = re.compile(r"[\w./~-][\w./~@+-]*")


def denied_lines(output: str) -> list[str]:
    """The lines in which a program says that it was not let; programs may also keep silent."""
    found = [line.strip()[:_LONGEST] for line in output.splitlines() if _REFUSED.search(line)]
    return found[:_MOST_LINES]


def denied_places(lines: Iterable[str], allowed: Sequence[str] = ()) -> list[str]:
    """The places that these lines name, but for what is allowed: something else is wrong there."""
    found: dict[str, None] = {}
    for line in lines:
        for named in _PATHS.finditer(line):
            path = os.path.normpath(os.path.expanduser(named[1] or named[2]))
            if not _is_program(path) and not any(_is_below(path, top) for top in allowed):
                found[path] = None
    return list(found)


def suspicious_lines(output: str) -> list[str]:
    """Last words of a program that name its own folder in the home, but not what was wrong."""
    last = [line.strip()[:_LONGEST] for line in output.splitlines() if line.strip()][-_LAST_LINES:]
    return [line for line in last if any(map(_own_folder, denied_places([line])))]


def denied_hint(asked: Confinement, lines: Sequence[str] = ()) -> str:
    """What to put into the action file, if the lines tell; `asked` is what is there."""
    network = "" if asked.network else ", and has no network"
    rule = f"it may write only in the plan's sandboxes and in $TMPDIR{network}; "
    line = _line_to_add(asked, lines)
    if not line:
        return rule + "allow more with `confinement` in the action file"
    return rule + f"if it may, put into the action file `{line}` and use that: agents plan use FILE"


def _line_to_add(asked: Confinement, lines: Sequence[str]) -> str:
    own = [folder for place in denied_places(lines) if (folder := _own_folder(place))]
    silent = [line for line in lines if not denied_places([line])]
    wants_network = not asked.network and any(map(_NETWORK.search, silent))
    if not own and not wants_network:
        return ""
    keys: list[str] = []
    if asked.mode is not None:
        keys.append(f"mode: {asked.mode.value}")
    if asked.by is not ConfinementMeans.KERNEL:
        keys.append(f"by: {asked.by.value}")
    if asked.network or wants_network:
        keys.append("network: true")
    if asked.environment:
        keys.append(f"environment: {_list(asked.environment)}")
    if places := list(dict.fromkeys((*asked.write, *own))):
        keys.append(f"write: {_list(places)}")
    return f"confinement: {{{', '.join(keys)}}}"


def _own_folder(path: str) -> str:
    """The program's own in the home folder; of other places we do not know what else is there, and
    one of them is the project itself."""
    home = os.path.expanduser("~")
    if not _is_below(path, home) or path == home:
        return ""
    parts = os.path.relpath(path, home).split("/")
    if not parts[0].startswith(".") or parts[0] == ".cleveragents":
        return ""
    return "/".join(("~", *parts[: _SHARED.get(parts[0], 1)]))


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _is_program(path: str) -> bool:
    """Who speaks is often the first word of the line."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _list(values: Iterable[str]) -> str:
    shown = (value if _PLAIN.fullmatch(value) else json.dumps(value) for value in values)
    return f"[{', '.join(shown)}]"
