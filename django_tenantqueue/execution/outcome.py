"""What a run has come to: its success, another attempt, or the end."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import psycopg

from .. import signals
from ..calls.arguments import encode_result
from ..calls.sources import RegisteredTask, known_task, lacks_task
from ..conf import get_settings
from ..exceptions import (
    Cancelled,
    InvalidResult,
    NotAllowed,
    Permanent,
    Postpone,
    Retry,
    TimeLimitExceeded,
    UnknownTask,
)
from ..queries.claim import ClaimedJob
from ..queries.finish import Failed, Finished, watch_jobs
from ..queries.follow_ups import FollowUp
from ..settings import TEN_YEARS
from ..states import State
from ..stored_error import class_name, describe_error, stored_error
from ..text import clean_text
from .current_job import RunningJob
from .job_log import about, about_id, log_failure
from .results import check_statistics, store_result

logger = logging.getLogger("django_tenantqueue")

UNKNOWN_DELAY = 15.0
"""Longest wait in seconds before a job that this process cannot run is claimed again."""
UNFIT_DELAY = 0.25
"""The first wait if it has the task, with other arguments. It doubles each time."""
UNKNOWN_CLASS = f"{UnknownTask.__module__}.{UnknownTask.__qualname__}"
"""The class of the error that is kept with such a job."""
CANCELLED_UNSTARTED = "cancelled before it started"
MOST_DOUBLINGS = 6
"""How often a pause doubles while a schedule or a sending keeps failing: to 64 times the first."""


class Outcome(NamedTuple):
    """How a run ended: exactly one of the fields is set (and some beside it).

    `stored`: an atomic task committed its own success. `give_back`: this process cannot run the
    job, or its task postponed it; seconds until it may be tried again, and `reason` is the error
    that is kept with it (JSON). `is_unknown`: it lacks the task, or the arguments do not fit.
    `lost`: another run owns the job now.
    """

    finished: Finished | None = None
    failed: Failed | None = None
    stored: bool = False
    give_back: float | None = None
    is_unknown: bool = False
    reason: str | None = None
    lost: bool = False
    follow_ups: Sequence[FollowUp] = ()
    """Beside `stored`: the jobs that its success enqueued."""
    error: BaseException | None = None
    """Beside `finished` in state `error`, and only for receivers of job_finished."""


def call_hook(task: RegisteredTask | None, name: str, *args: Any) -> None:
    """Call a hook of the task, if it has one; its errors are the caller's."""
    if task is not None and task.hooks is not None:
        getattr(task.hooks, name)(*args)


def log_error(running: RunningJob, message: str, *args: object) -> None:
    """Log the error that is being handled; without it, if a log cannot show it."""
    try:
        logger.exception(message, *args, extra=about(running))
    except BaseException:  # noqa: BLE001 - it is an object of users' code
        logger.error(f"{message}: the error cannot be shown", *args, extra=about(running))  # noqa: G004


def announce(signal: signals.TaskSignal, running: RunningJob, **said: object) -> None:
    """Send a signal; what a receiver raises is logged, and changes no outcome."""
    claimed = running._claimed
    task = known_task(claimed.source_type, claimed.source_method)
    try:
        signal.announce(task, task=running.task, job_id=running.id, extra=about(running), **said)
    except (Cancelled, TimeLimitExceeded):  # the run was interrupted meanwhile
        raise
    except BaseException:  # noqa: BLE001 - send_robust() catches each Exception, not SystemExit
        log_error(running, "a receiver of a signal of job %s (%s) failed", running.id, running.task)


def call_hook_quietly(
    task: RegisteredTask | None, name: str, running: RunningJob, *args: Any
) -> None:
    """Call a hook of the task; what it raises is logged, and changes no outcome."""
    try:
        call_hook(task, name, running, *args)
    except BaseException:  # noqa: BLE001 - it is logged
        log_error(running, "hook %r of job %s (%s) failed", name, running.id, running.task)


def _extra(running: RunningJob, error: dict[str, Any] | None = None) -> str | None:
    said = running._said()
    if not said and error is None:
        return None
    if "stats" in said:
        check_statistics(said["stats"])
    if "message" in said:
        said = {**said, "message": clean_text(str(said["message"]), 500)}
    if error is not None:
        said = {**said, "error": error}
    return encode_result(said, "progress or statistics")


def _extra_or_error(running: RunningJob, error: dict[str, Any]) -> str:
    """Like `_extra`; statistics that cannot be stored are left out rather than losing the error."""
    try:
        text = _extra(running, error)
    except BaseException:  # noqa: BLE001 - statistics are objects of users' code
        text = None
    return text or json.dumps({"error": error})


def success(running: RunningJob, value: Any) -> Finished:
    claimed = running._claimed
    result, ref = store_result(claimed.id, claimed.claim_seq, value)
    extra = _extra(running)
    return Finished(
        claimed.id,
        claimed.claim_seq,
        State.SUCCESS.value,
        running.age_seconds,
        result,
        ref,
        extra,
        claimed.gates,
    )


def ended(running: RunningJob, state: State, error: BaseException) -> Finished:
    """Return the end of a job by an error, also of one that has not started."""
    described = describe_error(error, running.attempt, _age(running))
    return _finished(running, state, _extra_or_error(running, described))


def ends_of_unreturned(
    connection: psycopg.Connection[Any],
    worker_id: int,
    claims: Iterable[tuple[int, int]],
    reasons: Mapping[tuple[int, int], str],
    gates: Mapping[tuple[int, int], str | None],
) -> list[Finished]:
    """Return the ends of a worker's claims (id, claim_seq) that could not be returned.

    They are cancelled, or no worker could run them for too long; `reasons` has their errors, and
    `gates` the gates that they have passed. They have not started. Lost claims are left out.
    """
    wanted = set(claims)
    if not wanted:
        return []
    ends = []
    for seen in watch_jobs(connection, worker_id, sorted(job_id for job_id, _ in wanted)):
        claim = (seen.id, seen.claim_seq)
        if claim not in wanted:
            continue
        if seen.cancel:
            extra = json.dumps({"error": stored_error(Cancelled, CANCELLED_UNSTARTED)})
            state = State.CANCELLED
        elif claim in reasons:
            told = f"no worker could run it for {get_settings().unknown_task_timeout:g} s"
            logger.error("job %s ends in error: %s", seen.id, told, extra=about_id(seen.id))
            message = f"{told}: {json.loads(reasons[claim])['message']}"
            # of attempt 0, so that a retry counts from its own first error
            extra = json.dumps({"error": stored_error(UNKNOWN_CLASS, message)})
            state = State.ERROR
        else:
            continue
        ends.append(Finished(*claim, state.value, None, extra=extra, gates=gates.get(claim)))
    return ends


def _finished(running: RunningJob, state: State, extra: str) -> Finished:
    claimed = running._claimed
    return Finished(
        claimed.id,
        claimed.claim_seq,
        state.value,
        _age(running),
        extra=extra,
        gates=claimed.gates,
    )


def _age(running: RunningJob) -> float | None:
    return None if running._started is None else running.age_seconds


def backoff_seconds(attempt: int, *, base: float | None = None, most: float | None = None) -> float:
    """Return the seconds before another attempt: base × 2^(attempt-1), at most `most`, ± 20 %.

    None: the setting BACKOFF_BASE, BACKOFF_MAX.
    """
    settings = get_settings()
    base = settings.backoff_base if base is None else base
    most = settings.backoff_max if most is None else most
    return min(most, base * 2.0 ** min(attempt - 1, 30)) * random.uniform(0.8, 1.2)


def _backoff_seconds(task: RegisteredTask | None, attempt: int, error: BaseException) -> float:
    """Seconds before the next attempt: the task's own, or those of the settings."""
    if isinstance(error, Retry) and error.after_seconds is not None:
        return error.after_seconds
    own = None if task is None else task._backoff_seconds(attempt, error)
    if own is None or isnan(own):
        return backoff_seconds(attempt)
    return min(max(0.0, float(own)), TEN_YEARS)


def _may_retry(task: RegisteredTask | None, error: BaseException) -> bool:
    if isinstance(error, Retry):
        return True
    if isinstance(error, Permanent | NotAllowed | InvalidResult):
        return False
    return True if task is None else task._wants_retry(error)


def judge(running: RunningJob, task: RegisteredTask | None, error: BaseException) -> Outcome:
    """Say what a run that raised `error` has come to: another attempt, the end, or nothing.

    A failure is logged, once. Never raises: when judging fails, the job ends in `error` with the
    class of `error` alone.
    """
    try:
        try:
            return _judged(running, task, error)
        except (Cancelled, TimeLimitExceeded) as late:  # it was interrupted only now
            return _judged(running, task, late)
    except BaseException as failure:  # noqa: BLE001 - a job and its slot would be lost
        return unjudged(running, error, failure)


def _for_receivers(error: BaseException) -> BaseException | None:
    """Return the error of a failed end if a receiver wants it: it keeps the frames of its task."""
    return error if signals.job_finished.receivers else None


def unjudged(running: RunningJob, error: BaseException, failure: BaseException) -> Outcome:
    """Return the end of a run whose outcome could not be judged; asks no object of the task's."""
    claimed = running._claimed
    name = class_name(type(error))
    logger.error(
        "job %s (%s): judging its outcome failed with %s, so it ends in error; it raised %s",
        claimed.id,
        claimed.task,
        class_name(type(failure)),
        name,
        extra=about(running, outcome=State.ERROR.value, duration=running.age_seconds),
    )
    described = stored_error(name, "", attempt=claimed.attempt, seconds=running.age_seconds)
    finished = _finished(running, State.ERROR, json.dumps({"error": described}))
    return Outcome(finished=finished, error=_for_receivers(error))


def _unknown_delay(claimed: ClaimedJob) -> float:
    if lacks_task(claimed.source_type, claimed.source_method):
        return UNKNOWN_DELAY  # a worker that has it hurries the job
    returned = max(0, claimed.claim_seq - claimed.attempt)  # claims that were no attempts
    return min(UNKNOWN_DELAY, UNFIT_DELAY * 2.0 ** min(returned, 10))


def _given_back(running: RunningJob, described: dict[str, Any], seconds: float) -> Outcome:
    return Outcome(give_back=seconds, reason=json.dumps(described))


def _judged(running: RunningJob, task: RegisteredTask | None, error: BaseException) -> Outcome:
    claimed = running._claimed
    if running.lost:
        return Outcome(lost=True)
    if isinstance(error, UnknownTask) and task is None:
        reason = describe_error(error, running.attempt)
        return _given_back(running, reason, _unknown_delay(claimed))._replace(is_unknown=True)
    if isinstance(error, Postpone) and not running.cancel_requested:
        described = describe_error(error, running.attempt)
        logger.info(
            "job %s is postponed: %s", claimed.id, described["message"], extra=about(running)
        )
        return _given_back(running, described, error.after_seconds)
    if isinstance(error, Cancelled):
        return Outcome(finished=ended(running, State.CANCELLED, error))
    again = claimed.attempt < claimed.max_attempts
    if again and not running.cancel_requested:
        try:
            again = _may_retry(task, error)
            delay = _backoff_seconds(task, claimed.attempt, error) if again else 0.0
        except BaseException as policy_error:  # noqa: BLE001 - it is logged
            # its traceback is that of the failure
            logger.error(
                "retry_when or backoff of job %s (%s) failed",
                running.id,
                running.task,
                extra=about(running),
            )
            policy_error.__cause__ = error
            error, again = policy_error, False
    else:
        again = False
    call_hook_quietly(task, "attempt_failed", running, error)
    described = describe_error(error, claimed.attempt, running.age_seconds)
    if again:
        if signals.job_retried.receivers:
            announce(signals.job_retried, running, attempt=claimed.attempt, error=error)
        extra = _extra_or_error(running, described)
        log_failure(running, error, described, delay)
        return Outcome(failed=Failed(claimed.id, claimed.claim_seq, delay, extra, claimed.gates))
    call_hook_quietly(task, "failure", running)
    finished = _finished(running, State.ERROR, _extra_or_error(running, described))
    log_failure(running, error, described, None)
    return Outcome(finished=finished, error=_for_receivers(error))
