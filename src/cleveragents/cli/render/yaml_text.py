"""The YAML spelling of an envelope; apart from `envelope`, because yaml is slow to import."""

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  yaml calls it so
        """The same list twice is written twice: readers should not need anchors."""
        return True


def dump(value: dict[str, Any], *, ascii_only: bool) -> str:
    return yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=not ascii_only,
        width=10_000,  # a long line stays one line, so that it can be searched for
    )


def _represent_text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A patch as a block of lines; yaml itself takes quotes where a block cannot carry it."""
    style = "|" if "\n" in text.rstrip("\n") else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
