"""What a sandbox holds in repositories inside of it: submodules, on every level.

What a step wrote into a `.git` leads only to places of the sandbox itself; what leads elsewhere
is an obstacle, as is everything that an apply could only lose.
"""

import os
from collections.abc import Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import read_file
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.git_dir import REPOSITORY, quoted
from cleveragents.infrastructure.sandbox.git.repository.ref_files import head_commit, read_refs
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import users_submodule
from cleveragents.infrastructure.sandbox.git.submodules.records import Named, links_in, named_in
from cleveragents.infrastructure.sandbox.git.trees import FolderTree, GitTrees, text_of

_POINTER = b"gitdir: "


class SubmoduleContents(Struct, frozen=True, kw_only=True):
    """One submodule as the sandbox has it.

    `within` is the path of the one that it is part of, empty for the project itself. `start` is
    the commit that the plan began with, empty if the plan has added it; `commit` is where it
    stands, and `tree` what its folder holds. `git` looks at it inside of the sandbox.
    """

    path: str
    within: str
    start: str
    commit: str
    tree: str
    git: Git
    named: Named | None
    shallow: bytes
    is_clean: bool

    @property
    def is_changed(self) -> bool:
        return self.commit != self.start or not self.is_clean


class Looked(Struct):
    """`folder` is the project's own, with what was added among it; `obstacles` are told by path.

    Inner submodules come before those around them.
    """

    folder: FolderTree
    inside: list[SubmoduleContents] = field(default_factory=list[SubmoduleContents])
    obstacles: dict[str, str] = field(default_factory=dict[str, str])


def look(git: Git, trees: GitTrees, resource: PlanResource, folder: FolderTree) -> Looked:
    """`folder` is what the sandbox holds, without repositories that are not the base's."""
    looked = Looked(folder=folder)
    _SubmoduleWalk(git, trees, resource, looked).run()
    return looked


class _Around(Struct, frozen=True, kw_only=True):
    """The project or submodule that others are part of: the commits that it named for them when
    the plan began, and what its `.gitmodules` says now."""

    path: str
    links: Mapping[str, str]
    named: Mapping[str, Named]

    def below(self, inner: str) -> str:
        return f"{self.path}/{inner}" if self.path else inner


class _SubmoduleWalk:
    def __init__(self, git: Git, trees: GitTrees, resource: PlanResource, looked: Looked) -> None:
        self._git, self._trees = git, trees
        self._resource = resource
        self._looked = looked

    def run(self) -> None:
        folder = self._looked.folder
        links = links_in(self._git, folder.tree)
        if not links and not folder.nested:
            return
        around = _Around(
            path="",
            links=links_in(self._git, self._resource.base),
            named=named_in(self._git, folder.tree),
        )
        added = self._added(folder, around.named)
        for path, link in sorted({**links, **added}.items()):
            self._visit(path, link, around)
        if added:
            self._looked.folder = self._with_links(folder, added)

    def _added(self, folder: FolderTree, named: Mapping[str, Named]) -> dict[str, str]:
        """Repositories that a step has made and named in `.gitmodules`, with their commits."""
        found: dict[str, str] = {}
        for raw in folder.nested:
            path = os.fsdecode(raw.removesuffix(b"/"))
            if _is_brought(path, self._resource):
                continue
            place = self._place_of(path)
            commit = _commit(place) if place else ""
            if path not in named:
                self._refuse(path, "is a repository of its own that no submodule stands for")
            elif not commit:
                self._refuse(path, "is a submodule without a commit")
            else:
                found[path] = commit
        return found

    def _visit(self, inner: str, link: str, around: "_Around") -> None:
        """`link` is the commit that is named around it."""
        path = around.below(inner)
        top = os.path.join(self._resource.sandbox_path, path)
        if not os.path.lexists(os.path.join(top, ".git")):
            if os.path.isdir(top) and os.listdir(top):
                self._refuse(path, "has files, but no repository of its own")
            return
        place = self._place_of(path)
        if place is None or _commit(place) != link:
            self._refuse(path, "has no repository of its own in the sandbox")
            return
        one = self._inside(inner, place, around)
        folder = self._trees.of_sandbox(one.git, link)
        self._visit_inside(one, folder)
        self._looked.inside.append(_holding(one, folder.tree))

    def _visit_inside(self, one: SubmoduleContents, folder: FolderTree) -> None:
        links = links_in(one.git, folder.tree)
        if not links and not folder.nested:
            return
        around = _Around(
            path=one.path,
            links=links_in(one.git, one.start) if one.start else {},
            named=named_in(one.git, folder.tree),
        )
        for raw in folder.nested:
            inner = os.fsdecode(raw.removesuffix(b"/"))
            if not self._is_left_over(inner, around):
                path = around.below(inner)
                self._refuse(path, "is a repository that is not committed around it")
        for inner, link in sorted(links.items()):
            self._visit(inner, link, around)

    def _is_left_over(self, inner: str, around: "_Around") -> bool:
        """A submodule that is as it was, in a folder that git leaves when it is not needed."""
        start, place = around.links.get(inner, ""), self._place_of(around.below(inner))
        if place is None or _commit(place) != start:
            return False
        one = self._inside(inner, place, around)
        folder = self._trees.of_sandbox(one.git, start)
        return not folder.nested and _holding(one, folder.tree).is_clean

    def _inside(self, inner: str, place: str, around: "_Around") -> SubmoduleContents:
        path = around.below(inner)
        return SubmoduleContents(
            path=path,
            within=around.path,
            start=around.links.get(inner, ""),
            commit=_commit(place),
            tree="",
            git=self._git_of(path, place),
            named=around.named.get(inner),
            shallow=read_file(place, "shallow") or b"",
            is_clean=False,
        )

    def _place_of(self, path: str) -> str | None:
        """The repository, if it is in the sandbox's own folders and nowhere else."""
        top = os.path.join(self._resource.sandbox_path, path)
        pointer = os.path.join(top, ".git")
        if os.path.isdir(pointer) and not os.path.islink(pointer):
            return pointer
        told = read_file(top, ".git") or b""
        if not told.startswith(_POINTER):
            return None
        place = os.path.join(top, os.fsdecode(told.removeprefix(_POINTER).rstrip(b"\r\n")))
        home = os.path.join(os.path.realpath(self._resource.sandbox_path + REPOSITORY), "modules")
        real = os.path.realpath(place)
        return real if real.startswith(home + os.sep) and os.path.isdir(real) else None

    def _git_of(self, path: str, place: str) -> Git:
        """With the settings of the user's submodule, or of the project where there is none."""
        top = os.path.join(self._resource.sandbox_path, path)
        user = users_submodule(self._resource, path)
        objects = [os.path.join(place, "objects")]
        if user is not None:
            objects.append(
                user.text("rev-parse", "--path-format=absolute", "--git-path", "objects")
            )
        own = {
            "GIT_WORK_TREE": top,
            "GIT_SHALLOW_FILE": os.path.join(place, "shallow"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(quoted, objects)),
        }
        if user is not None:
            own["GIT_DIR"] = os.path.join(user.directory, ".git")
        return self._git.at(top).with_env(own)

    def _with_links(self, folder: FolderTree, added: Mapping[str, str]) -> FolderTree:
        lines = [b"160000 %s\t%s\0" % (c.encode(), os.fsencode(p)) for p, c in added.items()]
        with self._trees.private_index(self._git) as private:
            private.run("read-tree", folder.tree)
            private.run("update-index", "-z", "--index-info", input=b"".join(lines))
            tree = private.text("write-tree")
        rest = [p for p in folder.nested if os.fsdecode(p.removesuffix(b"/")) not in added]
        return replace(folder, tree=tree, nested=tuple(rest))

    def _refuse(self, path: str, why: str) -> None:
        self._looked.obstacles[text_of(os.fsencode(path))] = why


def _holding(one: SubmoduleContents, tree: str) -> SubmoduleContents:
    committed = one.git.text("rev-parse", "--verify", f"{one.commit}^{{tree}}")
    return replace(one, tree=tree, is_clean=tree == committed)


def _commit(place: str) -> str:
    return head_commit(read_file(place, "HEAD") or b"", read_refs(place))


def _is_brought(path: str, resource: PlanResource) -> bool:
    found = PurePosixPath(path)
    return any(found.is_relative_to(PurePosixPath(item)) for item in resource.include)
