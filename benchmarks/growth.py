"""How the cost of each command grows with the steps of a plan, and with the number of plans.

    python benchmarks/growth.py                          100 to 10 000 steps, 10 to 1000 plans
    python benchmarks/growth.py --steps 100 1000 --plans     steps only, in a few minutes

A cost is processor time, user and system, of the command and of every process that it has started
and waited for: what the kernel tells when the command ends (`wait4`). Machines are busy, and time
on the clock tells more of that than of the command. Each command is the installed one, run as
people run it; the least of some rounds counts, because nothing makes a command cheaper than it is.

Growth is told per factor of ten, of what a command costs beyond its cost in a world of one step
and one plan: starting Python would hide the rest. Costs below `NOISE` beyond that are taken as
`NOISE`. Growth like n log n is 15 from 100 to 1000, and 13.3 from 1000 to 10 000.

Worlds are made by the program itself. A plan with n steps writes one new file in each, by
`agents plan execute`, whose own cost is a line of the table; it keeps all its checkpoints, three
groups a step, where the default would keep 51 states. Plans beside it have two steps each, all in
one repository, and are made in this process by the same services.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cleveragents.cli.main import run

AGENTS = str(Path(sys.executable).with_name("agents"))
NOISE = 0.1
EVERYDAY_LIMIT = 1.5
TOLERANCE = 1.15
Costs = dict[str, float]
IDENTITY = "[user]\n\tname = Bench\n\temail = bench@example.org\n"
# What people type all day, and what must not depend on how many plans there are.
EVERYDAY = (
    *("plan use", "plan execute", "plan status", "plan list", "plan tree", "plan diff"),
    *("checkpoint list", "checkpoint create", "rollback", "plan apply"),
)


class World:
    """A home, a project in git with ten files, and plans."""

    def __init__(self, top: Path) -> None:
        self.home, self.project = top / "home", top / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        (self.home / ".gitconfig").write_text(IDENTITY)
        for number in range(10):
            (self.project / f"f{number}.txt").write_text(f"{number}\n" * 20)
        for words in ("init -q", "add -A", "commit -q -m first"):
            subprocess.run(["git", *words.split()], cwd=self.project, env=self.environ, check=True)
        self.agents("plan", "list")  # the first command of all makes the database

    def write_action(self, steps: int) -> str:
        path = self.home / f"{steps}-steps.yaml"
        path.write_text(
            "name: growth\ndescription: many small steps\n"
            "resources: {code: {type: git-checkout, path: .}}\n"
            f"rollback_policy: {{max_checkpoints: {10 * steps}}}\nsteps:\n"
            + "".join(map(_step, range(steps)))
        )
        return str(path)

    def add_plans(self, count: int) -> None:
        """Made in a fork: the program runs there as it does alone, but starts only once."""
        path = self.write_action(2)
        child = os.fork()
        if not child:
            os.chdir(self.project)
            os.environ.clear()
            os.environ.update(self.environ)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            for _ in range(count):
                if run(["plan", "use", path]) or run(["plan", "execute", "latest"]):
                    os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit("plans could not be made")

    def agents(self, *words: str) -> dict[str, object]:
        done = subprocess.run(
            [AGENTS, "--format", "json", *words],
            cwd=self.project,
            env=self.environ,
            check=False,
            capture_output=True,
        )
        if done.returncode:
            sys.exit(f"agents {' '.join(words)}: {done.stdout.decode()}{done.stderr.decode()}")
        return json.loads(done.stdout)["data"]

    def cost(self, *words: str) -> float:
        """Seconds of processor time, with all that it has waited for."""
        with tempfile.TemporaryFile() as told:
            child = subprocess.Popen(
                [AGENTS, *words], cwd=self.project, env=self.environ, stdout=told, stderr=told
            )
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                told.seek(0)
                sys.exit(f"agents {' '.join(words)}: {told.read().decode()}")
        return used.ru_utime + used.ru_stime


def _step(number: int) -> str:
    # Without a name: an action file has at most 100 000 values and a MiB.
    path = f"new/{number // 100}/f{number}.txt"
    return f"  - {{tool: file.write, with: {{path: {path}, content: '{number}'}}}}\n"


def measured(world: World, steps: int, rounds: int) -> Costs:
    """What each command costs that has to do with a plan of so many steps, one after the other."""
    costs: Costs = {}
    path = world.write_action(steps)

    def take(name: str, *words: str, times: int = rounds) -> None:
        costs[name] = min(world.cost(*words) for _ in range(times))
        print(f"    {name:22} {costs[name]:8.2f} s", file=sys.stderr, flush=True)

    take("plan use", "plan", "use", path)
    plan = str(world.agents("plan", "use", path)["plan_id"])
    take("plan execute", "plan", "execute", plan, times=1)
    decision = _decision(world.agents("plan", "tree", plan)["tree"])
    last = f"after file.write new/{(steps - 1) // 100}/f{steps - 1}.txt"
    for name, words in _looks(plan, decision, last).items():
        take(name, *words)
    for number in range(rounds):
        words = ("plan", "checkpoint", "create", "--label", f"mark {number}", plan)
        costs["checkpoint create"] = min(
            costs.get("checkpoint create", math.inf), world.cost(*words)
        )
    take("checkpoint prune", "plan", "checkpoint", "prune", "--yes", plan, times=1)
    take("rollback", "plan", "rollback", "--yes", plan, last.replace("after", "before"), times=1)
    take("plan resume", "plan", "resume", plan, times=1)
    take("plan correct", *_correct(decision), "--yes", times=1)
    take("plan apply", "plan", "apply", "--yes", plan, times=1)
    return costs


def _looks(plan: str, decision: str, last: str) -> Mapping[str, Sequence[str]]:
    return {
        "plan list": ("plan", "list"),
        "plan status": ("plan", "status", plan),
        "plan tree": ("plan", "tree", plan),
        "plan explain": ("plan", "explain", decision),
        "plan artifacts": ("plan", "artifacts", plan),
        "plan errors": ("plan", "errors", plan),
        "plan diff": ("plan", "diff", plan),
        "checkpoint list": ("plan", "checkpoint", "list", plan),
        "checkpoint show": ("plan", "checkpoint", "show", plan, "start"),
        "checkpoint diff": ("plan", "checkpoint", "diff", plan, "start", last),
        "checkpoint verify": ("plan", "checkpoint", "verify", plan),
        "rollback --dry-run": ("plan", "rollback", "--dry-run", plan, "start"),
        "resume --dry-run": ("plan", "resume", "--dry-run", plan),
        "correct --dry-run": (*_correct(decision), "--dry-run"),
        "store status": ("store", "status"),
        "store verify": ("store", "verify"),
        "doctor": ("doctor",),
    }


def _correct(decision: str) -> Sequence[str]:
    return ("plan", "correct", "--mode", "revert", "--guidance", "do it again", decision)


def _decision(tree: object) -> str:
    """The last one of the plan: what follows from an earlier one is a matter of the plan itself."""
    assert isinstance(tree, dict)
    children = tree["children"]
    return _decision(children[-1]) if children else str(tree["id"])


def _allowed(small: int, large: int) -> float:
    """What n log n makes of it, with room for the noise of a measurement."""
    return TOLERANCE * large * math.log(large) / (small * math.log(small))


def report(what: str, start: Costs, found: Mapping[int, Costs]) -> bool:
    """Print the table; gives back whether no command grows faster than n log n."""
    sizes = sorted(found)
    pairs = list(zip(sizes, sizes[1:], strict=False))
    heads = [f"{size} {what}" for size in sizes] + [f"to {large}" for _, large in pairs]
    print("\n| | 1 | " + " | ".join(heads) + " |\n|---|" + "--:|" * (len(heads) + 1))
    good = True
    for name, bare in start.items():
        costs = [found[size][name] for size in sizes]
        beyond = {size: max(found[size][name] - bare, NOISE) for size in sizes}
        grown = {pair: beyond[pair[1]] / beyond[pair[0]] for pair in pairs}
        too_fast = any(grown[pair] > _allowed(*pair) for pair in pairs)
        good = good and not too_fast
        cells = [f"{bare:.2f}", *(f"{cost:.2f}" for cost in costs)]
        cells += [f"{grown[pair]:.1f}×" for pair in pairs]
        mark = " **too fast**" if too_fast else ""
        print(f"| `{name}`{mark} | " + " | ".join(cells) + " |")
    return good


def report_everyday(found: Mapping[int, Costs]) -> bool:
    few, many = min(found), max(found)
    print(f"\nEveryday commands, {many} plans over {few} (at most {EVERYDAY_LIMIT}×):")
    good = True
    for name in EVERYDAY:
        ratio = found[many][name] / found[few][name]
        good = good and ratio <= EVERYDAY_LIMIT
        print(f"    {name:22} {ratio:.2f}×")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description="How commands grow with steps and with plans.")
    parser.add_argument("--steps", type=int, nargs="*", default=[100, 1000, 10000])
    parser.add_argument("--plans", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where worlds are made, and removed again")
    chosen = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; seconds of processor time, least of {chosen.rounds}")

    def in_a_world(steps: int, plans: int) -> Costs:
        print(f"  {steps} steps, {plans} plans", file=sys.stderr, flush=True)
        top = Path(tempfile.mkdtemp(prefix="growth-", dir=chosen.folder))
        try:
            world = World(top)
            world.add_plans(plans - 1)
            return measured(world, steps, chosen.rounds)
        finally:
            shutil.rmtree(top)

    start = in_a_world(1, 1)
    good = True
    if chosen.steps:
        good &= report("steps", start, {size: in_a_world(size, 1) for size in chosen.steps})
    if chosen.plans:
        found = {size: in_a_world(1, size) for size in chosen.plans}
        good &= report("plans", start, found)
        good &= report_everyday(found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
