"""The job that a running one follows, and what it returned."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from ..calls.arguments import RESULT_MARK
from ..conf import get_settings
from ..exceptions import Permanent
from ..models import Job
from ..queries.claim import ClaimedJob

_RESULT = RESULT_MARK.replace(":", ": ")
"""The placeholder as PostgreSQL writes it."""


def previous_of(job_id: int) -> Job | None:
    """Return the job whose end has enqueued a job that runs; None: none has, or it is gone."""
    if job_id <= 0:  # eager mode stores nothing
        return None
    jobs = Job.objects.using(get_settings().database)
    found = jobs.unfinished().filter(pk=job_id).values_list("previous_id", flat=True).first()
    return None if found is None else jobs.find(found)


def placeholder_values(claimed: ClaimedJob, tenant: str) -> dict[str, Any]:
    """Return what is put in for placeholders. The result is read where the arguments have it.

    Raises Permanent when it is gone.
    """
    values = {"attempt": claimed.attempt, "tenant": tenant, "job_id": claimed.id}
    if _RESULT in claimed.args:
        values["result"] = _result_before(claimed)
    return values


async def aplaceholder_values(claimed: ClaimedJob, tenant: str) -> dict[str, Any]:
    """See placeholder_values()."""
    if _RESULT in claimed.args:
        return await sync_to_async(placeholder_values)(claimed, tenant)
    return placeholder_values(claimed, tenant)


def _result_before(claimed: ClaimedJob) -> Any:
    previous = previous_of(claimed.id)
    if previous is None:
        raise Permanent(
            f"the job whose result is an argument of job {claimed.id} does not exist any more"
        )
    try:
        return previous.result
    except LookupError as error:
        raise Permanent(str(error)) from None
