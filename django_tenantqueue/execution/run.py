"""Run one claimed job and say how it ended. No state is changed here, but by atomic tasks."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import psycopg
from asgiref.sync import async_to_sync, sync_to_async
from django.db import (
    DatabaseError,
    InterfaceError,
    connections,
    transaction,
)
from django.utils import timezone

from .. import signals
from ..calls import tracing
from ..calls.arguments import decode_args
from ..calls.context import check_coroutine, has_surroundings, surroundings
from ..calls.sources import INTERNAL, RegisteredTask, check_call, resolve
from ..calls.tenant import use_tenant
from ..conf import get_settings
from ..exceptions import (
    Cancelled,
    ClaimLost,
    Permanent,
    Postpone,
    Retry,
    TimeLimitExceeded,
    TransactionLeftOpen,
    UnknownTask,
)
from ..models import Job
from ..queries.claim import ClaimedJob
from ..queries.finish import Finished, finish_in_transaction
from ..queries.follow_ups import FollowUp
from ..states import State
from . import current_job as current
from .connection_state import (
    check_blocks,
    close_ended_connections,
    open_blocks,
    reset_connections,
)
from .current_job import RunningJob
from .job_log import about
from .outcome import Outcome, announce, call_hook, call_hook_quietly, ended, judge, success
from .previous_job import aplaceholder_values, placeholder_values
from .results import may_use_cache

logger = logging.getLogger("django_tenantqueue")

NO_BLOCKS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Call:
    """A job made ready to be called."""

    func: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    task: RegisteredTask | None


def prepare(claimed: ClaimedJob, values: Mapping[str, Any]) -> Call:
    """Find what a job names, load its arguments, and put in what placeholders stand for.

    `values`: see placeholder_values(). Raises UnknownTask, NotAllowed, Permanent.
    """
    func, task = resolve(claimed.source_type, claimed.source_id, claimed.source_method)
    args, kwargs = decode_args(claimed.args, values)
    return Call(func, args, kwargs, task)


def _expired(claimed: ClaimedJob) -> bool:
    return claimed.expires_at is not None and claimed.expires_at <= timezone.now()


def _before(running: RunningJob) -> Outcome | None:
    """Note the start; return an outcome if the job must not run."""
    current.enter(running)
    if signals.job_started.receivers:
        announce(signals.job_started, running, attempt=running._claimed.attempt)
    if _expired(running._claimed):
        error = Cancelled(f"it expired at {running._claimed.expires_at} before it could start")
        return Outcome(finished=ended(running, State.CANCELLED, error)._replace(age_seconds=None))
    return None


def _after(running: RunningJob, outcome: Outcome) -> Outcome:
    if signals.job_finished.receivers and (outcome.stored or outcome.finished is not None):
        state = outcome.finished.state if outcome.finished is not None else State.SUCCESS.value
        announce(signals.job_finished, running, state=state, error=outcome.error)
        if outcome.error is not None:
            outcome = outcome._replace(error=None)
    return outcome


def run_sync(running: RunningJob, worker_id: int, blocks: Mapping[str, int] = NO_BLOCKS) -> Outcome:
    """Run a blocking job in this thread.

    `blocks`: how many atomic blocks are open on its connections, by alias (`open_blocks()`).
    """
    if tracing.active is None:
        return _run_sync(running, worker_id, blocks)
    with tracing.active.process(running) as note:
        outcome = _run_sync(running, worker_id, blocks)
        note(outcome)
    return outcome


def _run_sync(running: RunningJob, worker_id: int, blocks: Mapping[str, int]) -> Outcome:
    task: RegisteredTask | None = None
    call: Call | None = None
    try:
        outcome = _before(running)
        if outcome is None:
            with use_tenant(running.tenant), _around(running):
                call = prepare(running._claimed, placeholder_values(running))
                task = call.task
                if task is not None and task.atomic:
                    outcome = _run_atomic(running, call, worker_id, blocks)
                else:
                    outcome = Outcome(finished=success(running, _called(running, call, blocks)))
                call_hook_quietly(task, "after", running)
    except TypeError as error:
        outcome = _failed(running, *_unfit(running, call, error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever users' code raises
        outcome = _failed(running, task, error)
    finally:
        _leave(running)
    return _after(running, outcome)


def _unfit(
    running: RunningJob, call: Call | None, error: TypeError
) -> tuple[RegisteredTask | None, BaseException]:
    """Return the task and the error of a run; UnknownTask if the arguments did not fit.

    Then the job was enqueued by code with another signature, and another worker may have that code.
    """
    if call is None:
        return None, error
    try:
        check_call(running.task, call.func, call.args, call.kwargs)
    except TypeError as unfit:
        call_hook_quietly(call.task, "after", running)  # "before" was called
        told = f"the arguments do not fit the task here: {unfit}"
        return None, UnknownTask(told, name=running.task)
    except Exception:  # noqa: BLE001 - the signature cannot be read
        return call.task, error
    return call.task, error


def _leave(running: RunningJob) -> None:
    running._ended = running._ended or time.monotonic()
    current.leave()


def _failed(running: RunningJob, task: RegisteredTask | None, error: BaseException) -> Outcome:
    running._ended = time.monotonic()
    raised = error
    try:
        error = _explained(running, interruption_of(running, error))
    except BaseException:  # noqa: BLE001 - what users' errors say of themselves may raise
        logger.warning(
            "job %s (%s) failed with an unprintable error",
            running.id,
            running.task,
            extra=about(running),
        )
    outcome = judge(running, task, error)
    call_hook_quietly(task, "after", running)
    if running._interrupted:
        # a connection that was being made would stay open until the garbage collector comes
        for cause in _causes(raised):
            traceback.clear_frames(cause.__traceback__)
    return outcome


def interruption_of(running: RunningJob, error: BaseException) -> BaseException:
    """Return the interruption that led to `error`, if this run was interrupted; else `error`.

    One that arrives inside psycopg or in Django's rollback is hidden by the error that follows.
    """
    own = (TimeLimitExceeded, Cancelled, ClaimLost, Permanent, Postpone, Retry)
    if not running._interrupted or isinstance(error, own):
        return error
    for cause in _causes(error):
        if isinstance(cause, TimeLimitExceeded | Cancelled):
            return cause
    if isinstance(error, DatabaseError | InterfaceError | psycopg.Error | TransactionLeftOpen):
        return Cancelled() if running.cancel_requested else TimeLimitExceeded()
    return error


def _explained(running: RunningJob, error: BaseException) -> BaseException:
    """Give an interruption a message: it arrives in the thread without one."""
    if not isinstance(error, TimeLimitExceeded | Cancelled) or str(error):
        return error  # str() of a project's own error may raise
    if isinstance(error, TimeLimitExceeded):
        said = f"it ran for {running.age_seconds:.1f} s: its timeout is "
        return TimeLimitExceeded(f"{said}{running._claimed.timeout_seconds} s").with_traceback(
            error.__traceback__
        )
    return Cancelled("cancelled while it ran").with_traceback(error.__traceback__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            waiting += (cause.__cause__, cause.__context__)
            yield cause


def _around(running: RunningJob) -> AbstractContextManager[None]:
    if has_surroundings(running._claimed.context):
        return surroundings(running._claimed.context, running)
    return nullcontext()


def _called(running: RunningJob, call: Call, blocks: Mapping[str, int]) -> Any:
    call_hook(call.task, "before", running)
    try:
        value = call.func(*call.args, **call.kwargs)
    finally:
        current.end_forked_copy(running)
    if inspect.iscoroutine(value):
        # it became a coroutine after the job was enqueued. What it hands to sync_to_async runs in
        # this thread, where the wrappers were entered
        value = async_to_sync(_finished)(value)
    check_blocks(blocks)
    running._ended = time.monotonic()
    call_hook_quietly(call.task, "success", running, value)
    return value


async def _finished(value: Awaitable[Any]) -> Any:
    return await value


def _run_atomic(
    running: RunningJob, call: Call, worker_id: int, blocks: Mapping[str, int]
) -> Outcome:
    """Run the task and its fenced finish in one transaction of the job's own database.

    The finish is the last statement. After a connection that breaks at COMMIT, the job's row shows
    whether it was committed.
    """
    settings = get_settings()
    using = settings.database
    is_inside = connections[using].in_atomic_block  # in a TestCase's transaction
    commits: list[bool] = []
    follow_ups: list[FollowUp] = []
    try:
        with transaction.atomic(using=using, durable=True):
            transaction.on_commit(lambda: commits.append(True), using=using)
            if not is_inside:
                # the job's row is written meanwhile: starts, progress, cancellation
                with connections[using].cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            inside = {**blocks, using: blocks.get(using, 0) + 1}
            done = success(running, _called(running, call, inside))
            enqueued = finish_in_transaction(using, worker_id, done, settings.max_errors)
            if enqueued is None:
                running.lost = True
                raise ClaimLost(f"job {running.id} was taken from this run; its writes are undone")
            follow_ups = enqueued
    except (DatabaseError, InterfaceError) as error:
        if not commits and not _committed_after_all(using, running, error):
            raise
    except Exception:
        if not commits:
            raise
        logger.exception(
            "job %s was committed, but one of its on_commit hooks failed",
            running.id,
            extra=about(running),
        )
    return Outcome(stored=True, follow_ups=follow_ups)


def _committed_after_all(using: str, running: RunningJob, error: BaseException) -> bool:
    if connections[using].is_usable():
        return False
    connections[using].close()
    claimed = running._claimed
    found = (
        Job.objects.using(using)
        .filter(pk=claimed.id, claim_seq=claimed.claim_seq, state=State.SUCCESS)
        .exists()
    )
    if found:
        logger.info(
            "job %s was committed although its connection broke: %s",
            claimed.id,
            error,
            extra=about(running),
        )
    return found


async def run_async(running: RunningJob) -> Outcome:
    """Run a coroutine job in the event loop.

    Its model arguments are loaded, and a result for a cache is stored, by `sync_to_async`.
    """
    if tracing.active is None:
        return await _run_async(running)
    with tracing.active.process(running) as note:
        outcome = await _run_async(running)
        note(outcome)
    return outcome


async def _run_async(running: RunningJob) -> Outcome:
    task: RegisteredTask | None = None
    call: Call | None = None
    try:
        outcome = _before(running)
        if outcome is None:
            check_coroutine(running.task)
            with use_tenant(running.tenant), _around(running):
                claimed = running._claimed
                values = await aplaceholder_values(running)
                if _loads_rows(claimed):
                    call = await sync_to_async(prepare)(claimed, values)
                else:
                    call = prepare(claimed, values)
                task = call.task
                value = await _awaited(running, call)
                outcome = Outcome(finished=await _succeeded(running, value))
                call_hook_quietly(task, "after", running)
    except asyncio.CancelledError as error:
        outcome = _interrupted(running, task, error)
    except TypeError as error:
        outcome = _failed(running, *_unfit(running, call, error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever users' code raises
        outcome = _failed(running, task, error)
    finally:
        _leave(running)
    return _after(running, outcome)


def _interrupted(
    running: RunningJob, task: RegisteredTask | None, error: asyncio.CancelledError
) -> Outcome:
    if running.cancel_requested:
        return _failed(running, task, Cancelled("cancelled while it ran"))
    if running._interrupted:
        return _failed(running, task, TimeLimitExceeded())
    return _failed(running, task, error)


def _loads_rows(claimed: ClaimedJob) -> bool:
    return (
        claimed.source_type not in ("task", INTERNAL, "callable", "class")
        or "tenantqueue__" in claimed.args
    )


def _in_thread(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        close_ended_connections()
        blocks = open_blocks()
        value = func(*args, **kwargs)
        check_blocks(blocks)
    finally:
        reset_connections()
    return value


async def _succeeded(running: RunningJob, value: Any) -> Finished:
    if may_use_cache(value):
        return await sync_to_async(success)(running, value)
    return success(running, value)


def _awaitable(call: Call) -> Awaitable[Any]:
    if inspect.iscoroutinefunction(call.func):
        return call.func(*call.args, **call.kwargs)  # type: ignore[no-any-return]
    # it was a coroutine when the job was enqueued
    return asyncio.to_thread(_in_thread, call.func, *call.args, **call.kwargs)


async def _awaited(running: RunningJob, call: Call) -> Any:
    call_hook(call.task, "before", running)
    try:
        value = await _awaitable(call)
    finally:
        current.end_forked_copy(running)
    running._ended = time.monotonic()
    call_hook_quietly(call.task, "success", running, value)
    return value
