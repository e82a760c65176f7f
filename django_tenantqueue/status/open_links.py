"""The jobs that links to their statuses open, and what such a status says of an error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.utils.translation import gettext

from ..conf import get_settings
from ..databases import database_of_id
from ..link_tokens import Holder, read_job_token
from ..models import Job
from ..settings import MESSAGE
from ..states import State


def open_links(tokens: Sequence[str], who: Holder) -> dict[str, Job]:
    """Return the jobs of the valid tokens: each is verified by itself.

    `who` returns who asks, see read_job_token(). Two statements at most for each database.
    """
    ids = {token: job_id for token in tokens if (job_id := read_job_token(token, who)) is not None}
    of_database: defaultdict[str, list[int]] = defaultdict(list)
    for job_id in ids.values():
        of_database[database_of_id(job_id)].append(job_id)
    jobs: dict[int, Job] = {}
    for using, own in of_database.items():
        jobs |= Job.objects.using(using).find_many(own)
    return {token: jobs[job_id] for token, job_id in ids.items() if job_id in jobs}


def public_error(job: Job) -> str | None:
    """Return what users may read of a job's newest error, by STATUS_ERROR; None: there is none."""
    text = get_settings().status_error
    if MESSAGE in text:
        message = error_message(job)
        return None if message is None else gettext(text).replace(MESSAGE, message)
    ended_well = job.state in (State.SUCCESS, State.CANCELLED)
    return None if ended_well or job.last_error is None else gettext(text)


def error_message(job: Job) -> str | None:
    """Return the message of a job's newest error, for those who may see what went wrong."""
    error = job.last_error if job.state != State.SUCCESS else None
    return None if error is None else str(error.get("message", ""))
