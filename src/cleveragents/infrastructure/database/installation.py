"""The name of a database among all that may have plans on one repository (ADR 0045).

It is made up once, and goes with the file when that is moved or renamed. A copy of the file gets a
name of its own: the original may be in use still. A copy is told by its inode, which a copy has not
in common with its original, nor with what is restored from a backup.
"""

import os
from contextlib import nullcontext

from cleveragents.infrastructure.database.engine import Database

_BYTES = 8
# What SQLite takes for a number.
_POSITIVE = (1 << 63) - 1
# Of several that find it missing at once, the first says what it is.
_MADE = """
INSERT INTO installation (id, name, inode) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, inode = excluded.inode
WHERE installation.inode <> excluded.inode
"""
_READ = "SELECT name FROM installation WHERE inode = ?"


class SqlInstallation:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._name: str | None = None

    def name(self) -> str:
        if self._name is None:
            self._name = self._read_or_made()
        return self._name

    def _read_or_made(self) -> str:
        with self._database.translated():
            connection = self._database.connection()
            inode = os.stat(self._database.path).st_ino & _POSITIVE
            found = connection.execute(_READ, (inode,)).fetchone()
            if found is None:
                with nullcontext() if connection.in_transaction else self._database.writer:
                    connection.execute(_MADE, (os.urandom(_BYTES).hex(), inode))
                found = connection.execute(_READ, (inode,)).fetchone()
            return str(found[0])
