"""Owns what counts as the same: every byte, mode and link of a tree, and what git says about it."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

from benchmarks.peers.places import Place

QUESTIONS = {
    "HEAD": ("symbolic-ref", "-q", "HEAD"),
    "commit": ("rev-parse", "-q", "--verify", "HEAD"),
    "index": ("ls-files", "-s", "-v", "-z"),
    "refs": ("for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
    "stash": ("stash", "list", "--format=%H"),
    "settings": ("config", "--local", "--list"),
}
State = dict[str, str]


def observe(place: Place, tree: Path) -> State:
    """The tree without its own `.git`, git's answers about it, and what lies outside of it."""
    state = {f"git {name}": _git(place, tree, words) for name, words in QUESTIONS.items()}
    _walk(os.fsencode(tree), b"", state, "")
    _walk(os.fsencode(place.outside), b"", state, "outside/")
    return state


def differences(before: State, after: State) -> list[str]:
    """What is not as it was, in words; nothing if all is."""
    found: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if was is None or now is None:
            found.append(f"{name} {'is gone' if now is None else 'is left over'}")
        else:
            found.append(f"{name} {_kind_of_difference(was, now)}")
    return found


def _kind_of_difference(was: str, now: str) -> str:
    if not was.startswith("file ") or not now.startswith("file "):
        return "differs"
    (_, mode, content), (_, mode_now, content_now) = was.split(" "), now.split(" ")
    parts = [] if mode == mode_now else [f"has mode {mode_now} instead of {mode}"]
    parts += [] if content == content_now else ["has other bytes"]
    return " and ".join(parts)


def _git(place: Place, tree: Path, words: tuple[str, ...]) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", *words],
        cwd=tree,
        env=place.clean_environ,
        capture_output=True,
        check=False,
    )
    return f"{done.returncode} {done.stdout.decode(errors='surrogateescape')}"


def _walk(top: bytes, inner: bytes, state: State, prefix: str) -> None:
    # Paths are bytes: not every name is text.
    with os.scandir(os.path.join(top, inner)) as entries:  # noqa: PTH118
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = os.path.join(inner, entry.name)  # noqa: PTH118
        if path == b".git" and not prefix:
            continue
        name = prefix + repr(path)[2:-1]
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            state[name] = f"link {os.readlink(entry.path)!r}"  # noqa: PTH115
        elif stat.S_ISDIR(mode):
            state[name] = f"folder {stat.S_IMODE(mode):04o}"
            _walk(top, path, state, prefix)
        else:
            state[name] = f"file {stat.S_IMODE(mode):04o} {_digest(entry.path)}"


def _digest(path: bytes) -> str:
    with open(path, "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()
