"""Looking at all bytes of a file quickly: the fast hash of every block, by several threads."""

import os
import threading

from cleveragents.infrastructure.snapshots.pages.layout import BLOCK, FAST, blocks_in, fast_hash

_READ_AHEAD = 4 * BLOCK
# More than a few only wait for the memory.
_MOST_THREADS = 4
# Starting a thread costs as much as hashing some blocks.
_SHARE_BLOCKS = 16


def fast_hashes(fd: int, size: int, seed: int) -> bytes:
    """One hash per block, one after the other; a file that ends early gives fewer."""
    # Reading and hashing both let other threads run. A database that was written page by page lies
    # in memory page by page, and fetching it from there is work for the processor.
    step = _blocks_per_share(blocks_in(size)) * BLOCK
    shares = [
        _Share(fd, start, min(start + step, size), seed) for start in range(0, size, max(step, 1))
    ]
    if len(shares) == 1:
        shares[0].look()
    else:
        _at_once(shares)
    return _joined(shares)


class _Share(threading.Thread):
    """A part of the file that begins at a block."""

    def __init__(self, fd: int, start: int, end: int, seed: int) -> None:
        super().__init__(name="pages-scan", daemon=True)
        self._fd, self._start, self.end, self._seed = fd, start, end, seed
        self.hashes = b""
        self.error: OSError | None = None

    @property
    def is_whole(self) -> bool:
        return len(self.hashes) == blocks_in(self.end - self._start) * FAST

    def run(self) -> None:
        try:
            self.look()
        except OSError as error:
            self.error = error

    def look(self) -> None:
        size = self.end
        buffer = memoryview(bytearray(min(_READ_AHEAD, size - self._start)))
        found: list[bytes] = []
        offset = self._start
        while offset < size:
            count = os.preadv(self._fd, [buffer[: size - offset]], offset)
            if offset + count < size:
                # A short read must not move the borders of the blocks.
                count -= count % BLOCK
            if not count:
                break
            starts = range(0, count, BLOCK)
            found += [fast_hash(buffer[at : min(at + BLOCK, count)], self._seed) for at in starts]
            offset += count
        self.hashes = b"".join(found)


def _blocks_per_share(blocks: int) -> int:
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return max(_SHARE_BLOCKS, -(-blocks // threads))


def _at_once(shares: list[_Share]) -> None:
    started: list[_Share] = []
    try:
        for share in shares:
            if _started(share):
                started.append(share)
            else:
                share.run()
    finally:
        # Whatever interrupts us: nobody may still read when the file is closed.
        for share in started:
            share.join()


def _started(share: _Share) -> bool:
    try:
        share.start()
    except RuntimeError:  # the system has no thread to give
        return False
    return True


def _joined(shares: list[_Share]) -> bytes:
    found = b""
    for share in shares:
        if share.error is not None:
            raise share.error
        found += share.hashes
        if not share.is_whole:
            break  # what comes behind the end would stand at another block's place
    return found
