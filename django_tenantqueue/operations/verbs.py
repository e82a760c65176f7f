"""What the verbs of control do with the rows of each model.

Each function gets the ids of rows that exist, sorted, and the keyword `using`, and for `tune` the
columns. It returns the ids that it changed, or a Result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db.models import Model

from ..exceptions import InvalidOption, InvalidState
from ..features import Feature, hooks
from ..models import ConcurrentJobMonitor, Job, Session, TaskControl, TenantQueue, Worker
from ..models.worker import Role
from ..queries.monitors import list_unfinished_details
from . import control, monitor_control, session_control, task_control, worker_control
from .job_verbs import cancel_jobs, delete_jobs, move_jobs, retry_jobs, run_jobs_now, tune_jobs
from .result import Result
from .targets import Chosen

Ids = Sequence[int]
Operation = Callable[..., Collection[int] | Result]


def _cancel_monitors(ids: Ids, *, using: str) -> Result:
    changed: list[int] = []
    requested: list[int] = []
    for monitor_id in ids:
        if not monitor_control.mark_cancelled(monitor_id, using):
            continue
        while monitor_control.cancel_step(using, monitor_id):
            pass
        is_running = list_unfinished_details(using, monitor_id, most=1)
        (requested if is_running else changed).append(monitor_id)
    return Result.of(ids, changed, requested=requested)


def _retry_monitors(ids: Ids, *, using: str) -> Result:
    changed, refused = [], {}
    for monitor_id in ids:
        try:
            if monitor_control.retry_failed_details(monitor_id, using=using):
                changed.append(monitor_id)
        except InvalidState:
            refused[monitor_id] = "it was cancelled: start another monitor"
    return Result.of(ids, changed, refused=refused)


def _ending(order: Callable[..., list[int]]) -> Operation:
    def end(ids: Ids, *, using: str) -> Result:
        runners = Worker.objects.using(using).filter(pk__in=ids, role=Role.RUNNER)
        why = "it is a process of an executor: stop it with the executor's tools"
        refused = dict.fromkeys(runners.values_list("pk", flat=True), why)
        return Result.of(ids, requested=order(ids, using=using), refused=refused)

    return end


CORE: Mapping[type[Model], Mapping[str, Operation]] = {
    Job: {
        "cancel": cancel_jobs,
        "retry": retry_jobs,
        "run_now": run_jobs_now,
        "move": move_jobs,
        "delete": delete_jobs,
        "tune": tune_jobs,
    },
    TenantQueue: {
        "pause": control.pause,
        "resume": control.resume,
        "retire": control.retire,
        "reopen": control.reopen,
        "tune": control.tune_queue,
    },
    TaskControl: {
        "pause": task_control.pause_controls,
        "resume": task_control.resume_controls,
        "tune": task_control.tune_control,
        "delete": task_control.delete_controls,
    },
    Session: {
        "pause": session_control.pause_sessions,
        "resume": session_control.resume_sessions,
        "tune": session_control.tune_session,
    },
    ConcurrentJobMonitor: {
        "pause": monitor_control.pause_monitors,
        "resume": monitor_control.resume_monitors,
        "tune": monitor_control.tune_monitor,
        "cancel": _cancel_monitors,
        "retry": _retry_monitors,
    },
    Worker: {
        "drain": _ending(worker_control.drain),
        "stop": _ending(worker_control.stop),
    },
}
"""The verbs of each model of the core."""


def operations() -> dict[type[Model], Mapping[str, Operation]]:
    """Return the verbs of each model, of installed apps, too."""
    found = dict(CORE)
    for hook in hooks(Feature.operations):
        found |= hook()
    return found


def act(verb: str, chosen: Chosen, using: str, **columns: Any) -> Result:
    """Do what a verb does with the rows of their model. Raises InvalidOption where it has none."""
    if chosen.model is None:
        return Result.of(())
    verbs = operations()
    operation = verbs.get(chosen.model, {}).get(verb)
    if operation is None:
        nouns = [str(model._meta.verbose_name_plural) for model in verbs if verb in verbs[model]]
        own = chosen.model._meta.verbose_name_plural
        raise InvalidOption(f"{verb}() takes {', '.join(nouns)}, and no {own}")
    known: Sequence[int] = chosen.ids
    refused: dict[int, str] = {}
    if chosen.model is not Job:  # of them only those that did not change are read
        rows = chosen.model._default_manager.using(using).filter(pk__in=chosen.ids)
        known = sorted(rows.values_list("pk", flat=True))
        why = f"there is no such {chosen.model._meta.verbose_name}"
        refused = dict.fromkeys(set(chosen.ids).difference(known), why)
    done = operation(known, using=using, **columns) if known else ()
    if isinstance(done, Result):
        return done._replace(refused=dict(sorted({**done.refused, **refused}.items())))
    return Result.of(chosen.ids, done, refused=refused)
