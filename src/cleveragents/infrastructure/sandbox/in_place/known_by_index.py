"""What the user's own index proves of the files in place, and what of it is not believed.

An entry has the status that a file had when git knew its bytes. It is believed of a file that has
this status still, to the nanosecond, unless

- the index was written so shortly after the file that a change in between could hide (racy),
- its user said that it is unchanged, that it is left out, or that times and inodes do not count,
- bytes are changed between file and blob by a filter, an encoding or `$Id$`; and since attributes
  may have been others when the file was added, file and blob have to be equally long in any case,
- the blob is in no pack that we have a link to: then it could go with `.git`.
"""

import os
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from cleveragents.infrastructure.files.entry import RACY_NS
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.sandbox.git.proofs.conversions import conversions
from cleveragents.infrastructure.sandbox.git.proofs.index_entries import entries_of
from cleveragents.infrastructure.sandbox.in_place.git_there import git_folder, users_git
from cleveragents.infrastructure.sandbox.in_place.linked_packs import LinkedPacks
from cleveragents.infrastructure.snapshots.store.blob_keys import LARGEST_BLOB
from cleveragents.infrastructure.snapshots.tree.first_look import Proof

_SECOND = 1_000_000_000
_REGULAR = (0o100644, 0o100755)
_NO = frozenset({"false", "no", "off", "0", ""})
_FORMAT = "extensions.objectformat"


class KnownByIndex(Struct, frozen=True, kw_only=True):
    """`entries` are those that say what a file holds; `written_ns` is when they were written."""

    location: str
    settings: GitSettings
    entries: Mapping[bytes, Proof] = field(default_factory=dict[bytes, Proof])
    written_ns: int = 0

    @classmethod
    def read(cls, location: str) -> "KnownByIndex":
        settings = GitSettings.read(users_git(location))
        nothing = cls(location=location, settings=settings)
        if _is_weak(settings):
            return nothing
        try:
            with open(os.path.join(git_folder(location), "index"), "rb") as file:
                written_ns, data = os.fstat(file.fileno()).st_mtime_ns, file.read()
        except OSError:
            return nothing
        oid_bytes = 32 if settings.values.get(_FORMAT) == "sha256" else 20
        entries = entries_of(data, oid_bytes) or {}
        return cls(location=location, settings=settings, entries=entries, written_ns=written_ns)

    def in_packs(self, packs: LinkedPacks) -> Mapping[bytes, Proof]:
        """Those that are old enough, and whose blobs are in `packs` and as long as the file."""
        old = self._old_enough()
        objects = os.path.join(git_folder(self.location), "objects")
        if not old or not packs.link(objects, self.settings.values.get(_FORMAT)):
            return {}
        names = {path: proof.oid.hex() for path, proof in old.items()}
        sizes = packs.sizes([*names.values()])
        return {p: proof for p, proof in old.items() if sizes.get(names[p]) == proof.size}

    def unconverted(
        self, proofs: Mapping[bytes, Proof], found: Collection[bytes]
    ) -> Mapping[bytes, Proof]:
        """Those of them whose bytes git does not change, as is known today. `found` are all paths
        that there are, some of which may hold attributes."""
        attributed = [path for path in found if path.endswith(b".gitattributes")]
        git, gitdir = users_git(self.location), git_folder(self.location)
        known = conversions(git, self.settings, gitdir, [*proofs, *attributed])
        if not known.never:
            return proofs
        return {path: proof for path, proof in proofs.items() if path not in known.never}

    def _old_enough(self) -> dict[bytes, Proof]:
        """Whole seconds of a border decide for most of them."""
        seconds, rest = divmod(self.written_ns - RACY_NS, _SECOND)
        border = (seconds, rest)
        return {
            path: proof
            for path, proof in self.entries.items()
            if proof[6] in _REGULAR
            and 0 < proof[9] <= LARGEST_BLOB
            and proof[0:2] < border
            and proof[2:4] < border
        }


def _is_weak(settings: GitSettings) -> bool:
    """Whether git was told to compare less than it could."""
    trust = settings.values.get("core.trustctime", "true")
    check = settings.values.get("core.checkstat") or "default"
    return (trust is not None and trust.lower() in _NO) or check.lower() != "default"
