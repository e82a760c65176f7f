"""The job that a running one follows, and its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from ..calls.arguments import RESULT_MARK
from ..conf import get_settings
from ..exceptions import Permanent
from ..models import Job
from ..queries.claim import ClaimedJob
from ..queries.follow_ups import read_previous_results

if TYPE_CHECKING:
    from .current_job import RunningJob

_RESULT = RESULT_MARK.replace(":", ": ")
"""The placeholder as PostgreSQL writes it."""


def previous_of(job_id: int) -> Job | None:
    """Return the job whose end has enqueued a job that runs; None: none has, or it is gone."""
    if job_id <= 0:  # eager mode stores nothing
        return None
    jobs = Job.objects.using(get_settings().database)
    found = jobs.unfinished().filter(pk=job_id).values_list("previous_id", flat=True).first()
    return None if found is None else jobs.find(found)


def needs_result(claimed: ClaimedJob) -> bool:
    """Whether the result of the job before is among the arguments."""
    return _RESULT in claimed.args


def placeholder_values(running: RunningJob) -> dict[str, Any]:
    """Return the values of placeholders. Raises Permanent when the result is gone."""
    claimed = running._claimed
    values = {"attempt": claimed.attempt, "tenant": running.tenant, "job_id": claimed.id}
    if needs_result(claimed):
        values["result"] = _result_before(running)
    return values


async def aplaceholder_values(running: RunningJob) -> dict[str, Any]:
    """See placeholder_values()."""
    if needs_result(running._claimed):
        return await sync_to_async(placeholder_values)(running)
    return placeholder_values(running)


def _result_before(running: RunningJob) -> Any:
    """Return the result; it is read here unless the worker has read it with those of others."""
    found = running._previous_result
    if found is None:
        found = read_previous_results(get_settings().database, [running.id]).get(running.id)
    if found is None or not found.is_there:
        raise Permanent(
            f"the job whose result is an argument of job {running.id} does not exist any more"
        )
    value = None if found.result is None else json.loads(found.result)
    try:
        return Job(result_data=value, result_ref=found.result_ref).result
    except LookupError:
        raise Permanent(
            f"the result that is an argument of job {running.id} was removed, or its cache has "
            "dropped it"
        ) from None
