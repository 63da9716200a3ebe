"""Trees made from working folders through a private index, and folders made from trees.

Nothing here writes an index, a reference or a file of the user's; only objects are added.
"""

import filecmp
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.errors import FileEncodingError, SandboxError
from cleveragents.domain.overlaps import belongs_elsewhere
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.pipes import refuse_pipes
from cleveragents.infrastructure.sandbox.git.proofs.first_index import FirstIndex

_CLOSED = "Permission denied"
GITLINK = b"160000"
LINK = b"120000"
REGULAR = (b"100644", b"100755")
_FILES = (*REGULAR, LINK)
_ABSENT = b"000000"
_NOT_ENCODED = re.compile(
    r"failed to encode '([^\n]*)' from ([^\n ]*) to "
    r"|BOM is required in '([^\n]*)' if encoded as ([^\n ]*)"
)

# A private index must not leave a shared part in the user's git folder. Line ends that the user
# wants to be warned about are no reason to lose a file, and no setting may make git trust a file
# to be unchanged more than it has to.
_SETTINGS = {
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
}
# Of so many paths, each with its folders, fewer bytes than fit a command line.
_FEW = 100
_SPECIAL = frozenset(b'"\\\n\r\t')
_OURS = {
    "GIT_AUTHOR_NAME": "CleverAgents",
    "GIT_AUTHOR_EMAIL": "noreply@localhost",
    "GIT_COMMITTER_NAME": "CleverAgents",
    "GIT_COMMITTER_EMAIL": "noreply@localhost",
}


class TreeChange(Struct, frozen=True, kw_only=True):
    """One path that two trees hold differently; an absent side has mode 000000."""

    path: bytes
    old_mode: bytes
    new_mode: bytes
    old_oid: bytes
    new_oid: bytes

    @property
    def was_file(self) -> bool:
        """A file or a link, not a submodule and not absent."""
        return self.old_mode in _FILES

    @property
    def is_file(self) -> bool:
        return self.new_mode in _FILES

    @property
    def name(self) -> str:
        """The path for the file system."""
        return os.fsdecode(self.path)


class FolderTree(Struct, frozen=True, kw_only=True):
    """A working folder as a tree; `nested` are repositories inside it, which are left out, and
    `strayed` changes of what belongs elsewhere: that is as the base has it."""

    tree: str
    nested: tuple[bytes, ...]
    strayed: tuple[bytes, ...] = ()


class GitTrees:
    """Works in `scratch_dir`, which holds nothing once a call has returned."""

    def __init__(self, scratch_dir: str) -> None:
        self._scratch = Path(scratch_dir)

    def of_sandbox(
        self, git: Git, base: str, cut: Collection[str] = (), first_index: str = ""
    ) -> FolderTree:
        """What a sandbox holds now, whatever its own index, HEAD and branch say, without what is
        `cut` out of it.

        Read is each file whose status is another than that in `first_index`, which says what the
        base holds; without that, every file. No size and no time that was set back hides a change:
        the time of the last change of the status cannot be set.
        """
        refuse_pipes(git.directory)
        with self.private_index(git) as private:
            known = FirstIndex(first_index, git.directory, len(base) // 2)
            if not known.put(private.env["GIT_INDEX_FILE"]):
                private.run("read-tree", base)
            # By content: what is the base's need not be added, which would write an object for it.
            private.run("update-index", "-q", "--refresh", check=False)
            nested = _stage_folder(private, refuse=_refuse_unread)
            tree = self._tree_of_changes(private, base)
            if not cut:
                return FolderTree(tree=tree, nested=nested)
            return _without(private, FolderTree(tree=tree, nested=nested), base, cut)

    def of_checkout(self, git: Git) -> FolderTree:
        """What the user's working folder holds, as `git add -A` would see it."""
        with self.private_index(git, copy_of=index_path(git)) as private:
            nested = _stage_folder(private)
            return FolderTree(tree=self._tree_of_changes(private, "HEAD"), nested=nested)

    @contextmanager
    def private_index(self, git: Git, copy_of: Path | None = None) -> Generator[Git, None, None]:
        """A git with an index of our own: a copy, or an empty one."""
        with self.folder() as folder:
            index = folder / "index"
            if copy_of is not None:
                # With its time: git tells by it which entries it has to look at again.
                with suppress(FileNotFoundError):
                    shutil.copy2(copy_of, index)
            yield git.with_settings(_SETTINGS).with_env({"GIT_INDEX_FILE": str(index)})

    @contextmanager
    def index_of(self, git: Git, tree: str) -> Generator[Git, None, None]:
        """A git with an index of our own that holds a tree."""
        with self.private_index(git) as private:
            private.run("read-tree", tree)
            yield private

    @contextmanager
    def index_for(
        self, git: Git, tree: str, paths: Collection[bytes]
    ) -> Generator[Git, None, None]:
        """The same with as much of the tree as has to do with these paths: they, and what may hold
        their attributes. So a few files of a large tree cost what they are."""
        if len(paths) > _FEW:
            with self.index_of(git, tree) as private:
                yield private
            return
        words = [os.fsdecode(path) for path in sorted({*paths, *_attributes_of(paths)})]
        with self.private_index(git) as private:
            literal = git.with_env({"GIT_LITERAL_PATHSPECS": "1"})
            found = literal.run("ls-tree", "-r", "-z", "--full-tree", tree, "--", *words).stdout
            private.run("update-index", "-z", "--index-info", input=found)
            yield private

    @contextmanager
    def folder(self) -> Generator[Path, None, None]:
        make_private(str(self._scratch))
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="git-") as name:
            yield Path(name)

    def materialise(self, git: Git, tree: str, paths: Sequence[bytes], target: Path) -> None:
        """Write `paths` into the empty `target` as a checkout of `tree` would, filters and all."""
        if not paths:
            return
        git_dir = git.env.get("GIT_DIR") or git.text("rev-parse", "--absolute-git-dir")
        with self.index_for(git, tree, paths) as private:
            # In a folder without attributes of its own git takes those of the index: the tree's.
            elsewhere = private.at(str(target)).with_env(
                {"GIT_DIR": git_dir, "GIT_WORK_TREE": str(target)}
            )
            elsewhere.run("checkout-index", "-z", "--stdin", input=nul_ended(paths))

    def unfiltered(self, git: Git, tree: str, suspects: Sequence[TreeChange]) -> list[TreeChange]:
        """Those whose file is, to the byte, what a checkout of `tree` gives it."""
        if not suspects:
            return []
        with self.folder() as folder:
            self.materialise(git, tree, [change.path for change in suspects], folder)
            places = [os.fsencode(top) for top in (git.directory, folder)]
            paths = [os.path.join(top, change.path) for top in places for change in suspects]
            # By git, which is held inside where it has to be: we open nothing in there.
            told = b"".join(_quoted(path) + b"\n" for path in paths)
            hashed = git.run("hash-object", "--no-filters", "--stdin-paths", input=told)
        oids = hashed.stdout.split(b"\n")[:-1]
        found = zip(suspects, oids[: len(suspects)], oids[len(suspects) :], strict=True)
        return [change for change, there, checked_out in found if there == checked_out]

    def _tree_of_changes(self, private: Git, base: str) -> str:
        """The staged tree without changes that only the filters made.

        A file with the very bytes that a checkout of the base gives it is not a change, even if
        git would store it differently today (line ends that were never normalised, for example).
        """
        tree = private.text("write-tree")
        suspects = [
            change
            for change in tree_changes(private, base, tree)
            if change.old_mode == change.new_mode and change.old_mode in REGULAR
        ]
        same = self.unfiltered(private, base, suspects)
        if not same:
            return tree
        entries = b"".join(b"%s %s\t%s\0" % (c.old_mode, c.old_oid, c.path) for c in same)
        private.run("update-index", "-z", "--index-info", input=entries)
        return private.text("write-tree")


class TreesInside(GitTrees):
    """In a room that goes as a whole: programs run there, so nothing is removed piece by piece."""

    @contextmanager
    def folder(self) -> Generator[Path, None, None]:
        yield Path(tempfile.mkdtemp(dir=self._scratch))


def tree_changes(git: Git, old: str, new: str) -> tuple[TreeChange, ...]:
    """Every path that differs; a rename is a deletion and an addition."""
    raw = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).stdout
    fields = raw.split(b"\0")
    return tuple(
        _tree_change(head, path) for head, path in zip(fields[0:-1:2], fields[1::2], strict=True)
    )


def _without(private: Git, folder: FolderTree, base: str, cut: Collection[str]) -> FolderTree:
    """The tree with all that is cut out as the base has it; the private index holds the tree."""
    changes = tree_changes(private, base, folder.tree)
    strayed = [c for c in changes if belongs_elsewhere(os.fsdecode(c.path), cut)]
    if not strayed:
        return folder
    # What was not there goes first: a file may come back in the place of a folder.
    strayed.sort(key=lambda change: change.old_mode != _ABSENT)
    entries = b"".join(b"%s %s\t%s\0" % (c.old_mode, c.old_oid, c.path) for c in strayed)
    private.run("update-index", "-z", "--index-info", input=entries)
    paths = tuple(sorted(change.path for change in strayed))
    return replace(folder, tree=private.text("write-tree"), strayed=paths)


def own_commit(git: Git, tree: str, message: str, *parents: str) -> str:
    """A commit in our own name, for things that never become part of the user's history."""
    args = [arg for parent in parents for arg in ("-p", parent)]
    made = git.run("commit-tree", *args, tree, input=message.encode() + b"\n", env=_OURS)
    return made.stdout.decode().strip()


def index_path(git: Git) -> Path:
    return Path(git.text("rev-parse", "--path-format=absolute", "--git-path", "index"))


def same_content(one: Path, other: Path) -> bool:
    """Both are files with the same bytes, or links to the same place."""
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return filecmp.cmp(one, other, shallow=False)


def text_of(path: bytes) -> str:
    """A path for people: bytes that are not UTF-8 are escaped."""
    return path.decode("utf-8", "backslashreplace")


def _pass_over(directory: str, said: bytes) -> None:
    """What git says about folders that it could not look into."""


def _refuse_unread(directory: str, said: bytes) -> None:
    """Git passes over what its owner closed to himself, and what changed there would be lost."""
    closed = [line for line in said.decode("utf-8", "replace").splitlines() if _CLOSED in line]
    if closed:
        raise SandboxError(
            f"git cannot read all of {directory}: {'; '.join(closed[:3])}",
            f"open it for git: chmod -R u+rwX {directory}",
        )


def _stage_folder(
    private: Git, refuse: Callable[[str, bytes], None] = _pass_over
) -> tuple[bytes, ...]:
    """Bring the private index to what the folder holds; gives the nested repositories left out."""
    with _encodings_told(private.directory):
        refuse(private.directory, private.run("add", "-u").stderr)
    untracked = _untracked(private, refuse)
    # A nested repository ends in a slash. As an entry it would be a submodule that nobody can
    # fetch, and without a commit git cannot add it at all.
    nested = tuple(path for path in untracked if path.endswith(b"/"))
    files = [path for path in untracked if not path.endswith(b"/")]
    files += _outside_sparse(private)
    if files:
        with _encodings_told(private.directory):
            private.run("update-index", "--add", "-z", "--stdin", input=nul_ended(files))
    return nested


def repositories_in(private: Git) -> tuple[bytes, ...]:
    """Those that the folder holds beside what the private index names."""
    found = _untracked(private, _refuse_unread)
    return tuple(path for path in found if path.endswith(b"/"))


def _untracked(private: Git, refuse: Callable[[str, bytes], None]) -> list[bytes]:
    found = private.run("ls-files", "--others", "--exclude-standard", "-z")
    refuse(private.directory, found.stderr)
    return found.stdout.split(b"\0")[:-1]


@contextmanager
def _encodings_told(directory: str) -> Generator[None, None, None]:
    try:
        yield
    except GitError as error:
        found = _NOT_ENCODED.search(error.stderr)
        if found is None:
            raise
        path, encoding, *others = found.groups()
        named = (path, encoding) if path else others
        raise FileEncodingError(directory, *named) from error


def _outside_sparse(private: Git) -> list[bytes]:
    """Files there although the sparse checkout leaves them out: `git add` passes over those."""
    if private.run("config", "--type=bool", "core.sparseCheckout", check=False).stdout != b"true\n":
        return []
    changed = private.run("ls-files", "--modified", "-z").stdout.split(b"\0")[:-1]
    absent = set(private.run("ls-files", "--deleted", "-z").stdout.split(b"\0"))
    return [path for path in changed if path not in absent]


def _tree_change(head: bytes, path: bytes) -> TreeChange:
    old_mode, new_mode, old_oid, new_oid, _ = head.removeprefix(b":").split(b" ")
    return TreeChange(
        path=path,
        old_mode=old_mode,
        new_mode=new_mode,
        old_oid=old_oid,
        new_oid=new_oid,
    )


def _attributes_of(paths: Collection[bytes]) -> set[bytes]:
    """Where git looks for the attributes of these paths."""
    parents = {parent for path in paths for parent in PurePosixPath(os.fsdecode(path)).parents}
    return {os.fsencode(parent / ".gitattributes") for parent in parents}


def _quoted(path: bytes) -> bytes:
    """As git reads a path from a line, whatever bytes it has."""
    return (
        b'"'
        + b"".join(b"\\%03o" % byte if byte in _SPECIAL else bytes((byte,)) for byte in path)
        + b'"'
    )


def nul_ended(paths: Sequence[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
