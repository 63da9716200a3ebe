"""What counts as a secret that checkpoints need not have, and how that is said as excludes.

By name alone: nobody looks into a file to find out. What git tracks is in the repository, for all
who have that, and is captured like any other file (ADR 0105).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase


class Secrets(StrEnum):
    """Whether files that are called like secrets are in checkpoints."""

    CAPTURE = "capture"
    SKIP = "skip"


NAMES = (
    *(".env", ".env.*", "*.env", ".envrc"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd"),
    *(".git-credentials", ".vault-token", "credentials.json", "secrets.y*ml", "secrets.json"),
)
"""The names that mean a secret, of a file or of a folder with all that is in it."""

EXAMPLES = (".env*.example", ".env*.sample", ".env*.template", ".env*.dist")
"""Those that look like one and are there to be shown."""

SPARED = "!"
"""What an exclude begins with that takes others back: by name, or with `/` by its whole path."""

TOLD = "secrets by name (.env, *.pem, id_rsa and the like)"


def is_secret(name: str) -> bool:
    """Of one part of a path."""
    if any(fnmatchcase(name, example) for example in EXAMPLES):
        return False
    return any(fnmatchcase(name, pattern) for pattern in NAMES)


def excludes_of_secrets(tracked: Iterable[str]) -> tuple[str, ...]:
    """As excludes of a resource; `tracked` are the paths that git has."""
    spared = {path for whole in tracked for path in _secret_parts(whole)}
    return (
        *NAMES,
        *(f"{SPARED}{name}" for name in EXAMPLES),
        *(f"{SPARED}/{path}" for path in sorted(spared)),
    )


def skips_secrets(exclude: Sequence[str]) -> bool:
    return set(NAMES) <= set(exclude)


def told_excludes(exclude: Sequence[str]) -> tuple[str, ...]:
    """For people: what a rollback leaves in place."""
    skips = skips_secrets(exclude)
    told = [one for one in exclude if not (one.startswith(SPARED) or (skips and one in NAMES))]
    return (*told, TOLD) if skips else tuple(told)


def _secret_parts(path: str) -> list[str]:
    """The path, and the folders that it is in, as far as one of them is called like a secret."""
    parts = path.split("/")
    first = next((at for at, name in enumerate(parts) if is_secret(name)), None)
    if first is None:
        return []
    return ["/".join(parts[: end + 1]) for end in range(first, len(parts))]
