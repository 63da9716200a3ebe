"""Owns Gemini CLI's checkpoints: its own service, in one node process that stays, as in the CLI."""

import json
import subprocess
from pathlib import Path

from benchmarks.peers.places import PeerError, Place, bytes_on_disk

DRIVER = Path(__file__).with_name("gemini_driver.mjs")


class Gemini:
    """`GitService` of gemini-cli-core: a shadow repository below the user's home."""

    def __init__(self, package: Path, place: Place) -> None:
        self.place, self.tree = place, place.project
        self._process = subprocess.Popen(
            ["node", str(DRIVER), str(package), str(self.tree)],
            cwd=self.tree,
            env=place.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._ask("open")
        except PeerError:
            self.close()
            raise

    def snapshot(self) -> str:
        return self._ask("snapshot")

    def restore(self, ref: str) -> None:
        self._ask("restore", ref)

    def stored(self) -> int:
        return bytes_on_disk(self.place.home / ".gemini")

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, what: str, ref: str = "") -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what, "ref": ref}).encode() + b"\n")
        self._process.stdin.flush()
        # What the service logs stands on the same output; answers are the lines of JSON.
        for line in self._process.stdout:
            if line.startswith((b'{"value"', b'{"error"')):
                answer = json.loads(line)
                if "error" in answer:
                    raise PeerError(f"gemini: {self.place.shortened(answer['error'])}")
                return str(answer["value"])
        raise PeerError("gemini: the process ended")
