"""git, the web, Python functions and MCP servers as tools, each held inside and on record."""

import http.server
import json
import re
import sys
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import PlanHandle, Step, World, action, shell, write

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
NETWORK = {"network": True}


def call(tool: str, **arguments: Any) -> Step:
    return {"name": tool, "tool": tool, "with": arguments}


def outputs(plan: PlanHandle) -> list[str]:
    return [item["output"] for item in plan("artifacts").ok().data["artifacts"]]


def last(plan: PlanHandle) -> Mapping[str, Any]:
    return plan("artifacts").ok().data["artifacts"][-1]


def refused(world: World, *steps: Step, **keys: Any) -> str:
    answer = world.agents("plan", "use", world.write_action(action(*steps, **keys)))
    assert (answer.code, answer.error["code"]) == (1, "action-invalid"), answer
    return answer.error["message"]


def failed(plan: PlanHandle) -> str:
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed"), answer
    return plan.status["error"]["message"]


# --- git ----------------------------------------------------------------------------------------


def test_git_tools_work_in_the_sandbox_and_run_no_hooks(world: World) -> None:
    user = world.project.fingerprint()
    hook = "printf '#!/bin/sh\\ntouch hooked\\nexit 1\\n' > $h/$n; chmod +x $h/$n"
    each = f"for n in pre-commit post-commit; do {hook}; done"
    hooks = f"h=$(git rev-parse --git-dir)/hooks; mkdir -p $h; {each}"
    plan = world.run(
        shell(hooks, "hooks"),
        write("new.txt", "new\n"),
        write("src/app.py", "print('two')\n"),
        call("git.status"),
        call("git.diff", path="src"),
        call("git.commit", message="mine", paths=["new.txt"], author="A <a@x>"),
        call("git.diff", against="HEAD~1", staged=True),
        call("git.commit", message="the rest"),
    )
    found = outputs(plan)
    assert "?? new.txt" in found[3]
    assert "+print('two')" in found[4]
    assert found[5].endswith(" mine\n")
    assert "+new" in found[6]
    assert "two" not in found[6]
    assert len(last(plan)["values"]["commit"]) == 40
    assert not (plan.sandbox / "hooked").exists()
    assert world.project.fingerprint() == user
    plan.rollback("start").ok()
    empty = world.run(call("git.commit", message="x", allow_empty=True))
    assert last(empty)["output"].endswith(" x\n")


def test_git_tools_refuse_what_makes_no_sense(world: World) -> None:
    assert "nothing to commit" in failed(world.use(call("git.commit", message="x")))
    assert "bad revision" in failed(world.use(call("git.diff", against="--output=/tmp/x")))
    (world.top / "folder").mkdir()
    resources = {"box": {"type": "fs-directory", "path": str(world.top / "folder")}}
    assert "needs a checkout" in refused(world, call("git.status"), resources=resources)
    assert "needs `message`" in refused(world, call("git.commit"))
    assert "must be a list" in refused(world, call("git.commit", message="x", paths="a"))
    assert "did you mean `message`" in refused(world, call("git.commit", mesage="x"))


# --- the web ------------------------------------------------------------------------------------


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(5)
        if self.path in {"/elsewhere", "/file"}:
            self.send_response(302)
            place = "file:///etc/passwd" if self.path == "/file" else "/hello"
            self.send_header("Location", place)
            self.end_headers()
            return
        body = b"x" * 300_000 if self.path == "/large" else self.headers.get("X", "-").encode()
        self.send_response(404 if self.path == "/missing" else 200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(self.headers["Content-Type"].encode() + b" " + body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def site() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_request_is_an_effect_on_record(world: World, site: str) -> None:
    agents = world.agents.having(TOKEN="hush")
    steps = [
        call("http.request", url=f"{site}/elsewhere", headers={"X": "by ${TOKEN}"}),
        call("http.request", url=f"{site}/", method="post", json={"a": 1}),
        call("http.request", url=f"{site}/missing", any_status=True),
    ]
    content = action(*steps, confinement={**NETWORK, "environment": ["TOKEN"]})
    path = world.write_action(content)
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert outputs(plan) == ["by hush", 'application/json {"a": 1}', "-"]
    assert [c["values"]["status"] for c in plan("artifacts").data["artifacts"]] == [200, 201, 404]
    effects = plan("effects").ok().data["effects"]
    assert [effect["state"] for effect in effects] == ["done"] * 3
    # The answer shows it, because the server said it; what was asked does not.
    asked = [effect.get("arguments") for effect in effects]
    assert "hush" not in json.dumps(asked)


def test_requests_that_fail_say_why(world: World, site: str) -> None:
    def error(path: str, **more: Any) -> str:
        url = path if ":" in path else f"{site}{path}"
        return failed(world.use(call("http.request", url=url, **more), confinement=NETWORK))

    assert "answered 404" in error("/missing")
    assert "not an address" in error("file:///etc/passwd")
    assert "does not lead to the web" in error("/file")
    assert "cannot be reached" in error("http://127.0.0.1:9/")
    assert "NOBODY is not passed on" in error("/", headers={"X": "${NOBODY}"})
    assert "stopped after 0.5 seconds" in error("/slow", timeout=0.5)


def test_a_long_answer_is_cut_off(world: World, site: str) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_OUTPUT_LIMIT"] = "200000"
    plan = world.run(call("http.request", url=f"{site}/large"), confinement=NETWORK)
    assert last(plan)["values"]["truncated"] is True
    assert len(last(plan)["output"]) == 100_000


def test_without_the_network_nothing_is_asked(world: World, site: str) -> None:
    told = refused(world, call("http.request", url=site), confinement={})
    assert "needs the network" in told
    assert "network: true" in told


# --- Python functions ---------------------------------------------------------------------------

FUNCTIONS = """
import os, pathlib
def count(path, words=False):
    print("counting", path)
    text = pathlib.Path(path).read_text()
    return {"count": len(text.split()) if words else len(text)}
def greet(name="you"):
    return f"hello {name}"
def escape(path):
    pathlib.Path(path).write_text("out")
def vanish():
    os._exit(0)
def odd():
    return object()
def forge():
    print('{"result": "forged"}')
    raise SystemExit(0)
def echo():
    import subprocess
    subprocess.run(["sh", "-c", "echo 1; for f in 3 4 5 6 7 8 9; do echo 1 >&$f; done"])
    os._exit(0)
def large(size):
    return "x" * size
def by_hand(text):
    import sys
    os.write(int(sys.argv[1]), text.encode())
    os._exit(0)
def surrogate():
    return ["\\ud800"]
"""


@pytest.fixture
def package(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.top / "site"
    info = place / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "mine.py").write_text(FUNCTIONS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    names = re.findall(r"def (\w+)\(", FUNCTIONS)
    points = "".join(f"{name} = mine:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[cleveragents.tools]\n{points}gone = mine:gone\n")
    monkeypatch.syspath_prepend(str(place))
    world.agents.environ["PYTHONPATH"] = str(place)


def python(name: str, **keys: Any) -> dict[str, Any]:
    return {name: {"python": name, "writes": False, **keys}}


@pytest.mark.usefixtures("package")
def test_a_function_is_a_tool(world: World) -> None:
    parameters = {
        "path": {"description": "a file"},
        "words": {"type": "boolean", "required": False},
    }
    tools = {**python("count", parameters=parameters), **python("greet")}
    steps = [
        write("mine.py", "raise SystemExit('not me')"),
        call("count", path="README.md", words=True),
        call("greet"),
    ]
    plan = world.run(*steps, tools=tools)
    assert outputs(plan)[1:] == ['counting README.md\n\n{"count": 2}', "hello you"]
    assert plan("artifacts").data["artifacts"][1]["values"]["result"] == {"count": 2}
    shown = world.agents("tool", "show", "count", "--plan", plan.id).ok().data
    assert shown["kind"] == {"python": "count"}
    assert shown["json_schema"]["properties"]["words"] == {"type": "boolean"}
    assert shown["json_schema"]["required"] == ["path"]
    assert "must be a boolean" in refused(world, call("count", path="x", words=1), tools=tools)


@pytest.mark.usefixtures("package")
def test_functions_that_fail_say_why(world: World) -> None:
    def error(name: str, **arguments: Any) -> str:
        return failed(world.use(call(name, **arguments), tools=python(name)))

    assert "Error" in error("escape", path=str(world.home / "out"))
    assert not (world.home / "out").exists()
    assert "unexpected keyword argument 'nome'" in error("greet", nome="x")
    assert "gave no result back" in error("vanish")
    assert "not JSON serializable" in error("odd")
    assert "has no attribute 'gone'" in error("gone")


@pytest.mark.usefixtures("package")
def test_what_a_function_prints_is_not_its_result(world: World) -> None:
    def error(name: str, **arguments: Any) -> str:
        return failed(world.use(call(name, **arguments), tools=python(name)))

    assert "gave no result back" in error("forge")
    assert "gave no result back" in error("echo")
    assert "gave back more than 1048576 bytes" in error("large", size=2 << 20)
    for text in ("{", "[" * 100_000, "1" * 5000, "NaN", "\0", '"a" 1'):
        assert "gave back what is no JSON" in error("by_hand", text=text)
    plan = world.run(call("large", size=1 << 19), tools=python("large"))
    assert outputs(plan) == ["x" * (1 << 19)]
    odd = world.run(call("surrogate"), tools=python("surrogate"))
    assert last(odd)["values"]["result"] == ["\\ud800"]


@pytest.mark.usefixtures("package")
def test_a_function_that_is_not_there_is_told_at_once(world: World) -> None:
    tools = {"x": {"python": "coutn"}}
    assert "did you mean `count`?" in refused(world, call("x"), tools=tools)


# --- MCP servers --------------------------------------------------------------------------------


def mcp(mood: str = "good", **tools: Mapping[str, Any]) -> dict[str, Any]:
    servers = {"notes": {"command": [sys.executable, SERVER, mood]}}
    names = ("note", "count", "escape", "die", "hang", "babble", "repeat")
    own = {name: {"server": "notes", "tool": name, "timeout": 20} for name in names}
    return {"mcp_servers": servers, "tools": {**own, **tools}}


def test_the_tools_of_a_server_are_tools(world: World) -> None:
    plan = world.run(
        call("note", path="notes.txt", text="one\n"),
        call("note", path="notes.txt", text="two\n"),
        call("count"),
        **mcp(),
    )
    assert (plan.sandbox / "notes.txt").read_text() == "one\ntwo\n"
    assert outputs(plan)[0] == f"noted in {world.project.path}"
    assert outputs(plan)[2] == "3\n[image image/png]"  # one server for all three
    assert last(plan)["values"] == {"result": {"calls": 3}}
    plan.rollback("start").ok()
    assert not (plan.sandbox / "notes.txt").exists()


def test_what_a_server_says_is_limited_as_all_output_is(world: World) -> None:
    world.agents.environ["CLEVERAGENTS_TOOL_OUTPUT_LIMIT"] = "2000"
    plan = world.run(call("repeat", text="ab HALF", times=300), **mcp())
    spelled = "ab \\ud800" * 300
    assert outputs(plan) == [f"[{len(spelled) - 2000} bytes left out]\n{spelled[-2000:]}"]
    much = world.use(call("repeat", text="x", times=3000, structured=True), **mcp())
    assert "gave back more than 2000 bytes" in failed(much)


def test_a_server_is_held_inside(world: World) -> None:
    plan = world.use(call("escape", path=str(world.home / "out")), **mcp())
    assert "Permission denied" in (said := failed(plan)) or "Read-only" in said
    assert not (world.home / "out").exists()


def test_servers_that_misbehave_are_told(world: World) -> None:
    def error(tool: str, keys: dict[str, Any]) -> str:
        return failed(world.use(call(tool), **keys))

    assert "has ended: out of ink" in error("die", mcp())
    assert "not the protocol: hello there" in error("babble", mcp())
    slow = {"server": "notes", "tool": "hang", "timeout": 0.5}
    assert "stopped after 0.5 seconds" in error("hang", mcp(hang=slow))
    assert "not the protocol: Welcome" in error("count", mcp("nonsense"))
    brief = {"server": "notes", "tool": "count", "timeout": 0.5}
    assert "stopped after 0.5 seconds" in error("count", mcp("hung", count=brief))
    other = {"server": "notes", "tool": "cuont"}
    assert "did you mean `count`?" in error("other", mcp(other=other))
    ghost = {"mcp_servers": {"notes": {"command": ["no-such-server"]}}, "tools": mcp()["tools"]}
    assert "no-such-server" in error("count", ghost)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tools": {"t": {"server": "nots", "tool": "x"}}}, "did you mean `notes`?"),
        ({"tools": {"t": {"server": "notes"}}}, "belong together"),
        ({"tools": {"t": {"server": "notes", "tool": "x", "python": "y"}}}, "either `command`"),
        ({"tools": {"t": {}}}, "either `command`"),
        ({"tools": {"t": {"command": ["x"], "parameters": {"y": {}}}}}, "is not in `command`"),
        ({"tools": {"t": {"python": "x", "parameters": {"y": {"type": "int"}}}}}, "is not one of"),
        ({"mcp_servers": {"notes": {}}}, "required"),
        ({"mcp_servers": {"notes": {"command": ["x"], "resource": "cod"}}}, "did you mean `code`"),
    ],
)
def test_wrong_declarations_are_refused(world: World, keys: dict[str, Any], said: str) -> None:
    assert said in refused(world, write("a", "b"), **{**mcp(), **keys})


# --- tool list and show -------------------------------------------------------------------------


def test_every_built_in_tool_can_be_shown(world: World) -> None:
    for item in world.agents("tool", "list").ok().data["tools"]:
        shown = world.agents("tool", "show", item["name"]).ok().data
        assert shown["kind"] == "built-in"
        assert shown["json_schema"]["additionalProperties"] is False
        assert shown["example"]["tool"] == item["name"]
        text = world.agents.inside("--format", "plain", "tool", "show", item["name"])
        assert item["name"] in text.out
    answer = world.agents("tool", "show", "file.raed")
    assert (answer.code, answer.error["code"]) == (1, "tool-not-found")
    assert "file.read" in answer.error["message"]
