"""Values for the statements that are tried on filled tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django_tenantqueue.queries import claim as claim_queries
from django_tenantqueue.queries import finish as finish_queries
from django_tenantqueue.queries import lists
from django_tenantqueue.queries.base import array
from django_tenantqueue.queries.claim import ClaimRequest
from django_tenantqueue.queries.finish import Failed, Finished
from django_tenantqueue.queries.survey import Taken
from django_tenantqueue.states import FINAL
from tests.queries.filled import OUR_WORKER, Filled


def ids(name: str, **more: Any) -> Callable[[Filled], dict[str, Any]]:
    return lambda filled: {"ids": array(getattr(filled, name)), **more}


def ended(name: str = "", *flags: str, **more: Any) -> Callable[[Filled], dict[str, Any]]:
    start = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    month = {"start": start, "end": (start + timedelta(days=32)).replace(day=1), **more}
    if not name:
        return lambda _: month

    def values(filled: Filled) -> dict[str, Any]:
        chosen = getattr(filled, name)
        return {"ids": array(chosen), **{f: array(True for _ in chosen) for f in flags}, **month}

    return values


def listed(
    *states: str, before: int = lists.NEWEST, queues: bool = False, **more: Any
) -> Callable[[Filled], dict[str, Any]]:
    """Return the parameters of a page of jobs; of finished ones unless states are given."""
    chosen = states or tuple(FINAL)
    return lambda filled: {
        "before": before,
        "page": 100,
        "most": 1000,
        "states": list(chosen),
        "final": FINAL.issuperset(chosen),
        "queues": filled.open_queues[:3] if queues else None,
        **dict.fromkeys(("task", "text", "source_id", "created_by", "creator", "error_end")),
        **dict.fromkeys(lists.CHECKED),
        **dict.fromkeys(f"key_{name}" for name in lists.KEYS),
        "after": 0,
        "month_from": "-infinity",
        "month_to": "infinity",
        "source_types": [],
        **more,
    }


def of_sources(*types: str, most: int = 20) -> Callable[[Filled], dict[str, Any]]:
    found = {"types": list(types), "ids": list("123456789"), "most": most}
    return lambda _: found


def request(**changes: Any) -> ClaimRequest:
    return ClaimRequest(OUR_WORKER, **{"room_threads": 72, "room_async": 4, **changes})


def locks(**changes: Any) -> Callable[[Filled], dict[str, Any]]:
    return lambda _: claim_queries.lock_params(request(**changes))


def claims(**changes: Any) -> Callable[[Filled], dict[str, Any]]:
    return lambda _: claim_queries.claim_params(request(**changes))


def known(filled: Filled) -> dict[str, Any]:
    """Look where jobs of some queues begin, at what was put in last, and at few counts."""
    return {
        "known": {(lane, q, lane): 1 for q in filled.open_queues for lane in (120, 200, 240)},
        "arrivals_after": max(filled.ready) - 100,
        "most_steps": 0,
        "by_ids": True,
        "taken": taken(filled),
    }


def taken(filled: Filled) -> dict[int, Taken]:
    return {queue_id: Taken(since=0, as_of=0) for queue_id in filled.open_queues}


def finished(filled: Filled) -> dict[str, Any]:
    ends = [Finished(job_id, 1, "success", 0.1, '{"rows": 1}') for job_id in filled.held]
    return finish_queries.finish_params(OUR_WORKER, ends, 10)


def failed(filled: Filled) -> dict[str, Any]:
    ends = [Failed(job_id, 1, 5.0, '{"error": {"message": "no"}}') for job_id in filled.held]
    return finish_queries.reschedule_params(OUR_WORKER, ends, 10)


def failed_jobs(filled: Filled) -> dict[str, Any]:
    return {
        "worker": OUR_WORKER,
        "ids": array(filled.held),
        "counted": array(filled.held),
        "error": '{"message": "died"}',
        "crashed": True,
        "max_errors": 10,
    }


def rescued(filled: Filled) -> dict[str, Any]:
    return {
        **failed_jobs(filled),
        "counted": array(number % 2 == 0 for number in range(len(filled.held))),
        "delays": array(0.5 for _ in filled.held),
    }


NEW_JOB: dict[str, Any] = {
    "lane": 240,
    "priority": 240,
    "is_async": False,
    "run_at": None,
    "delay_seconds": 0.0,
    "expires_at": None,
    "max_attempts": 5,
    "timeout_seconds": None,
    "hard_timeout_seconds": None,
    "task": "noop",
    "source_type": "task",
    "source_id": "",
    "source_method": "noop",
    "args": '{"args": []}',
    "labels": None,
    "created_by": None,
    "context": None,
    "unseen": False,
    "has_room": False,
}
GATED_JOB: dict[str, Any] = {
    **NEW_JOB,
    "held_by": None,
    "monitor_id": None,
    "session_key": None,
    "session_skip": False,
    "session_halt": False,
    "limit_user": None,
    "exclusive_keys": None,
    "unique_mode": None,
    "previous_id": None,
    "follow_ups": None,
}
UNIQUE_JOB: dict[str, Any] = {
    **GATED_JOB,
    "unique_mode": "until_executed",
    "excludes": False,
    "ttl": 600.0,
    "passed_over": "{}",
}


def new_job(**changes: Any) -> Callable[[Filled], dict[str, Any]]:
    return lambda filled: {"queue_id": filled.open_queues[0], **NEW_JOB, **changes}


def monitors(**more: Any) -> Callable[[Filled], dict[str, Any]]:
    return lambda _: {"keys": ["7", "8"], "by_tenant": False, **more}


def gated(**changes: Any) -> Callable[[Filled], dict[str, Any]]:
    return new_job(**{**GATED_JOB, "held_by": "session", "session_key": "tenant/7", **changes})


def gates(_: Filled) -> dict[str, Any]:
    """Release twenty gates: half of them are taken."""
    return {"keys": [f"tenant/{number}" for number in range(1, 21)], "user_slots": 2}


def of_kind(
    params: Callable[[Filled], dict[str, Any]], kind: str
) -> Callable[[Filled], dict[str, Any]]:
    return lambda filled: {**params(filled), "kind": kind}


def swept(_: Filled) -> dict[str, Any]:
    return {"after": "tenant/2", "most": 100, "user_slots": 2}


def unique_jobs(*, made: int = 10, **changes: Any) -> Callable[[Filled], dict[str, Any]]:
    """Return the parameters for jobs with keys: new ones, keys that block, and stale ones."""

    def params(filled: Filled) -> dict[str, Any]:
        keys = [f"new/{nth}" for nth in range(made)]
        keys += [f"acme/{job_id}" for job_id in filled.ready[:made]]
        keys += [f"gone/{nth + 1}" for nth in range(made)]
        return new_job(
            **{
                **UNIQUE_JOB,
                "args": f"[{','.join(['{}'] * len(keys))}]",
                "errors": f"[{','.join(['{}'] * len(keys))}]",
                "keys": keys,
                **changes,
            }
        )(filled)

    return params


def task_release(filled: Filled) -> dict[str, Any]:
    return {
        "task": "task-7",
        "start": filled.open_queues[5],
        "from_lane": -40_000,
        "from_queue": 0,
        "from_wrapped": True,
        "waits": True,
        "most": 100,
        "most_steps": 200,
    }


def figures(_: Filled) -> dict[str, Any]:
    return {"since": datetime.now(UTC) - timedelta(hours=1), "seconds": 60.0}


def failures(queues: str = "{0}", task: str | None = None) -> Callable[[Filled], dict[str, Any]]:
    return lambda _: {
        "since": datetime.now(UTC) - timedelta(days=7),
        "seconds": 10_800.0,
        "groups": 50,
        "most": 20_000,
        "queues": queues,
        "task": task,
        "error": None,
    }


def failed_group(error: str = "ValueError") -> Callable[[Filled], dict[str, Any]]:
    return lambda _: {
        "task": "tests.testapp.tasks.noop",
        "error": error,
        "since": datetime.now(UTC) - timedelta(days=31),
        "before": datetime(9000, 1, 1, tzinfo=UTC),
        "before_id": 2**63 - 1,
        "most": 1000,
    }


def of_queue(*, first: bool = False) -> Callable[[Filled], dict[str, Any]]:
    """Ask for the first page of the ready jobs of a queue, from its beginning or its end."""
    return lambda filled: {
        "queues": array(filled.open_queues[:1]),
        "id": 0 if first else 2**63 - 1,
        "most": 101,
    }


def thinned(minutes: int, into: int | None, kept: timedelta) -> Callable[[Filled], dict[str, Any]]:
    return lambda _: {
        "minutes": minutes,
        "into": into,
        "before": datetime.now(UTC) - kept,
        "most": 2000,
    }


def changes_of(kind: str, object_id: int, label: str | None) -> Callable[[Filled], dict[str, Any]]:
    key = {"kind": kind, "object_id": object_id, "label": label, "tenant": "tenant-7"}
    return lambda _: {**key, "before": 2**62, "most": 100}
