"""Contents come back compressed in their order, however many there are."""

import random

import pytest
import zstandard

from cleveragents.infrastructure.snapshots.store.content_writer import packing


def _unpacked(contents: list[bytes]) -> list[bytes]:
    unpack = zstandard.ZstdDecompressor().decompress
    return [unpack(data) for data in packing(contents)()]


@pytest.mark.parametrize("size", [1, 30, 20_000])
def test_each_is_in_its_place(size: int) -> None:
    some = random.Random(size)
    contents = [some.randbytes(some.randrange(1, size + 1)) for _ in range(70)]

    assert _unpacked(contents) == contents


def test_none_and_one_that_is_large() -> None:
    large = b"again and again " * 100_000

    assert _unpacked([]) == []
    assert _unpacked([large]) == [large]
