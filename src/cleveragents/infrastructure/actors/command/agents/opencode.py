"""opencode: a plugin for this run, named in its settings by a variable."""

import json

from cleveragents.infrastructure.actors.command.agents.agent_run import (
    AgentRun,
    Injection,
    json_object,
)

_VARIABLE = "OPENCODE_CONFIG_CONTENT"
_ABOUT_SESSIONS = ("--session", "-s", "--continue", "-c", "--fork")
_WITH_SESSIONS = ("run",)
# What only reads needs no checkpoint, and no wait.
_PLUGIN = """import { execFile } from "node:child_process"

const hook = %s
const reads = new Set(["read", "glob", "grep", "list", "lsp", "webfetch", "websearch", "todowrite"])

const tell = (kind, call, more) => new Promise((goOn, stop) => {
  const child = execFile(hook[0], [...hook.slice(1), kind], (error, _, why) =>
    error && kind === "pre-tool" ? stop(Error(why)) : goOn())
  child.stdin.on("error", () => {})
  child.stdin.end(JSON.stringify({
    tool_name: call.tool, tool_use_id: call.callID, session_id: call.sessionID, ...more,
  }))
})

export const CleverAgents = async () => ({
  "tool.execute.before": async (call, made) => {
    if (!reads.has(call.tool)) await tell("pre-tool", call, { tool_input: made.args })
  },
  "tool.execute.after": async (call, made) => {
    if (!reads.has(call.tool)) await tell("post-tool", call, { tool_response: made.output })
  },
})
"""


def prepared(run: AgentRun) -> Injection:
    plugin = run.write("cleveragents.js", _PLUGIN % json.dumps(list(run.hook)))
    settings = json_object(run.environ.get(_VARIABLE, ""))
    known = settings.get("plugin")
    settings["plugin"] = [*(known if isinstance(known, list) else []), f"file://{plugin}"]
    return Injection(
        argv=[run.program, *_arguments(run)], variables={_VARIABLE: json.dumps(settings)}
    )


def _arguments(run: AgentRun) -> list[str]:
    words = list(run.arguments)
    if not run.session or run.says(*_ABOUT_SESSIONS):
        return words
    if not words:
        return ["--session", run.session]
    if words[0] in _WITH_SESSIONS:
        return [words[0], "--session", run.session, *words[1:]]
    return words
