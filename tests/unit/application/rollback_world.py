"""A plan with steps done, to go back in."""

import pytest
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld


@pytest.fixture
def world() -> ServiceWorld:
    """A plan that has done its three steps in two resources."""
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))
    made.run()
    made.restart()
    return made
