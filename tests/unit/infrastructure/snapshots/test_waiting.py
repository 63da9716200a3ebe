"""Contents that are stored together are each stored once, whatever they are."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.infrastructure.snapshots.store import recent_rows as recent
from cleveragents.infrastructure.snapshots.store.content_store import ContentStore
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore
from cleveragents.infrastructure.snapshots.store.recent_rows import compact

# Together more than is compressed on the spot.
MANY = [os.urandom(40) * 50 for _ in range(60)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    with PlanStore(str(tmp_path), "plan", "code").writing() as db:
        yield ContentStore(db, "code")


def _put_all(store: ContentStore, contents: list[bytes]) -> list[bytes]:
    return [store.put_file((content,), b"path", len(content)) for content in contents]


def _count(store: ContentStore) -> int:
    return store.db.execute("SELECT COUNT(*) FROM contents").fetchone()[0]


def _codecs(store: ContentStore) -> set[int]:
    return {codec for (codec,) in store.db.execute("SELECT codec FROM contents")}


@pytest.mark.parametrize("begin", [True, False])
def test_many_come_back_among_them_nothing_and_noise(store: ContentStore, begin) -> None:
    contents = [*MANY, b"", os.urandom(100), b"a"]
    keys = _put_all(store, contents)
    if begin:
        store.begin_flush()
    store.flush()
    assert keys == [hashlib.sha256(content).digest() for content in contents]
    assert [store.get(key, "name") for key in keys] == contents
    # Noise takes less room as it is.
    assert _codecs(store) == {0, 1}
    used = store.db.execute("SELECT SUM(LENGTH(data)) FROM contents").fetchone()[0]
    assert store.stored_bytes == used < sum(map(len, contents)) / 10


def test_what_comes_after_compressing_has_begun_is_compressed_too(store: ContentStore) -> None:
    _put_all(store, MANY)
    store.begin_flush()
    late = store.put(b"late" * 1000)
    assert store.get(late, "name") == b"late" * 1000
    assert _codecs(store) == {1}
    assert _count(store) == len(MANY) + 1


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("many", [0, 5000])
@pytest.mark.parametrize("poured", [True, False])
def test_what_is_stored_is_not_stored_again(
    store: ContentStore, monkeypatch: pytest.MonkeyPatch, begin, many, poured
) -> None:
    _put_all(store, MANY)
    store.flush()
    before = store.stored_bytes
    if poured:
        compact(store.db)
    monkeypatch.setattr(recent, "MANY", many)
    keys = _put_all(store, [*MANY, b"new" * 100])
    if begin:
        store.begin_flush()
    store.flush()
    assert _count(store) == len(MANY) + 1
    assert store.stored_bytes - before < 100
    assert [store.get(key, "name") for key in keys] == [*MANY, b"new" * 100]


@given(lots=st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=6), data=st.data())
def test_any_lots_in_any_order(tmp_path_factory, lots: list[list[int]], data) -> None:
    folder = tmp_path_factory.mktemp("store")
    with PlanStore(str(folder), "plan", "code").writing() as db:
        store, known = ContentStore(db, "code"), dict[bytes, bytes]()
        for lot in lots:
            contents = [b"%d" % number * number for number in lot]
            known |= dict(zip(_put_all(store, contents), contents, strict=True))
            if data.draw(st.booleans()):
                store.begin_flush()
            store.flush()
            if data.draw(st.booleans()):
                compact(db)
        assert {key: store.get(key, "name") for key in known} == known
        assert _count(store) == len(known)
