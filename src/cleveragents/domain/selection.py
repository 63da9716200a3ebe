"""How a person names single files of a plan: `path`, `resource:path`, or a resource."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cleveragents.domain.errors import PathOutsideSandboxError, UsageError
from cleveragents.domain.resource import PlanResource


class Selection(Struct, frozen=True, kw_only=True):
    """By resource, the files and folders meant; no path at all means all of that resource."""

    paths: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Each as `resource:path`, from which `select` makes the same selection again."""
        return tuple(
            f"{resource}:{path}" for resource, paths in self.paths.items() for path in paths or [""]
        )

    def has(self, resource: str, path: str) -> bool:
        """Whether this path, as people are shown it, is one of those meant or below one."""
        if resource not in self.paths:
            return False
        meant = [_as_shown(one) for one in self.paths[resource]]
        return not meant or any(path == one or path.startswith(f"{one}/") for one in meant)


def select(texts: Iterable[str], resources: Sequence[PlanResource]) -> Selection:
    """Raises UsageError where the resource is not clear, PathOutsideSandboxError for `..`."""
    chosen: dict[str, list[str]] = {}
    whole: set[str] = set()
    for text in texts:
        resource, path = _located(text, resources)
        chosen.setdefault(resource.name, [])
        if path and resource.kind.is_folder:
            chosen[resource.name].append(path)
        else:
            whole.add(resource.name)
    return Selection(
        paths={
            name: () if name in whole else tuple(dict.fromkeys(paths))
            for name, paths in chosen.items()
        }
    )


def _located(text: str, resources: Sequence[PlanResource]) -> tuple[PlanResource, str]:
    named = {resource.name: resource for resource in resources}
    before, colon, after = text.partition(":")
    if colon and before in named:
        return named[before], _normal(after)
    if text in named and not named[text].kind.is_folder:
        return named[text], ""
    trees = [resource for resource in resources if resource.kind.is_folder]
    if len(trees) == 1:
        return trees[0], _normal(text)
    if text in named:
        return named[text], ""
    choices = " or ".join(f"{name}:{text}" for name in named)
    raise UsageError(
        f"--only {text!r} does not say which resource it is in",
        f"say it as {choices}" if named else "run the plan first: it has no sandboxes yet",
    )


def _normal(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise PathOutsideSandboxError(path, "--only takes paths of the sandbox")
    return "/".join(parts)


def _as_shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
