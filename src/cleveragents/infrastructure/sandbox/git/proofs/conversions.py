"""Where the bytes of a file are not those of its blob: line ends, `$Id$`, encodings, filters.

What: of the paths of a checkout, those whose bytes git may have changed on the way, as attributes
and settings say. For line ends and `$Id$` the size decides: what git does about them on the way in
only ever makes a file shorter, so that a file as long as its blob is the blob.
Attributes are asked of git only if there is any file that could hold some.
What is not guaranteed: what attributes were in force when a file was added. Who did not check the
files out himself compares all sizes (ADR 0108).
"""

import os
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from cleveragents.infrastructure.processes.on_path import program_on_path
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.snapshots.store.blob_keys import LARGEST_BLOB
from cleveragents.infrastructure.snapshots.tree.first_look import Proof

_ATTRIBUTES = b".gitattributes"
_SYSTEM = "etc/gitattributes"
# Settings that name another place, whatever it is.
_ELSEWHERE = frozenset({"core.attributesfile", "attr.tree"})
_OFF = frozenset({"false", "no", "off", "0", ""})
_UNSET = b"unset"
_REGULAR = (0o100644, 0o100755)
_PROGRAMS = frozenset({b"filter", b"ident", b"working-tree-encoding"})
_LINE_ENDS = frozenset({b"text", b"eol", b"crlf"})


class Conversions(Struct, frozen=True, kw_only=True):
    """Paths that are never the blob for certain, and those that are if they are as long as it;
    `all_by_size` if the latter are all."""

    never: Collection[bytes] = ()
    by_size: Collection[bytes] = ()
    all_by_size: bool = False


def conversions(
    git: Git, settings: GitSettings, git_dir: str, paths: Collection[bytes]
) -> Conversions:
    """Of `paths`, which are all that there are; `git_dir` is where the repository is."""
    autocrlf = settings.values.get("core.autocrlf", "false")
    by_setting = autocrlf is None or autocrlf.lower() not in _OFF
    if not _may_have_attributes(settings, git_dir, paths):
        return Conversions(all_by_size=by_setting)
    asked = b"".join(path + b"\0" for path in paths)
    said = git.run("check-attr", "-a", "-z", "--stdin", input=asked).stdout.split(b"\0")
    told = list(zip(said[0:-1:3], said[1::3], said[2::3], strict=True))
    return Conversions(
        never=_having(told, _PROGRAMS), by_size=_having(told, _LINE_ENDS), all_by_size=by_setting
    )


def proven_entries(
    git: Git, settings: GitSettings, git_dir: str, entries: Mapping[bytes, Proof]
) -> dict[bytes, Proof]:
    """Of a checkout that git has just made: the files that have the bytes of their blob."""
    found = {
        path: proof
        for path, proof in entries.items()
        if proof[6] in _REGULAR and 0 < proof[9] <= LARGEST_BLOB
    }
    known = conversions(git, settings, git_dir, entries.keys())
    for path in known.never:
        found.pop(path, None)
    if not (known.all_by_size or known.by_size):
        return found
    sized = {p: e for p, e in found.items() if known.all_by_size or p in known.by_size}
    sizes = blob_sizes(git, (proof.oid.hex() for proof in sized.values()))
    for path, proof in sized.items():
        if sizes.get(proof.oid.hex()) != proof.size:
            del found[path]
    return found


def blob_sizes(git: Git, oids: Iterable[str]) -> Mapping[str, int]:
    """Of those that are there, and are blobs."""
    asked = list(dict.fromkeys(oids))
    if not asked:
        return {}
    words = ("cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer")
    said = git.run(*words, input="\n".join([*asked, ""]).encode()).stdout.split(b"\n")
    return {
        oid: int(line[5:])
        for oid, line in zip(asked, said, strict=False)
        if line.startswith(b"blob ")
    }


def _having(told: Iterable[tuple[bytes, bytes, bytes]], names: Collection[bytes]) -> set[bytes]:
    return {path for path, name, value in told if name in names and value != _UNSET}


def _may_have_attributes(settings: GitSettings, git_dir: str, paths: Collection[bytes]) -> bool:
    if any(path.endswith(_ATTRIBUTES) for path in paths) or settings.values.keys() & _ELSEWHERE:
        return True
    return any(os.path.exists(place) for place in _places(git_dir))


def _places(git_dir: str) -> Iterable[str]:
    """Where attributes are that hold for a repository and are in none of its folders."""
    yield os.path.join(git_dir, "info/attributes")
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    yield os.path.join(home, "git/attributes")
    program = os.path.realpath(program_on_path("git") or "/usr/bin/git")
    prefix = os.path.dirname(os.path.dirname(program))
    # Of a git in /usr they are in /etc; others have a place of their own.
    yield from (os.path.join(place, _SYSTEM) for place in ("/", prefix, "/usr/local"))
