"""Writes docs/reference/json.md: of each command its keys, and an answer that the tests got.

A key means the same wherever it occurs; where it cannot, `IN_PLACE` says what it means there. The
examples are the golden envelopes that `tests/golden` compares with what the commands answer.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
sys.path.insert(0, str(GOLDEN.parent.parent))

from tests.golden.key_paths import FREE, paths  # noqa: E402 - it is in no package that is installed

MEANINGS = {
    "action": "the name of the action that the plan is a run of",
    "actor": "who decides the steps",
    "affected": "the decisions that the correction takes back",
    "alternatives": "what could have been chosen instead",
    "applied": "whether the result is in the project now",
    "apply": "whether the project has the result, and what can be done with it until when",
    "artifacts": "what each tool call has left, in order",
    "arguments": "what the tool was called with",
    "attempt": "1, and one more after each correction",
    "base": "the state of the resource that the sandbox was made from",
    "because_of": "the decision through which this one is affected",
    "cancel_reason": "why it was cancelled, as the person said; null without a word",
    "changes_reverted": "the files that went back",
    "checkpoint": "the checkpoint group that belongs to it",
    "checkpoint_id": "the checkpoint of one resource",
    "checkpoint_type": "what was captured: a type of resource, or `plan-state`",
    "checkpointable": "whether checkpoints hold what it writes",
    "checkpoints": "the checkpoints",
    "checkpoints_remaining": "how many groups the plan has afterwards",
    "child": "the name of the child plan; null for the plan itself",
    "child_plans": "how many child plans it has started",
    "child_plans_invalidated": "how many child plans count no longer",
    "children": "what is below it, in the same form",
    "chosen": "what was decided",
    "code": "which error it is; [all of them](errors.md)",
    "compensate": "the tool that undoes the effect",
    "confidence": "from 0 to 1",
    "config": "every key",
    "config_kept": "whether the global config file stays",
    "confinement": "how steps are held inside their sandboxes, and by what on this machine",
    "content_bytes": "how large the contents are, before they are compressed",
    "context": "what the decision rests on; its keys depend on the actor",
    "correction_id": "the correction; `plan diff --correction` takes it",
    "corrections": "the corrections that it has to do with",
    "created_at": "when it was made",
    "damaged": "what cannot be restored, and why",
    "database_bytes": "how large the records are",
    "trash_bytes": "what was thrown away and is not deleted yet",
    "kept_bytes": "what applies have replaced and is kept in repositories, to undo them",
    "decision_id": "the decision",
    "decisions_after_cp": "how many decisions were discarded, in words",
    "dedup": "how many times the stored contents are used",
    "deletions": "lines that went",
    "depends_on": "the decisions that this one rests on",
    "depth": "how many levels the tree has",
    "description": "what it is, for people",
    "diff_summary": "the size of the difference",
    "doc": "what the key is for",
    "dry_run": "whether it was only looked at, and nothing changed",
    "effect_id": "the effect in the ledger",
    "effects": "effects outside of the sandboxes",
    "elapsed": "seconds that the plan has run",
    "error": "what went wrong; null if nothing did",
    "example": "a step that uses it",
    "execution": "how far it is, in numbers",
    "exit_code": "the exit code of the program; null if a signal ended it",
    "failed": "what could not be removed, and why",
    "failed_children": "the children that failed, or whose result could not be merged",
    "failures": "the tool calls that failed",
    "file": "a file",
    "files": "the files that differ",
    "files_changed": "how many files differ",
    "files_lost": "by resource, the files of its sandbox that existed nowhere else",
    "files_modified": "how many files the plan's tool calls have changed",
    "files_reverted": "how many files went back",
    "filesystem_path": "where the sandbox is",
    "findings": "what is wrong: `check`, `subject`, `problem`, `remedy`, `state`",
    "finished": "when it ended",
    "finishes_rollback": "whether a rollback that was cut off is finished first",
    "freed_bytes": "how many bytes that freed",
    "from": "the group that is compared",
    "group_id": "the checkpoint group: what one goes back to",
    "guidance": "what the person said",
    "healthy": "whether nothing is left to mend",
    "hint": "what to type next",
    "id": "the same as `decision_id`",
    "idempotent": "whether doing it twice is doing it once",
    "impact": "what else was taken back",
    "in_use": "the plans that stay because somebody works on them",
    "insertions": "lines that came",
    "intervention_id": "the decision that records the correction",
    "json_schema": "its parameters as a JSON Schema",
    "kept": "what stays",
    "key": "the key",
    "kind": "where it comes from: built in, of the action, of an MCP server",
    "label": "the name of the group for people",
    "last_checkpoint_id": "the group that the plan stands on; null before the first",
    "last_completed_step": "the last step that counts, from 0; -1 before the first",
    "latest": "whether it is what `latest` means here",
    "brought": "ignored paths that came along, as `--with-ignored` asked for",
    "left_out": "what apply does not take: ignored or excluded files, empty folders",
    "left": "what is not of ours, and stays",
    "limit_bytes": "how large the store may become; null without a limit",
    "location": "where the store is",
    "message": "what happened, for people",
    "metadata": "`reason`, `source` and `phase`, and what else is known of it",
    "mode": "`revert` or `append`",
    "name": "its name",
    "network": "whether it may use the network",
    "next": "what can be typed next",
    "next_step": "the step that would be next, from 0; null if none is left",
    "next_steps": "what can be typed next",
    "nodes": "how many decisions there are",
    "number": "the number of the step, counted from 1",
    "only": "the files that it was limited to",
    "origin": "where the value comes from",
    "others": "folders of other installations",
    "outcome": "what became of it: `pending`, `merged`, `conflict`, `failed`, …",
    "output": "what it said",
    "parameters": "what it takes",
    "parent_id": "the decision above; null for the root",
    "parent_plan_id": "the plan that it is a child of; null for one that a person made",
    "patch": "the difference as git shows it",
    "path": "where it is",
    "phase": "`strategize`, `execute` or `apply`",
    "plan": "the same as `plan_id`",
    "plan_id": "the plan",
    "plans": "the plans",
    "post_rollback_state": "how the plan stands afterwards",
    "progress": "each step and how it stands",
    "project": "the place of the plan: a folder",
    "proven": "whether that is proven, or taken to be so to be safe",
    "question": "what was asked",
    "rationale": "why it was chosen",
    "read_only": "whether it is held to write nothing",
    "reads": "what it read, by resource; null if that is not known",
    "reason": "why: the trigger, `decision`, `manual`, …",
    "recoverable": "whether the plan can be resumed",
    "redo_left": "how often `redo` can be said now",
    "undo_until": "until when the apply can be undone and redone; null if it is final",
    "ref": "what it is called there, for git the commit",
    "removed": "what goes",
    "replacement": "the step that would take the place; null if it is the same one",
    "repositories": "the repositories that plans had names in",
    "required": "whether it must be said",
    "resource": "the name of the resource in the action",
    "resource_id": "the resource; null for the plan's own state",
    "resources": "the resources",
    "results": "what became of each resource",
    "retries": "how often it was tried again",
    "rollback_summary": "where the plan went back to",
    "sandbox": "how the sandboxes are: `ready`, `missing`, …",
    "sandbox_bytes": "what the sandboxes take on the disk, with what it shares with the project",
    "sandbox_ref": "what the state is called in the sandbox, for git the commit",
    "sandboxes": "the sandboxes",
    "sandboxes_kept": "the sandboxes that stay, and why",
    "sandboxes_removed": "the sandboxes that went",
    "side_effects": "what it does outside of the sandboxes",
    "size_bytes": "how large it is in the store",
    "snapshots": "how many snapshots there are",
    "source": "who caused it: a tool, `rollback`, …",
    "stands_for": "the earlier effect that was taken for this one",
    "started": "when it began; null if it did not",
    "state": "`queued`, `processing`, `complete`, `errored`, `cancelled`, `applied`, `constrained`",
    "state_hash": "a hash of all that was captured",
    "states": "how many of the groups hold different states",
    "status": "how it stands",
    "step": "the name of the step",
    "step_index": "the step, from 0",
    "steps": "how many steps it has",
    "steps_done": "how many of them are done",
    "stored_bytes": "how large it is on the disk",
    "strategy": "how the sandbox was made",
    "stopped": "who was working on it and was stopped, in words; null if nobody was",
    "summary": "the size of the tree",
    "superseded": "whether a rollback or a correction has taken it back",
    "table": "the table, with its database and resource",
    "tables": "the tables that differ; large databases are told as files only",
    "timeout": "seconds that it may take",
    "timing": "when, and for how long",
    "to": "the group that it is compared with",
    "tool": "the tool",
    "tool_calls": "the tool calls",
    "tool_calls_after_cp": "how many tool calls were undone, in words",
    "tools": "the tools",
    "total_bytes": "all of it together",
    "touched_at": "when it ended, or something last happened to it",
    "tree": "the root decision, with everything below it",
    "type": "what sort it is",
    "unapplied": "how many plans of that age are not over, and stay",
    "unchecked": "what was kept by a person's word and has not run since",
    "undo_checkpoint": "the group that takes this back",
    "undo_left": "how often `undo` can be said now",
    "undone": "whether a rollback has taken it back",
    "unreachable": "the repositories that are not where they were",
    "used_by": "the decisions that rest on this one",
    "validation": "whether it must pass before apply",
    "validations": "the steps that must pass before apply",
    "value": "its value",
    "values": "what it gave back for programs; the keys depend on the tool",
    "verified": "the groups that can be restored",
    "what": "the plan or path",
    "whole_resources": "the resources that go back as a whole",
    "why": "why",
    "write_scope": "what else it writes",
    "writes": "whether it writes",
}
IN_PLACE = {
    "run:summary": "how much has changed",
    "doctor:plans": "how many plans were looked at",
    "doctor:checkpoints": "how many checkpoints were looked at",
    "store verify:plans": "how many plans were looked at",
    "store verify:checkpoints": "how many checkpoint groups were looked at",
    "store status:plans[].checkpoints": "how many checkpoint groups the plan has",
    "execution.checkpoints": "how many checkpoint groups the plan has",
    "execution.tool_calls": "how many tool calls count",
    "changes_reverted[].action": "`restored` or `removed`",
    "changes_reverted[].file": "the file; with several resources `RESOURCE:PATH`",
    "files[].path": "the file; with several resources `RESOURCE:PATH`",
    "files[].change": "lines (`+8 -2`), or `added`, `modified`, `deleted`",
    "undo:steps": "the steps that were taken back",
    "undo:apply": "`undone`: the project is what it was before the apply",
    "redo:apply": "`applied`: the result is in the project again",
    "undo:finished": "whether this has only finished an interrupted one",
    "redo:finished": "whether this has only finished an interrupted one",
    "undo:would": "`undo`: with `--dry-run`, what would be done",
    "apply.state": "`applied`, `undone`, or `interrupted` on the way from one to the other",
    "apply.until": "until when it can be undone or redone; null if it is final",
    "apply.next": "the command to type for that; null if it is final",
    "undo:resources[].how": "how it was taken back, in words",
    "redo:resources[].how": "how it was brought again, in words",
    "redo:steps": "the steps that count again",
    "tables[].status": "`added`, `modified` or `deleted`",
    "files[].status": "`added`, `modified` or `deleted`",
    "impact.sandbox": "what the sandboxes are now, in words",
    "post_rollback_state.state": "the state, in words",
    "plan correct:status": "the plan afterwards, as `plan status` tells it",
    "plan correct:steps": "the steps that are done again, from 0",
    "action check:file": "the action file",
    "action check:steps": "the names of the steps",
    "action check:tools": "the names of its own tools",
    "config set:file": "the config file that was changed",
    "failed[].reason": "why it stays",
    "left_out[].reason": "`ignored or excluded`, or `an empty folder`",
    "left_out[].path": "the file or folder",
    "brought[].path": "the path, and how much was written and removed there",
    "prune:removed": "the plans that went, or would go",
    "prune:removed[].size_bytes": "what it takes on the disk",
    "prune:size_bytes": "what all of them take on the disk",
    "uninstall:location": "the data folder",
    "uninstall:size_bytes": "what is removed there",
    "config unset:file": "the config file that was changed",
    "rollback_summary.checkpoint": "the group that the plan went back to",
    "plan correct:checkpoint": "the group that the affected files go back to",
    "tree.checkpoint": "the group that was stored with the decision",
    "tree.children[].checkpoint": "the group that was stored with the decision",
    "error.checkpoint": "the group that the plan stands on since",
    "sandboxes[].status": "`ready`, `missing`, `removed`, …",
    "effects[].state": "`done`, `uncertain`, `compensated`, …",
    "effects[].effects": "what it does outside, in words",
    "artifacts[].status": "`succeeded` or `failed`",
    "failures[].status": "`succeeded` or `failed`",
    "tool_calls[].status": "`succeeded` or `failed`",
    "error.step": "the step that failed, from 0",
    "removed[].reason": "why it goes",
    "kept[].reason": "why it stays",
    "config unset:removed": "whether there was a value to take away",
    "progress[].status": "`queued`, `processing`, `complete`, `errored` or `failed`",
    "parameters[].required": "whether it must be said",
    "tool show:parameters": "each parameter",
}
PLACEHOLDERS = {"elapsed": "number", "dedup": "number", "snapshots": "number", "base": "text",
                "value": "what the key takes", "confinement": "object"}  # fmt: skip


def reference() -> str:
    """One section for each command."""
    return "\n\n".join(_section(name, answers) for name, answers in _answers().items())


def _answers() -> Mapping[str, Mapping[str, Any]]:
    """The envelopes of each command, by the name of what was asked."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((GOLDEN / "envelopes").glob("*.json")):
        envelope = json.loads(file.read_text(encoding="utf-8"))
        found.setdefault(envelope["command"], {})[file.stem] = envelope
    return found


def _section(command: str, answers: Mapping[str, Any]) -> str:
    good = {name: found for name, found in answers.items() if "message" not in _error(found)}
    lines = [f"### {command}", ""]
    if good:
        lines += ["| key of `data` | type | what it is |", "|---|---|---|", *_rows(command, good)]
    else:
        lines += ["Answers with an error in the examples; its `data` is that of every error."]
    name = next(iter(good or answers))
    text = json.dumps(_short((good or answers)[name]), indent=2, ensure_ascii=False)
    return "\n".join([*lines, "", "```json", text, "```"])


def _error(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    return (envelope["data"].get("error") or {}) if envelope["status"] == "error" else {}


def _rows(command: str, answers: Mapping[str, Any]) -> Iterator[str]:
    types: dict[str, set[str]] = {}
    for found in answers.values():
        for path, value in paths(found["data"]):
            types.setdefault(path, set()).add(_type(path, value))
    for path, kinds in types.items():
        listed = " or ".join(sorted(kinds, key=lambda kind: (kind == "null", kind)))
        yield f"| `{path}` | {listed} | {_meaning(command, path)} |"


def _meaning(command: str, path: str) -> str:
    for place, meaning in IN_PLACE.items():
        of, _, inner = place.rpartition(":")
        anywhere = not of and path.endswith(f".{inner}")
        if anywhere or (of in ("", command) and path == inner):
            return meaning
    key = path.rpartition(".")[2].removesuffix("[]")
    if key not in MEANINGS:
        sys.exit(f"docs/json_reference.py does not say what `{key}` of `{command}` means")
    return MEANINGS[key]


def _type(path: str, value: object) -> str:
    key = path.rpartition(".")[2].removesuffix("[]")
    if value is not None and (key.endswith("_bytes") or key in PLACEHOLDERS):
        return PLACEHOLDERS.get(key, "number")
    kinds = {bool: "true or false", int: "number", float: "number", str: "text", list: "list"}
    return "null" if value is None else kinds.get(type(value), "object")


def _short(value: Any, key: str = "") -> Any:
    """One of each list, and nothing of what is free in form."""
    if isinstance(value, dict):
        if key in FREE and value:
            return {"…": "…"}
        return {name: _short(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value[:1]] + (["…"] if len(value) > 1 else [])
    return value
