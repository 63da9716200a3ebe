"""The cases of the comparison can be failed: a tool that does nothing passes none of them."""

from pathlib import Path

from benchmarks.peers import fidelity
from benchmarks.peers.places import Place
from benchmarks.peers.session import Peer


class Nothing:
    """Says that all is well, like a checkpoint that was never made."""

    def __init__(self, place: Place) -> None:
        self.tree = place.project

    def snapshot(self) -> str:
        return "none"

    def restore(self, ref: str) -> None:
        """Leaves everything as it is."""

    def stored(self) -> int:
        return 0

    def close(self) -> None:
        """There is nothing to close."""


def test_a_tool_that_does_nothing_passes_no_case(tmp_path: Path) -> None:
    peer = Peer(key="nothing", name="nothing", how="", version="0", open=Nothing)
    verdicts = fidelity.score([peer], tmp_path, workers=2)["nothing"]
    assert [name for name, wrong in verdicts.items() if not wrong] == []
    assert not [wrong for wrong in verdicts.values() if "could not be played" in wrong]
    assert sum(len(group) for group in fidelity.GROUPS.values()) == len(verdicts)
