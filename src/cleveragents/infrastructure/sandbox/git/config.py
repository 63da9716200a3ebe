"""Which settings of the user's repository hold in the repository of a sandbox, and its file.

Taken over is what decides the bytes of a checkout and of a commit. Everything that leads
somewhere else is not: remotes and their addresses, credentials, hooks, includes, aliases.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from cleveragents.infrastructure.sandbox.git.command import Git, settings_env

_SECTIONS = frozenset({"filter", "merge", "diff", "user", "author", "committer", "i18n"})
_CORE = frozenset(
    {"autocrlf", "eol", "safecrlf", "checkroundtripencoding", "attributesfile", "excludesfile"}
    | {"filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs"}
    | {"trustctime", "checkstat", "sparsecheckout", "sparsecheckoutcone"}
)
# What git writes as it is; of other values no two programs agree on where they end.
_PLAIN = re.compile(r"[^\s\"\\;#]+(?: +[^\s\"\\;#]+)*")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"})


class GitSettings(Struct, frozen=True, kw_only=True):
    """Of each setting the value that counts, whatever file it came from; None is a bare key."""

    values: Mapping[str, str | None]

    @classmethod
    def read(cls, git: Git) -> "GitSettings":
        """All levels: what `includeIf` adds for the user's folder would not hold elsewhere."""
        fields = git.text("config", "--list", "--includes", "-z", "--show-scope").split("\0")
        pairs = zip(fields[0:-1:2], fields[1::2], strict=True)
        # "command" are our own, given with every call.
        return cls(values=dict(_key_value(item) for scope, item in pairs if scope != "command"))

    def is_partial(self) -> bool:
        """A clone that fetches objects only when they are needed."""
        return any(map(_allows_gaps, self.values))

    def config_file(self, further: Mapping[str, str | None]) -> bytes:
        """The configuration of a sandbox's repository, `further` settings included."""
        object_format = self.values.get("extensions.objectformat")
        own: dict[str, str | None] = {
            "core.repositoryformatversion": "1" if object_format else "0",
            "core.bare": "false",
            "core.logallrefupdates": "true",
            # Half of a split index would be looked for in the user's repository by us.
            "core.splitindex": "false",
            # No gc in the background of a step: it would outlive the step, and its snapshot.
            "gc.auto": "0",
            "maintenance.auto": "false",
        }
        if object_format:
            own["extensions.objectformat"] = object_format
        if "core.hookspath" in self.values:
            own["core.hookspath"] = "/dev/null"
        taken = {key: value for key, value in self.values.items() if _is_taken_over(key)}
        return _file({**own, **taken, **further}).encode("utf-8", "surrogateescape")


def without_filters(git: Git) -> Git:
    """The same git, for which no filter has a program. Files that have one look changed to it."""
    args = ("config", "--name-only", "-z", "--get-regexp", r"^filter\.")
    keys = git.run(*args, check=False).stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    off = [(key, "false" if key.endswith(".required") else "") for key in sorted({*keys})]
    return git.with_env(settings_env(off, git.env))


def _key_value(item: str) -> tuple[str, str | None]:
    key, separator, value = item.partition("\n")
    return key, value if separator else None


def _is_taken_over(key: str) -> bool:
    section, _, rest = key.partition(".")
    return section in _SECTIONS or (section == "core" and rest in _CORE) or _allows_gaps(key)


def _allows_gaps(key: str) -> bool:
    """Says that objects may be missing, without which git takes a partial clone for a broken one.

    The address to fetch them from is another setting, and is not taken over.
    """
    return key.startswith("remote.") and key.endswith(".promisor")


def _file(settings: Mapping[str, str | None]) -> str:
    sections: dict[str, str] = {}
    for key, value in settings.items():
        header = _header(key)
        sections[header] = sections.get(header, header) + _line(key, value)
    return "".join(sections.values())


def _header(key: str) -> str:
    section, _, rest = key.partition(".")
    subsection, dot, _ = rest.rpartition(".")
    if not dot:
        return f"[{section}]\n"
    quoted = subsection.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{section} "{quoted}"]\n'


def _line(key: str, value: str | None) -> str:
    name = key.rpartition(".")[2]
    if value is None:
        return f"\t{name}\n"
    quotes = "" if _PLAIN.fullmatch(value) else '"'
    return f"\t{name} = {quotes}{value.translate(_ESCAPES)}{quotes}\n"
