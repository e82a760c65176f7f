"""The job that posts the end of another job to its `callback_url`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async
from django.utils import timezone

from ...calls.call import Call
from ...calls.sources import INTERNAL
from ...exceptions import InvalidArgument, Permanent
from ...execution.current_job import current_job
from ...status.job_status import describe_job
from .addresses import hosts_of
from .exceptions import HttpAddressRefused
from .job import HTTPTask, post
from .request import check_request


async def _post(url: str) -> dict[str, Any]:
    """POST the end of the job that this one follows to `url`."""
    previous = await current_job().aprevious()
    if previous is None:
        raise Permanent("the job was deleted, so its end cannot be posted")
    if not previous.final:
        return {"status": None, "body": "not sent: the job was retried, and its next end is posted"}
    status = await sync_to_async(describe_job)(previous)
    ended_at = previous.finished_at or timezone.now()
    return await post(url, {"type": f"job.{previous.state}", "timestamp": ended_at, "data": status})


class _EndTask(HTTPTask[[str], Any]):
    _source_type = INTERNAL


post_end = _EndTask(_post, name="django_tenantqueue.http.post_end")
"""The task. It is enqueued by the end of a job: `.using(callback_url="https://…")`."""


def end_call(url: str, tenant: str) -> Call:
    """Return the call that posts the end of a job of a tenant.

    Raises InvalidArgument for a URL that jobs of the tenant may not call.
    """
    try:
        check_request(url)
        hosts_of(tenant).check(_host_of(url))
    except (InvalidArgument, HttpAddressRefused) as error:
        raise InvalidArgument(f"callback_url: {error}") from None
    return post_end.call(url)


def _host_of(url: str) -> str:
    """Return the host of a URL as DNS has it."""
    host = urlsplit(url).hostname or ""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host
