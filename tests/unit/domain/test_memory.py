"""What an actor said and heard: each message has a key that never changes."""

import hashlib

import pytest

from cleveragents.domain.actor_protocol import Message


@pytest.mark.parametrize(("parent", "before"), [(None, ""), ("abc", "abc")])
@pytest.mark.parametrize("body", ["hello", "grüße", "half of a pair: \ud83d"])
def test_the_key_of_a_message_is_made_of_what_came_before_and_what_it_says(
    parent: str | None, before: str, body: str
) -> None:
    """It is stored, so that another version must come to the same one."""
    expected = hashlib.sha256(f"{before}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()

    message = Message.after(parent, body)

    assert message == Message(key=expected[:40], parent=parent, body=body)
