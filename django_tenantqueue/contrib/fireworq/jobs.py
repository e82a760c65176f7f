"""Jobs: pushed, listed, deleted."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from ...batch_sizes import BATCH
from ...calls.given_options import merged
from ...calls.options import Options
from ...calls.sources import INTERNAL, known_task
from ...exceptions import InvalidArgument, InvalidOption, QueueFull, QueueRetired, TenantMoving
from ...models import Job
from ...operations import control
from ...operations.enqueue import enqueue
from ...operations.queues import find_target
from ...queries.base import execute
from ...states import MOST_ATTEMPTS
from ...text import is_storable, read_number
from ..api.exceptions import ApiError
from ..http import http_job
from ..http.settings import LONGEST_REQUEST
from .answers import Caller, answers, as_json, bad_request, check_category, read_body, text, whole
from .lists import ListedJob, describe_failure, describe_job, find_of_queue, read_page

FIELDS = ("url", "payload", "run_after", "max_retries", "retry_delay", "timeout")


@answers(POST="http")
def push(request: HttpRequest, caller: Caller, category: str) -> HttpResponse:
    """Enqueue a job that POSTs to a URL."""
    body = read_body(request, FIELDS)
    check_category(category)
    if known_task(INTERNAL, category):
        raise bad_request(f"job_category: {category!r} is a task of the package itself")
    url = text(body, "url")
    if not is_storable(url):
        raise bad_request("url: it must have no NUL and no lone surrogates")
    call = {
        "url": url,
        "payload": body.get("payload"),
        "run_after": whole(body, "run_after"),
        "timeout": whole(body, "timeout", LONGEST_REQUEST),
        "retry_delay": whole(body, "retry_delay"),
        "max_retries": whole(body, "max_retries", MOST_ATTEMPTS - 1),
    }
    try:
        job, queue_name = _enqueue(caller, category, call)
    except QueueFull as error:
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, str(error), {"Retry-After": "1"}) from None
    except TenantMoving as error:
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), {"Retry-After": "2"}) from None
    except (InvalidArgument, InvalidOption, QueueRetired) as error:
        raise bad_request(str(error)) from None
    return as_json({"id": job.pk, "queue_name": queue_name, "category": category, **call})


def _enqueue(caller: Caller, category: str, call: Mapping[str, Any]) -> tuple[Job, str]:
    """Enqueue a job in the queue to which its category is routed; return it and the queue."""
    seconds = call["timeout"] or LONGEST_REQUEST
    url, headers = without_user(call["url"])
    kwargs = {
        "rule": "fireworq",
        "request_timeout": seconds,
        "retry_delay": call["retry_delay"],
        **({"headers": headers} if headers else {}),
    }
    options = merged(
        Options(),
        {
            "tenant": caller.tenant,
            "run_at": call["run_after"] or None,
            "max_attempts": call["max_retries"] + 1,
            "timeout": seconds + 60,  # of the run, which includes the request
        },
    )
    args = (url, call["payload"])
    http_job._check_call(args, kwargs)
    target = find_target(options, category)
    source = replace(http_job.source, name=category)
    job = enqueue(source, merged(options, {"queue": target.queue}), args, kwargs, task=http_job)
    count = partial(execute, caller.using, "count_push", {"queue_id": job.queue_id})
    transaction.on_commit(count, using=caller.using, robust=True)
    return job, target.queue


def without_user(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without a user and a password, and the header that Fireworq makes of them."""
    head, slashes, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    if not at:
        return url, {}
    name, _, password = user.partition(":")
    text = f"{unquote(name)}:{unquote(password)}"
    header = f"Basic {base64.b64encode(text.encode()).decode()}"
    path = rest.removeprefix(authority)
    return f"{head}{slashes}{host}{path}", {"Authorization": header}


# lists


@answers(GET="read")
def job_list(request: HttpRequest, caller: Caller, name: str, what: str) -> HttpResponse:
    """Answer with a page of the waiting, deferred or grabbed jobs of a queue."""
    up = request.GET.get("order") == "asc"
    jobs, cursor = _page(request, caller, name, what, up=up)
    return as_json({"jobs": [describe_job(job) for job in jobs], "next_cursor": cursor})


@answers(GET="read")
def failed_list(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Answer with a page of the jobs of a queue that ended in error."""
    order = "created" if request.GET.get("order") == "created" else "failed"
    jobs, cursor = _page(request, caller, name, order)
    return as_json({"failed_jobs": [describe_failure(job) for job in jobs], "next_cursor": cursor})


def _page(
    request: HttpRequest, caller: Caller, name: str, what: str, *, up: bool = False
) -> tuple[list[ListedJob], str]:
    queue = caller.find_queue(name)
    given = request.GET.get("limit", "")
    limit = 100
    if given.isascii() and given.isdecimal():
        limit = min(int(given[:10]), BATCH)
    cursor = request.GET.get("cursor", "")
    return read_page(caller.using, queue.pk, what, up=up, limit=limit, cursor=cursor)


# one job


@answers(GET="read", DELETE="submit")
def job(request: HttpRequest, caller: Caller, name: str, job_id: str) -> HttpResponse:
    """Answer with an unfinished job; cancel it before."""
    found = _find(caller, name, job_id, failed=False)
    if request.method == "DELETE" and not any(control.cancel([found.id], using=caller.using)):
        raise bad_request(f"Job {job_id} has ended, or is the callback of a monitor and waits")
    return as_json(describe_job(found))


@answers(GET="read", DELETE="submit")
def failed(request: HttpRequest, caller: Caller, name: str, job_id: str) -> HttpResponse:
    """Answer with a job that ended in error; delete it before."""
    found = _find(caller, name, job_id, failed=True)
    if request.method == "DELETE" and not control.delete_finished([found.id], using=caller.using):
        raise bad_request(f"Job {job_id} was deleted already, or a monitor counts it")
    return as_json(describe_failure(found))


def _find(caller: Caller, name: str, job_id: str, *, failed: bool) -> ListedJob:
    if not job_id.isascii() or not job_id.isdecimal():
        raise bad_request(f"{job_id!r} is no id of a job")
    queue = caller.find_queue(name)
    number = read_number(job_id)
    found = None
    if number is not None:
        found = find_of_queue(caller.using, queue.pk, number, failed=failed)
    if found is None or known_task(INTERNAL, found.source_method):
        raise ApiError(HTTPStatus.NOT_FOUND)
    return found
