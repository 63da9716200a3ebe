"""A home and a project for every scenario, copied from one that is made once."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from behave.model import Scenario
from behave.runner import Context

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.world import World


def before_all(context: Context) -> None:
    context.top = Path(tempfile.mkdtemp(prefix="features-"))
    context.template = World(context.top / "template")
    context.template.agents("plan", "list").ok()


def before_scenario(context: Context, scenario: Scenario) -> None:
    place = Path(tempfile.mkdtemp(dir=context.top))
    context.world = World(place / "w", context.template)
    # In process, git reads the identity of this HOME and not that of whoever runs the tests.
    os.environ["HOME"] = str(context.world.home)
    context.settings = {}
    context.refusal = None


def after_all(context: Context) -> None:
    shutil.rmtree(context.top, ignore_errors=True)
