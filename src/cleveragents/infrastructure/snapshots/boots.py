"""Whether a sandbox was seen since the machine was started, and may be believed (ADR 0065).

A file keeps its size, its times and its number over a power cut, and may have lost its bytes. So
what a snapshot file says of these counts only as long as the machine runs.
"""

import sqlite3
from functools import cache

from msgspec import Struct

from cleveragents.domain.resource import PlanResource

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Boots(Struct, frozen=True):
    """Of one resource: in which run of the machine it was last found to be as it should be."""

    db: sqlite3.Connection
    resource: str

    @property
    def is_doubtful(self) -> bool:
        """It was in another one, or nobody can tell."""
        row = self.db.execute("SELECT boot FROM boots WHERE resource=?", (self.resource,))
        found = row.fetchone()
        return found is not None and not (found[0] and found[0] == _this_boot())

    def begin(self) -> None:
        """What is known from now on was seen in this one, unless something is known already."""
        self.db.execute("INSERT OR IGNORE INTO boots VALUES (?, ?)", (self.resource, _this_boot()))

    def believe(self) -> None:
        values = (self.resource, _this_boot())
        self.db.execute("INSERT OR REPLACE INTO boots VALUES (?, ?)", values)


def boots_of(db: sqlite3.Connection, resource: PlanResource) -> Boots:
    return Boots(db, str(resource.resource_id))


@cache
def _this_boot() -> str:
    """Empty where the system does not say: then nothing is believed that another process saw."""
    try:
        with open(_BOOT_ID, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
