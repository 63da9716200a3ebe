"""How the git command is run: a clean environment, no hooks, errors as our own."""

import functools
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.errors import GitUnavailableError, RepositoryNotTrustedError, SandboxError
from cleveragents.domain.scarcity import scarcity_of
from cleveragents.infrastructure.processes.on_path import program_on_path

if TYPE_CHECKING:
    from pathlib import Path

MINIMUM_VERSION = (2, 38)  # the first with `merge-tree --write-tree`
# Hooks may be settings from here on; only later ones can turn off all that are for an event.
_HOOKS_BY_NAME = (2, 54)

_HOOK_EVENT = r"(?s)hook\..*\.event"

# Ours for every call. Whatever else the user configured (filters, line ends, identity) stays in
# force, so that a sandbox looks like their own checkout.
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # An object or a reference has its bytes on the disk before it has its name (ADR 0065): one that
    # a power cut has left empty is never written again, for it is there.
    "core.fsync=loose-object,reference",
    "core.fsyncMethod=batch",
    # Submodules have a life of their own: no command of ours may walk into them.
    "submodule.recurse=false",
    # Hooks that are settings, for the events of plumbing. Versions without them pass over these.
    "hook.reference-transaction.enabled=false",
    "hook.post-index-change.enabled=false",
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_ADVICE": "0",
}
# They only read, and so no hook is for any of them.
_READING = frozenset({"cat-file", "config", "for-each-ref", "ls-files", "ls-tree", "rev-parse"})
# For a repository of ours, which is made again from its snapshots after a power cut.
UNSYNCED = {"core.fsync": "none"}
# Nothing that is missing is fetched: from where, and by which program, settings say.
OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}


class GitError(SandboxError):
    """A git command that failed; `stderr` is what git said."""

    def __init__(self, message: str, hint: str, *, code: int, stderr: str) -> None:
        super().__init__(message, hint)
        self.exit_status = code
        self.stderr = stderr


class GitCall(Struct, frozen=True, kw_only=True):
    """One command line; `env` is added to a clean environment, a path as `input` is a file."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    input: "bytes | Path" = b""
    reads_only: bool = False


class GitResult(Struct, frozen=True, kw_only=True):
    """`hint` is what to do about a failure, where whoever ran it knows more than git says."""

    stdout: bytes
    stderr: bytes
    code: int
    hint: str = ""


Start = Callable[[GitCall], GitResult]


def start_plainly(call: GitCall) -> GitResult:
    """With all that we may do ourselves: only where no step can have written (ADR 0046)."""
    if not call.reads_only:
        _refuse_too_old(call.argv[0])
        if _version(call.argv[0]) == _HOOKS_BY_NAME:
            env = {**clean_environment(), **call.env}
            call = replace(call, env={**call.env, **_without_hooks(call, env)})
    return start_hookless(call)


def start_hookless(call: GitCall) -> GitResult:
    """The same for whoever knows the settings, and has turned off the hooks that are among them."""
    env = {**clean_environment(), **call.env}
    try:
        # "/" and -C: a deleted current folder must not stop git, nor a missing one look as if git
        # itself were missing.
        if not isinstance(call.input, bytes):
            with call.input.open("rb") as file:
                done = subprocess.run(
                    call.argv, cwd="/", capture_output=True, env=env, stdin=file, check=False
                )
        else:
            done = subprocess.run(
                call.argv, cwd="/", capture_output=True, env=env, input=call.input, check=False
            )
    except OSError as error:
        raise scarcity_of(error) or GitUnavailableError(str(error)) from error
    return GitResult(stdout=done.stdout, stderr=done.stderr, code=done.returncode)


class Git:
    """Runs git in one folder. `env` and `settings` are added to those of every call."""

    def __init__(
        self,
        directory: str,
        env: Mapping[str, str] | None = None,
        start: Start = start_plainly,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.env = dict(env or {})
        self._start = start
        self._settings = dict(settings or {})

    def at(self, directory: str) -> "Git":
        """The same, run in another folder."""
        return Git(directory, self.env, self._start, self._settings)

    def with_env(self, env: Mapping[str, str]) -> "Git":
        return Git(self.directory, {**self.env, **env}, self._start, self._settings)

    def started_by(self, start: Start) -> "Git":
        return Git(self.directory, self.env, start, self._settings)

    def with_settings(self, settings: Mapping[str, str]) -> "Git":
        return Git(self.directory, self.env, self._start, {**self._settings, **settings})

    def run(
        self,
        *args: str,
        input: "bytes | Path" = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> GitResult:
        """Raises GitError if `check` and git did not exit with 0, and RepositoryNotTrustedError in
        any case: no question has been answered then."""
        command = [_executable(), "-C", self.directory]
        for option in (*_OPTIONS, *(f"{key}={value}" for key, value in self._settings.items())):
            command += ["-c", option]
        call = GitCall(
            argv=[*command, *args],
            env={**self.env, **(env or {})},
            input=input,
            reads_only=_subcommand(args) in _READING,
        )
        result = self._start(call)
        if result.code != 0:
            _refuse_too_old(command[0])
            _refuse_untrusted(self.directory, result)
        if check and result.code != 0:
            raise _error(self.directory, args, result)
        return result

    def text(self, *args: str) -> str:
        """Standard output without its last line end; bytes that are not UTF-8 survive."""
        return self.run(*args).stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def succeeds(self, *args: str) -> bool:
        """For commands that answer a question with their exit status."""
        return self.run(*args, check=False).code == 0


def clean_environment() -> dict[str, str]:
    """The process environment without anything that would point git somewhere else."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, **_ENVIRONMENT}


def ours_for_git() -> Mapping[str, str]:
    """What we set for every git, whoever starts it."""
    return _ENVIRONMENT


def settings_env(settings: Sequence[tuple[str, str]], env: Mapping[str, str]) -> dict[str, str]:
    """Variables that add these settings to those that `env` has already.

    Unlike options, they take any key: a name in it may have a `=`.
    """
    first = int(env.get("GIT_CONFIG_COUNT", "0"))
    told = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, first):
        told |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return told


def _without_hooks(call: GitCall, env: Mapping[str, str]) -> dict[str, str]:
    asked = ("config", "--name-only", "-z", "--get-regexp", r"^hook\..*\.event$")
    folder = call.argv[call.argv.index("-C") + 1]
    argv = [call.argv[0], "-C", folder, *asked]
    found = subprocess.run(argv, cwd="/", env=env, capture_output=True, check=False).stdout
    return hooks_off([os.fsdecode(key) for key in found.split(b"\0")[:-1]], env)


def hooks_off(keys: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """Variables that turn off, beside those in `env`, each hook whose event is one of these
    settings."""
    names = {key.removesuffix("event") for key in keys if re.fullmatch(_HOOK_EVENT, key)}
    return settings_env([(f"{name}enabled", "false") for name in sorted(names)], env)


def _executable() -> str:
    path = program_on_path("git")
    if path is None:
        raise GitUnavailableError("there is no `git` on the PATH")
    return path


def _refuse_too_old(path: str) -> None:
    """Asked before the first write, and once something went wrong: what it cannot do it refuses."""
    if _version(path) < MINIMUM_VERSION:
        shown = ".".join(map(str, _version(path)))
        raise GitUnavailableError(f"{path} is version {shown}, which is too old")


@functools.cache
def _version(path: str) -> tuple[int, int]:
    try:
        done = subprocess.run([path, "version"], capture_output=True, check=False)
    except OSError as error:
        raise scarcity_of(error) or GitUnavailableError(str(error)) from error
    found = re.search(rb"(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise GitUnavailableError(f"`{path} version` does not name a version")
    return int(found[1]), int(found[2])


def _refuse_untrusted(directory: str, result: GitResult) -> None:
    found = re.search(rb"dubious ownership in repository at '([^\n]*)'", result.stderr)
    if found is not None:
        said = result.stderr.decode("utf-8", "backslashreplace").strip().partition("\n")[0]
        repository = os.fsdecode(found[1]).removesuffix("/.git") or directory
        raise RepositoryNotTrustedError(repository, said)


def _error(directory: str, args: tuple[str, ...], result: GitResult) -> GitError:
    stderr = result.stderr.decode("utf-8", "backslashreplace").strip()
    said = stderr or f"exit status {result.code}"
    hint = result.hint or f"look at the repository with `git -C {directory} status`"
    if "promisor" in stderr or "not allowed" in stderr:
        hint = f"fetch what is missing: git -C {directory} fetch --refetch --no-filter"
    return GitError(
        f"git {_subcommand(args)} failed in {directory}: {said}",
        hint,
        code=result.code,
        stderr=stderr,
    )


def _subcommand(args: tuple[str, ...]) -> str:
    rest = list(args)
    while rest and rest[0] == "-c":
        rest = rest[2:]
    return rest[0] if rest else ""
