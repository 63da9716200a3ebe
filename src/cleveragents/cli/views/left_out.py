"""How it looks what an apply leaves out: ignored files, what is excluded, empty folders.

And what of them it brings, because somebody wants it.
"""

from collections.abc import Iterator, Mapping, Sequence

from cleveragents.domain.changes import ResourceDiff

_MOST_NAMES = 10
_IGNORED = "ignored or excluded"
_EMPTY = "an empty folder"


def data(diffs: Mapping[str, ResourceDiff]) -> dict[str, list[dict[str, str]]]:
    """Each path, and why."""
    return {"left_out": [*_rows(diffs)]}


def brought_data(diffs: Mapping[str, ResourceDiff]) -> dict[str, list[dict[str, str]]]:
    rows = [{"resource": name, "path": path} for name, d in diffs.items() for path in d.brought]
    return {"brought": rows}


def brought(diffs: Mapping[str, ResourceDiff]) -> list[str]:
    """What comes along although it is ignored."""
    return [
        f"with what was changed in these ignored paths of {name}: {_some(item.brought)}"
        for name, item in diffs.items()
        if item.brought
    ]


def warnings(diffs: Mapping[str, ResourceDiff]) -> list[str]:
    ignored = [
        f"apply does not take these ignored files of {name}: {_some(item.left_behind)}"
        + ("; --with-ignored PATH brings what you name" if item.can_bring else "")
        for name, item in diffs.items()
        if item.left_behind
    ]
    empty = [
        f"git keeps no empty folders, so that apply leaves these of {name} out:"
        f" {_some(item.empty_folders)}"
        for name, item in diffs.items()
        if item.empty_folders
    ]
    return [*ignored, *empty]


def _rows(diffs: Mapping[str, ResourceDiff]) -> Iterator[dict[str, str]]:
    for name, item in diffs.items():
        for reason, paths in ((_IGNORED, item.left_behind), (_EMPTY, item.empty_folders)):
            yield from ({"resource": name, "path": path, "reason": reason} for path in paths)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
