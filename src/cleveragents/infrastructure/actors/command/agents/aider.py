"""aider: it has no hooks, but commits after each of its edits, and git can tell of commits.

The folder of git's hooks is another one for this run, by variables. Whatever hooks the repository
has are called from there.
"""

import os

from cleveragents.infrastructure.actors.command.agents.agent_run import AgentRun, Injection

_TELLS = "post-commit"
_NAMES = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", _TELLS, "post-checkout", "post-merge"),
    *("post-rewrite", "pre-push", "pre-merge-commit", "pre-rebase"),
)
_HISTORIES = {
    "CHAT_HISTORY_FILE": "aider.chat.history.md",
    "INPUT_HISTORY_FILE": "aider.input.history",
}
_SCRIPT = """#!/bin/sh
{tell}own="$(git rev-parse --git-common-dir)/hooks/{name}"
[ ! -x "$own" ] || exec "$own" "$@"
"""


def prepared(run: AgentRun) -> Injection:
    folder = ""
    for name in _NAMES:
        tell = f"{run.hook_line('pause')} </dev/null || :\n" if name == _TELLS else ""
        path = run.write(f"git-hooks/{name}", _SCRIPT.format(tell=tell, name=name), 0o700)
        folder = path.rpartition("/")[0]
    return Injection(
        argv=list(run.argv),
        variables={
            **_histories(run),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.hooksPath",
            "GIT_CONFIG_VALUE_0": folder,
        },
    )


def _histories(run: AgentRun) -> dict[str, str]:
    """What was said is in the plan's memory, and goes back with it: it is no work on the project,
    where each word would be a change."""
    kept = {name: os.path.join(run.memory, file) for name, file in _HISTORIES.items()}
    return {
        f"AIDER_{name}": path
        for name, path in kept.items()
        if f"AIDER_{name}" not in run.environ
        and not run.says(f"--{name.lower().replace('_', '-')}")
    }
