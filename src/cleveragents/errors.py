"""The error tree for those who call us from Python: every class that a call may raise.

`except errors.PlanError` catches all of them; each has a `code`, a `message` and a `hint`, as the
commands have them. The tree is drawn in `domain/errors/__init__.py`.
"""

from cleveragents.domain.errors import *
