"""The jobs that links to their statuses open, and what such a status says of an error."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence

from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext

from ..conf import get_settings
from ..databases import are_several, database_of_id
from ..link_tokens import Holder, read_job_token
from ..models import Job
from ..settings import MESSAGE
from ..states import State

logger = logging.getLogger("django_tenantqueue")


def open_links(tokens: Sequence[str], who: Holder) -> tuple[dict[str, Job], set[str]]:
    """Return the jobs of the valid tokens, and the tokens of jobs that cannot be read now.

    Each token is verified by itself. `who` returns who asks, see read_job_token(). Two statements
    at most for each database. A job cannot be read while one of several databases is down.
    """
    ids = {token: job_id for token in tokens if (job_id := read_job_token(token, who)) is not None}
    of_database: defaultdict[str, list[int]] = defaultdict(list)
    for job_id in ids.values():
        of_database[database_of_id(job_id)].append(job_id)
    jobs: dict[int, Job] = {}
    unread: set[int] = set()
    for using, own in of_database.items():
        try:
            jobs |= Job.objects.using(using).find_many(own)
        except (OperationalError, InterfaceError) as error:
            if not are_several():
                raise
            logger.warning(
                "reading the statuses of jobs in the database %r failed: %s", using, error
            )
            unread.update(own)
    return (
        {token: jobs[job_id] for token, job_id in ids.items() if job_id in jobs},
        {token for token, job_id in ids.items() if job_id in unread},
    )


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
