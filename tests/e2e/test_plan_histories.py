"""Random histories of one plan against a model: execute, fail, roll back, undo, resume, die."""

import contextlib

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.support.history_model import Histories
from tests.support.kill_points import THOROUGH
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("unmeasured")


@pytest.mark.parametrize("share", range(2))
def test_no_history_differs_from_the_model(template: World, share: int) -> None:
    machine = type("_", (Histories,), {"template": template})
    with contextlib.chdir("/"):
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=100 // THOROUGH,
                stateful_step_count=8,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # a failure is told at once; smaller ones take minutes
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
