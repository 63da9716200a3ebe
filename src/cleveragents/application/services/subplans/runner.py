"""Running children side by side: so many at once, tried again, stopped together.

What: each child runs in a thread under its own lock, as `plan execute` would run it.
In which order, for one that failed: the new try is counted, the child goes back to its start, and
runs again. With `fail_fast` the first failure drops those that wait and stops those that run.
Why: counted first, a kill cannot make the tries endless. All threads have ended before this
returns: one that is left alone would write into a sandbox that somebody else undoes.
What is not guaranteed: the order in which children end, and how soon one that is told to stop does:
its tool is ended, and then it undoes its step.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from cleveragents.application.plan_events import PlanEvents
from cleveragents.application.ports.runtime import Tools, UnitOfWorkFactory
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.subplans.spawner import SubplanSpawner
from cleveragents.domain.action import Subplans
from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import (
    DatabaseBusyError,
    DatabaseUnusableError,
    EffectDoneError,
    EffectUncertainError,
    InterruptedPlanError,
    PlanError,
    PlanLockedError,
    PlanOvertakenError,
    SubplansFailedError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, PlanFailure, State
from cleveragents.domain.subplan import ChildPlan

# Nothing that trying again would change, and nothing that may be written down as the child's.
_NOT_ITS_OWN = (
    PlanLockedError,
    PlanOvertakenError,
    DatabaseBusyError,
    DatabaseUnusableError,
)
RunPlan = Callable[[PlanId, EffectChoice], Plan]


class SubplanRunner:
    """`run_plan` starts or resumes a plan under its own lock."""

    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        spawner: SubplanSpawner,
        rollbacks: RollbackService,
        tools: Tools,
        run_plan: RunPlan,
        events: PlanEvents,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._spawner = spawner
        self._rollbacks = rollbacks
        self._tools = tools
        self._run_plan = run_plan
        self._events = events
        self._lock = threading.Lock()
        self._running: dict[PlanId, set[PlanId]] = {}
        self._stopped: set[PlanId] = set()

    def run(
        self,
        parent: Plan,
        children: Sequence[ChildPlan],
        subplans: Subplans,
        choice: EffectChoice,
    ) -> None:
        """Until each has done all it can; one that failed is errored then.

        Raises KeyboardInterrupt when all have stopped, if they were told to.
        """
        if not children:
            return
        workers = min(subplans.max_parallel, len(children))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="child")
        # Each in the context of this thread: events know by it whose child they are about.
        futures = [
            pool.submit(copy_context().run, self._run_child, child, subplans, choice)
            for child in children
        ]
        try:
            self._watch(parent.plan_id, futures, subplans)
        except BaseException:
            self._stop_children(parent.plan_id)
            raise
        finally:
            # Always to the end: a thread that is left alone would write behind our back.
            pool.shutdown(wait=True, cancel_futures=True)
            for child in children:
                self._allow(child.plan_id)
        if parent.plan_id in self._stopped:
            raise KeyboardInterrupt

    def stop(self, plan_id: PlanId) -> None:
        """Tell a running plan and all below it to stop; each undoes the step it is in."""
        with self._lock:
            self._stopped.add(plan_id)
        self._tools.stop(plan_id)
        self._stop_children(plan_id)

    def end(self, plan_id: PlanId) -> None:
        """What the parent itself has kept running beside them; its children have ended theirs."""
        self._tools.end(plan_id)

    def _watch(
        self, parent_id: PlanId, futures: Sequence[Future[Plan]], subplans: Subplans
    ) -> None:
        waiting: set[Future[Plan]] = set(futures)
        failed = False
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                if not future.cancelled():
                    failed = future.result().state is State.ERRORED or failed
            if failed and subplans.fail_fast:
                for future in waiting:
                    future.cancel()
                self._stop_children(parent_id)

    def _stop_children(self, plan_id: PlanId) -> None:
        with self._lock:
            running = list(self._running.get(plan_id, ()))
        for child in running:
            self.stop(child)

    def _run_child(self, child: ChildPlan, subplans: Subplans, choice: EffectChoice) -> Plan:
        with self._lock:
            self._running.setdefault(child.parent_id, set()).add(child.plan_id)
        try:
            with self._events.of_child(child.name):
                return self._until_done(child, subplans, choice)
        finally:
            self._spawner.unwatch(child)
            with self._lock:
                self._running[child.parent_id].discard(child.plan_id)

    def _until_done(self, child: ChildPlan, subplans: Subplans, choice: EffectChoice) -> Plan:
        plan = self._attempt(child, choice)
        while _may_be_tried_again(plan) and child.retries < subplans.max_retries:
            child = child.retried()
            with self._unit_of_work() as uow:
                uow.subplans.save(child)
                uow.commit()
            self._put_back(plan)
            # What was said was about what was known then, not about what this try has done.
            plan = self._attempt(child, EffectChoice.STOP)
        return plan

    def _attempt(self, child: ChildPlan, choice: EffectChoice) -> Plan:
        try:
            if not self._load(child.plan_id).executed:
                self._spawner.make_sandboxes(child)
            return self._run_plan(child.plan_id, choice)
        except (InterruptedPlanError, EffectUncertainError, EffectDoneError):
            return self._load(child.plan_id)  # it waits, and says itself what for
        except _NOT_ITS_OWN:
            raise
        except PlanError as error:
            return self._record_failure(child.plan_id, error)

    def _record_failure(self, plan_id: PlanId, error: PlanError) -> Plan:
        with self._unit_of_work() as uow:
            plan = uow.plans.get(plan_id)
            if plan.state is not State.ERRORED:
                plan = plan.refused(PlanFailure.of(error))
                uow.plans.save(plan)
                uow.commit()
        return plan

    def _put_back(self, plan: Plan) -> None:
        """To its start; without checkpoints it goes on from the last boundary instead."""
        with self._unit_of_work.reading() as uow:
            groups = uow.checkpoints.of_plan(plan.plan_id)
        if groups:
            self._rollbacks.rollback(plan.plan_id, groups[0].group_id, lambda _: True)

    def _allow(self, plan_id: PlanId) -> None:
        with self._lock:
            self._stopped.discard(plan_id)
        self._tools.allow(plan_id)

    def _load(self, plan_id: PlanId) -> Plan:
        with self._unit_of_work.reading() as uow:
            return uow.plans.get(plan_id)


def _may_be_tried_again(plan: Plan) -> bool:
    # Its own children have been tried again already, each by itself.
    nested = plan.error is not None and plan.error.code == SubplansFailedError.code
    return plan.state is State.ERRORED and not nested
