"""What actors remember as rows: each message once, named by its content and its parent.

Where a plan stands in them is stored with each checkpoint group (`domain/actor_protocol.py`).
"""

from collections.abc import Collection, Sequence

from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.database.fence import FencedRows

# Depth first along the parents; `far` brings the oldest to the top.
_CHAIN = """
WITH RECURSIVE chain(key, parent, body, far) AS (
    SELECT key, parent, body, 0 FROM actor_messages WHERE plan_id = :plan AND key = :head
    UNION ALL
    SELECT m.key, m.parent, m.body, chain.far + 1
    FROM actor_messages m JOIN chain ON m.key = chain.parent WHERE m.plan_id = :plan
) SELECT key, parent, body FROM chain ORDER BY far DESC
"""
_PARENTS = "SELECT key, parent FROM actor_messages WHERE plan_id = ?"


class SqlMessages(FencedRows):
    def add(self, plan_id: PlanId, messages: Collection[Message]) -> None:
        self._fence.writing(plan_id).executemany(
            "INSERT OR IGNORE INTO actor_messages (plan_id, key, parent, body) VALUES (?, ?, ?, ?)",
            [(plan_id, item.key, item.parent, item.body) for item in messages],
        )

    def chain(self, plan_id: PlanId, head: str) -> Sequence[Message]:
        rows = self._connection.execute(_CHAIN, {"plan": plan_id, "head": head})
        return [Message(key=row[0], parent=row[1], body=row[2]) for row in rows]

    def keep_only(self, plan_id: PlanId, heads: Collection[str]) -> int:
        parents: dict[str, str | None] = {
            row[0]: row[1] for row in self._connection.execute(_PARENTS, (plan_id,))
        }
        needed: set[str] = set()
        for head in heads:
            current: str | None = head
            while current is not None and current not in needed:
                needed.add(current)
                current = parents.get(current)
        gone = [(plan_id, key) for key in parents if key not in needed]
        self._fence.writing(plan_id).executemany(
            "DELETE FROM actor_messages WHERE plan_id = ? AND key = ?", gone
        )
        return len(gone)
