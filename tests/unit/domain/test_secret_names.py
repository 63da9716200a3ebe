"""What is called like a secret, and how that is said as excludes."""

import pytest

from cleveragents.domain.secrets import (
    TOLD,
    excludes_of_secrets,
    is_secret,
    skips_secrets,
    told_excludes,
)
from cleveragents.infrastructure.files.excludes import excludes, fingerprint


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "prod.env", "tls.pem", "id_rsa", ".npmrc", "secrets.yaml"]
)
def test_these_are(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [".env.example", ".env.local.sample", "id_rsa.pub", "environment.py", "key.py"],
)
def test_these_are_not(name: str) -> None:
    assert not is_secret(name)


def test_as_excludes_they_leave_out_what_is_a_secret_wherever_it_lies() -> None:
    left_out = excludes(excludes_of_secrets([]))

    assert (b".env", False) in left_out
    assert (b"deep/er/tls.pem", False) in left_out
    assert (b".env/lib/x.py", False) in left_out
    assert (b".env.example", False) not in left_out
    assert (b"deep/.env.local.dist", False) not in left_out
    assert (b"src/main.py", False) not in left_out


def test_what_git_tracks_is_not_left_out_but_only_that() -> None:
    left_out = excludes(excludes_of_secrets(["certs/ca.pem", ".env", "old.key/note.txt", "a.py"]))

    for path, is_folder in ((b"certs/ca.pem", False), (b".env", False), (b"old.key", True)):
        assert (path, is_folder) not in left_out
    assert (b"old.key/note.txt", False) not in left_out
    assert (b"old.key/own.key", False) in left_out
    assert (b"old.key/deep/other.txt", False) in left_out
    assert (b"certs/own.pem", False) in left_out
    assert (b"deep/.env", False) in left_out


def test_people_are_told_one_word_for_all_of_them() -> None:
    entries = ("big/", *excludes_of_secrets(["ca.pem"]))

    assert skips_secrets(entries)
    assert told_excludes(entries) == ("big/", TOLD)
    assert told_excludes(("big/", ".env")) == ("big/", ".env")
    assert not skips_secrets((".env",))


def test_an_exclude_that_is_taken_back_counts_for_what_was_listed_before() -> None:
    one, two = excludes(["*.log"]), excludes(["*.log", "!keep.log"])

    assert (b"a/keep.log", False) in one
    assert (b"a/keep.log", False) not in two
    assert (b"a/other.log", False) in two
    assert (b"a/keep.log", False) in excludes(["*.log", "!/keep.log"])
    assert fingerprint(one) != fingerprint(two)
