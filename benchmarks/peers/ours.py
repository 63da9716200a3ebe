"""Owns how our own product is driven: its snapshot engine as in a running plan, and its command."""

import json
import sys
from pathlib import Path

from benchmarks.peers.places import PeerError, Place, bytes_on_disk
from benchmarks.workers import PLAN, adapters_in, resource_of
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

AGENTS = str(Path(sys.executable).with_name("agents"))
ACTION = {
    "name": "compare",
    "description": "a sandbox to compare in",
    "resources": {"code": {"type": "git-checkout", "path": "."}},
    "steps": [{"name": "begin", "tool": "shell", "with": {"command": "true"}}],
}


class Engine:
    """One process that stays, as `plan execute` is; the plan's own record is not in it."""

    def __init__(self, place: Place) -> None:
        self.tree = place.store / "sandboxes" / PLAN / "code"
        self._snapshots = place.store / "snapshots"
        base = place.run("git", "rev-parse", "HEAD").decode().strip()
        self._resource = resource_of(place.project, self.tree, base)
        adapters = adapters_in(place.store)
        adapters.of(self._resource).sandbox.create(self._resource)
        self._manager = CheckpointManager(adapters)

    def snapshot(self) -> str:
        return self._manager.capture(self._resource).ref

    def restore(self, ref: str) -> None:
        """With the safety checkpoint that a rollback takes first."""
        self._manager.capture(self._resource)
        self._manager.restore(self._resource, ref)

    def stored(self) -> int:
        self._manager.close()
        return bytes_on_disk(self._snapshots)

    def close(self) -> None:
        self._manager.close()


class Installed:
    """The installed command: `plan use`, `execute`, `checkpoint create` and `rollback`."""

    def __init__(self, place: Place) -> None:
        self.place, self._data = place, place.shared / "data"
        action = place.top / "action.json"
        action.write_text(json.dumps(ACTION))
        self._plan = self._agents("plan", "use", str(action))["plan_id"]
        self._agents("plan", "execute", self._plan)
        status = self._agents("plan", "status", self._plan)
        self.tree = Path(status["sandboxes"][0]["path"])
        self._count = 0

    def snapshot(self) -> str:
        self._count += 1
        label = f"compare {self._count}"
        self._agents("plan", "checkpoint", "create", "--label", label, self._plan)
        return label

    def restore(self, ref: str) -> None:
        self._agents("plan", "rollback", "--yes", self._plan, ref)

    def stored(self) -> int:
        records = sum(path.stat().st_blocks * 512 for path in self._data.glob("cleveragents.db*"))
        return bytes_on_disk(self._data / "snapshots") + records

    def close(self) -> None:
        """Nothing runs between two calls."""

    def _agents(self, *words: str):
        options = ("--format", "json", "--data-dir", self._data)
        said = self.place.run(AGENTS, *options, *words, accept=(0, 1, 2))
        answer = json.loads(said)
        if answer["exit_code"]:
            error = answer["data"]["error"]
            raise PeerError(f"agents: {self.place.shortened(error['message'])}")
        return answer["data"]
