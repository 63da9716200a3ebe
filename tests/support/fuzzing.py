"""Inputs that are almost right: a good document with a few things changed, as data and as bytes."""

import copy
import json
import math
import os
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# How many inputs a test is given; `nox -s fuzz` and `make soak` give many more.
EXAMPLES = int(os.environ.get("CLEVERAGENTS_TEST_FUZZ", "25"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)
# Each of these starts processes, or waits for servers.
SLOW_FUZZ = settings(FUZZ, max_examples=max(5, EXAMPLES // 5))

Data = Any
# What readers of JSON stumble over: half a character, too deep, too long, not finite.
HARD_JSON = st.sampled_from(
    [
        *(b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b"[" * 3000 + b"]" * 3000),
        *(b'{"a":' * 3000 + b"1" + b"}" * 3000, b"9" * 5000, b"1e999", b"NaN", b"-0", b"null"),
        *(b'{"a": 1, "a": 2}', b'"' + b"x" * 300_000 + b'"', b"\xff", b"[]", b"{}", b'""', b"true"),
    ]
)
_HARD = st.sampled_from(
    [
        *("", " ", "\t", "\n", "-", "--", "~", "null", "yes", "0", "-1", "1e999", "0x7f", ".inf"),
        *("../..", "/", "/dev/null", "\x00", "\x07", "\ufeff", "{}", "{target}", "$HOME", "*a"),
        *("a" * 5000, "\ud800", "9" * 5000, "ünï", "\u202e", "\U0001f600", "!!binary x", "&a"),
        *("<<", "#", "%", "'", '"'),
    ]
)
_LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 0.5, -0.0, math.inf, math.nan]),
    _HARD,
    st.text(max_size=8),
)
TEXT = _HARD | st.text(max_size=8)
JUNK = st.recursive(
    _LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_HARD, inner, max_size=3),
    max_leaves=6,
)
# A word of a command line or an environment: bytes, UTF-8 or not, of which no system passes a null.
WORD = (
    JUNK.map(lambda data: str(data).encode("utf-8", "surrogatepass")) | st.binary(max_size=6)
).map(lambda word: os.fsdecode(word.replace(b"\0", b"")))
_MARK = "put it here"
# What means something to the readers of YAML and TOML.
_TOKENS = st.sampled_from(
    [
        *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\t", b"\n", b"\n\n", b" "),
        *(b": ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"<<: ", b"? ", b"| ", b"> ", b"#"),
        *(b"---\n", b"...\n", b"%YAML 9.9\n", b"!!python/object/apply:os.getpid []", b"!x "),
        *(b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"\\ud800"),
        *(b"=", b'"""', b"'''", b"\\u0000", b"[[a]]\n", b"[a]\n", b"1979-05-27", b"1_000", b'"'),
    ]
)


@st.composite
def spoiled(draw: st.DrawFn, good: Data) -> Data:
    """The document with one to three of its values taken out, replaced, renamed or added to."""
    data = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(data))
        if not places:
            return data
        holder, key = places[draw(st.integers(0, 10_000)) % len(places)]
        draw(st.sampled_from(_CHANGES))(draw, holder, key)
    return data


@st.composite
def garbled(draw: st.DrawFn, text: st.SearchStrategy[bytes]) -> bytes:
    """The bytes with a few cut out, put in or written twice."""
    content = draw(text)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, 10_000)) % (len(content) + 1)
        size = draw(st.integers(0, 30))
        piece = draw(_TOKENS | st.binary(max_size=4) | st.just(content[at : at + size] * 2))
        content = content[:at] + piece + content[at + size * draw(st.booleans()) :]
    return content


@st.composite
def hardened(draw: st.DrawFn, good: Data) -> bytes:
    """The document as JSON, with one value that is hard to read."""
    data = copy.deepcopy(good)
    holder, key = draw(st.sampled_from(_places(data)))
    holder[key] = _MARK
    return as_json(data).replace(f'"{_MARK}"'.encode(), draw(HARD_JSON))


def as_yaml(data: Data) -> bytes:
    """As people write it; what cannot be written as YAML is written as JSON."""
    try:
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode()
    except (yaml.YAMLError, UnicodeEncodeError):
        return json.dumps(data).encode()


def as_json(data: Data) -> bytes:
    """On one line, whatever is in it; halves of surrogate pairs are escaped."""
    return json.dumps(data).encode()


def _places(data: Data) -> list[tuple[Data, Any]]:
    found: list[tuple[Data, Any]] = []
    keys = list(data) if isinstance(data, dict) else range(len(data))
    for key in keys:
        found.append((data, key))
        if isinstance(data[key], dict | list):
            found += _places(data[key])
    return found


def _take_out(_draw: st.DrawFn, holder: Data, key: Any) -> None:
    del holder[key]


def _replace(draw: st.DrawFn, holder: Data, key: Any) -> None:
    holder[key] = draw(JUNK)


def _rename(draw: st.DrawFn, holder: Data, key: Any) -> None:
    if isinstance(holder, dict):
        holder[draw(_HARD | st.just(f"{key}s") | st.text(max_size=5))] = holder.pop(key)


def _add(draw: st.DrawFn, holder: Data, key: Any) -> None:
    if isinstance(holder, dict):
        holder[draw(_HARD | st.text(max_size=5))] = draw(JUNK)
    else:
        holder.insert(key, draw(JUNK | st.just(holder[key])))


_CHANGES: list[Callable[[st.DrawFn, Data, Any], None]] = [_take_out, _replace, _rename, _add]
