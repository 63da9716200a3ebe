"""Contents that are compressed in the background come back whole, also if a thread fails."""

import threading
from collections.abc import Iterable

import pytest
import zstandard

from cleveragents.infrastructure.snapshots import packing
from cleveragents.infrastructure.snapshots.packing import Packing, Piece

LOTS = [[Piece(b"%d" % n, b"content %d " % n * 9) for n in range(m, m + 70)] for m in (0, 70, 140)]


def _packed() -> dict[bytes, bytes]:
    work = Packing()
    for lot in LOTS[:-1]:
        work.add(lot)
    return work.finish(LOTS[-1])


def _whole(packed: dict[bytes, bytes]) -> bool:
    unpack = zstandard.ZstdDecompressor().decompress
    return all(unpack(packed[piece.key]) == piece.data for lot in LOTS for piece in lot)


def test_all_lots_come_back() -> None:
    assert _whole(_packed())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_a_thread_could_not_compress_is_done_by_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = packing._compressed  # pyright: ignore[reportPrivateUsage]

    def in_main_only(contents: list[bytes], threads: int) -> Iterable[bytes]:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError
        return real(contents, threads)

    monkeypatch.setattr(packing, "_compressed", in_main_only)
    assert _whole(_packed())
