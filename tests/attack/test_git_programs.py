"""Every setting of git that names a program, naming one that a step wrote: none gets out."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.attacks import COMMANDS, REQUIRED, held_inside, module, payload, traces
from tests.support.outside import nothing_happens
from tests.support.world import PlanHandle, World, shell

# What stands in <> may be any name; here it is `evil`.
PROGRAMS = (
    *("alias.*", "browser.<tool>.cmd", "browser.<tool>.path", "core.alternateRefsCommand"),
    *("core.askPass", "core.editor", "core.fsmonitor", "core.gitProxy", "core.pager"),
    *("core.sshCommand", "credential.helper", "diff.<driver>.command", "diff.<driver>.textconv"),
    *("diff.external", "difftool.<tool>.cmd", "difftool.<tool>.path", "filter.<driver>.clean"),
    *("filter.<driver>.smudge", "filter.<driver>.process", "gpg.<format>.program", "gpg.program"),
    *("gpg.ssh.defaultKeyCommand", "guitool.<name>.cmd", "instaweb.browser", "help.browser"),
    *("interactive.diffFilter", "man.<tool>.cmd", "man.<tool>.path", "merge.<driver>.driver"),
    *("mergetool.<tool>.cmd", "mergetool.<tool>.path", "pager.<cmd>", "sendemail.ccCmd"),
    *("remote.<name>.receivepack", "remote.<name>.uploadpack", "remote.<name>.vcs"),
    *("sendemail.smtpServer", "sendemail.tocmd", "sequence.editor", "submodule.<name>.update"),
    *("uploadpack.packObjectsHook", "web.browser", "hook.<friendly-name>.command"),
    *("sendemail.headerCmd", "sendemail.sendmailCmd", "trailer.<token>.command"),
    *("trailer.<token>.cmd", "credential.<url>.helper", "imap.tunnel", "tar.<format>.command"),
    *("core.hooksPath", "maintenance.<task>.command"),
)
# They look like it, and hold the name of something else, a switch, or a place of data.
HARMLESS = (
    *("clean.requireForce", "column.clean", "commit.cleanup", "completion.commands"),
    *("core.alternateRefsPrefixes", "core.fsmonitorHookVersion", "core.quotePath", "man.viewer"),
    *("include.path", "includeIf.<condition>.path", "help.htmlPath", "credential.useHttpPath"),
    *("diff.<driver>.cachetextconv", "gitcvs.dbDriver", "http.proxy", "http.proxyAuthMethod"),
    *("http.proxySSLCAInfo", "http.proxySSLCert", "http.proxySSLCertPasswordProtected"),
    *("http.proxySSLKey", "http.sslCAPath", "instaweb.modulePath", "rebase.abbreviateCommands"),
    *("notes.rewrite.<command>", "remote.<name>.proxy", "remote.<name>.proxyAuthMethod"),
    *("sendemail.aliasFileType", "sendemail.aliasesFile", "sendemail.smtpServerOption"),
    *("sendemail.smtpServerPort", "sendemail.smtpsslcertpath", "status.relativePaths"),
    *("commitGraph.readChangedPaths", "fsmonitor.allowRemote", "fsmonitor.socketDir"),
)
SPELLINGS = {"a script": "sh tools/evil.sh {}", "a module": "python3 -m evil {}"}
# Where there is a process for a filter, git starts neither of the other two.
WAYS = [(spelling, "clean") for spelling in SPELLINGS] + [("a script", "process")]
LINES = "".join(f"line {number}\n" for number in range(20))
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"
_LOOKS_LIKE_ONE = re.compile(
    r"cmd|command|program|helper|editor|pager|askpass|hook|textconv|driver$|vcs|receivepack"
    r"|uploadpack$|fsmonitor|browser|viewer|proxy|alias|\.update$|clean|smudge|process$|external"
    r"|path$|smtpserver|tunnel",
    re.IGNORECASE,
)
_OF_MESSAGES = ("advice.", "color.", "fsck.", "receive.fsck.", "fetch.fsck.")


def test_every_setting_that_names_a_program_is_on_the_list() -> None:
    """Where a new version of git has another one, it has to be tried below, or found harmless."""
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, check=True).stdout
    keys = {line for line in listed.decode().split() if "." in line}
    asked = {key for key in keys if _LOOKS_LIKE_ONE.search(key)}
    told = {key for key in asked if not key.startswith(_OF_MESSAGES)}
    assert told - {*PROGRAMS, *HARMLESS} == set()


def settings(spelling: str, filters: str) -> str:
    """A configuration that names the program for everything."""
    lines, left_out = "", "process" if filters == "clean" else "none"
    for key in PROGRAMS:
        if key.endswith(f".{left_out}"):
            continue
        section, _, rest = re.sub(r"<[\w-]+>|\*", "evil", key).partition(".")
        subsection, dot, name = rest.rpartition(".")
        header = f'[{section} "{subsection}"]' if dot else f"[{section}]"
        told = "tools/hooks" if key == "core.hooksPath" else spelling.format(f"{section}.{rest}")
        lines += f'{header}\n\t{name} = "{told}"\n'
    events = ("reference-transaction", "post-index-change", "pre-commit", "post-checkout")
    return lines + '[hook "evil"]\n' + "".join(f"\tevent = {event}\n" for event in events)


def planting(world: World) -> list[Mapping[str, Any]]:
    """A step puts its own in the place of what was harmless, asks for it, and changes files."""
    hooks = "for n in reference-transaction post-index-change post-checkout pre-commit"
    lines = [
        "mkdir -p tools/hooks",
        f"cat > tools/evil.sh <<'END'\n{payload(world)}END",
        f"cat > evil.py <<'END'\n{module(world)}END",
        f"chmod +x tools/evil.sh; {hooks}; do cp tools/evil.sh tools/hooks/$n; done",
        f"printf '{ATTRIBUTES.strip()}\\n' > .gitattributes",
    ]
    return [
        shell("\n".join(lines), "plant"),
        shell("echo more >> README.md; rm src/old.py; echo new > new.txt", "change"),
        shell("git add -A -f .gitattributes; echo staged > staged; git add staged || true", "add"),
    ]


def planted(world: World, *more: Mapping[str, Any]) -> PlanHandle:
    world.project.write("tools/evil.sh", "cat\n")
    world.project.write("evil.py", "import sys; sys.stdout.write(sys.stdin.read())\n")
    world.project.write(".gitattributes", "*.txt merge=evil\n")
    world.project.write("lines.txt", LINES)
    world.project.commit()
    return world.use(*planting(world), *more, confinement=REQUIRED)


def every_command(world: World, plan: PlanHandle) -> None:
    for name, command in COMMANDS.items():
        with held_inside(world):
            command(plan)
        assert traces(world) == [], name


@pytest.mark.parametrize(("spelling", "filters"), WAYS)
def test_programs_of_the_users_settings_that_a_step_replaced(
    world: World, spelling: str, filters: str
) -> None:
    plan = planted(world)
    with (world.home / ".gitconfig").open("a") as file:
        file.write(settings(SPELLINGS[spelling], filters))
    plan.execute()
    plan("diff").ok()
    every_command(world, plan)


@pytest.mark.parametrize(("spelling", "filters"), WAYS)
def test_programs_of_settings_that_a_step_made(world: World, spelling: str, filters: str) -> None:
    told = settings(SPELLINGS[spelling], filters)
    into = "$(git rev-parse --git-dir)"
    write = f"cat >> {into}/config <<'END'\n{told}END\ncp {into}/config {into}/config.worktree"
    plan = planted(world, shell(f"{write}; printf '{ATTRIBUTES}' > {into}/info/attributes"))
    plan.execute()
    plan("diff").ok()
    every_command(world, plan)


@pytest.mark.parametrize("how", [(), ("--no-commit",), ("--branch", "result")])
@pytest.mark.parametrize(("spelling", "filters"), WAYS)
def test_what_is_applied_does_not_run(
    world: World, spelling: str, filters: str, how: tuple[str, ...]
) -> None:
    """The project has moved on, so that a driver is asked; in the end it has the plan's files."""
    plan = planted(world, shell("echo plan >> lines.txt"))
    world.project.write("lines.txt", "theirs\n" + LINES)
    world.project.commit("moved on")
    with (world.home / ".gitconfig").open("a") as file:
        file.write(settings(SPELLINGS[spelling], filters))
    plan.execute().ok()
    assert traces(world) == []
    # What it wrote at the project's path while a step ran it, it wrote in the sandbox: files of the
    # plan like others. Had it run once more, there would be more in them.
    own = {
        path.relative_to(plan.sandbox): path.read_bytes() for path in plan.sandbox.rglob("got-*")
    }
    readme = (plan.sandbox / "README.md").read_text()
    git = world.project.path / ".git"
    with nothing_happens(world.home, git / "hooks", git / "info", but=(world.agents.data_dir,)):
        answer = plan("apply", "--yes", *how, "{}")
    top = world.project.path
    got_out = {path: path.read_bytes() for path in traces(world)}
    assert [p for p, data in got_out.items() if own.get(_below(p, top)) != data] == []
    # A process that does not speak git's language is an error, where files have to be checked out.
    fails = filters == "process" and "--branch" not in how
    assert answer.code == (1 if fails else 0)
    if not fails and "--branch" not in how:
        assert world.project.read("README.md") == readme
        assert world.project.read("tools/evil.sh") == payload(world)


def _below(path: Path, top: Path) -> Path:
    return path.relative_to(top) if top in path.parents else path


def test_settings_that_come_with_the_plan_do_not_run(world: World) -> None:
    """Some keep settings of git in the project, and include them: an apply changes these too."""
    world.project.write(".gitconfig", "[core]\n\teol = lf\n")
    told = settings(SPELLINGS["a script"], "clean")
    write = f"cat > .gitconfig <<'END'\n{told}END\necho plan >> lines.txt"
    plan = planted(world, shell(write))
    world.project.git("config", "include.path", "../.gitconfig")
    plan.execute().ok()
    git = world.project.path / ".git"
    with nothing_happens(world.home, git / "hooks", git / "info", but=(world.agents.data_dir,)):
        plan("apply", "--yes", "{}").ok()
    assert traces(world) == []
    assert world.project.read(".gitconfig") == told


def test_a_program_that_is_not_held_gets_out(world: World) -> None:
    """Or the tests above would show nothing."""
    plan = planted(world)
    with (world.home / ".gitconfig").open("a") as file:
        file.write('[filter "evil"]\n\tclean = sh tools/evil.sh\n')
    world.agents.environ["CLEVERAGENTS_CONFINEMENT_MODE"] = "off"
    path = world.write_action({"name": "x", "description": "d", "steps": planting(world),
                               "resources": {"code": {"type": "git-checkout", "path": "."}},
                               "confinement": {"mode": "off"}})  # fmt: skip
    plan = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    plan("diff")
    assert traces(world) != []
