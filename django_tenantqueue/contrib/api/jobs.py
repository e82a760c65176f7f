"""Jobs: submitted, read, waited for, cancelled, retried and tuned."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from ...calls.sources import INTERNAL
from ...conf import get_settings
from ...exceptions import InvalidArgument
from ...models import Job
from ...operations import control
from ...queries.lists import NEWEST, JobFilter
from ...states import State
from ...status.callback_progress import show_details
from ...status.job_conditions import read_conditions
from ...status.job_filters import STATE_GROUPS, Asked
from ...status.job_pages import queue_ids
from ...text import is_storable
from . import schemas, shown
from .access import READ, SUBMIT, TUNE, Caller, Needs, caller_of
from .exceptions import ApiError
from .idempotency import Answer, do_once, is_used
from .openapi import KEY, LONGEST_KEY, operation
from .submission import Submitted, offered_tasks

router = Router(tags=["jobs"])

JobId = Annotated[int, Path(ge=1, le=schemas.MOST_ID)]
Name = Annotated[str | None, Query(min_length=1, max_length=500)]
Moment = Annotated[str | None, Query(min_length=1, max_length=40)]
"""A time of a filter: see read_moment()."""


def answer(body: Any, status: int = 200, **headers: str) -> HttpResponse:
    """Return an answer as JSON that no cache keeps."""
    text = json.dumps(body, cls=DjangoJSONEncoder)
    kept = {"Cache-Control": "no-store", **headers}
    return HttpResponse(text, status=status, content_type="application/json", headers=kept)


def find_job(job_id: int, caller: Caller, *, light: bool = False) -> Job:
    """Return a job of the caller's tenant, with its queue. Raises ApiError: 404.

    Jobs of the package's own tasks have the rights of an operator: clients do not see them.
    """
    jobs = Job.objects.using(get_settings().database).select_related("queue")
    job = (jobs.defer(*shown.HEAVY) if light else jobs).find(job_id)
    if job is None or job.queue.tenant != caller.tenant or job.source_type == INTERNAL:
        raise ApiError(404, f"There is no job {job_id}.")
    return job


def job_details(job_id: int, caller: Caller) -> dict[str, Any]:
    """Return a job as clients see it. Raises ApiError: 404."""
    job = find_job(job_id, caller)
    show_details([job])
    return shown.job_details(job)


@operation(
    router.post,
    "/jobs",
    Needs(SUBMIT),
    {201: schemas.Submitted, 200: schemas.Submitted},
    problems=(409,),
    parameters=(KEY,),
)
def submit_job(request: HttpRequest, job: schemas.Submission) -> HttpResponse:
    """Submit a job.

    201: it was created. 200: it is a duplicate, and the answer is about the existing job.
    """
    caller = caller_of(request)
    submitted = Submitted([job], caller)

    def act() -> Answer:
        made = submitted.store()
        body = {"id": made.pk, "state": made.state, "duplicate": made.duplicate}
        return Answer(200 if made.duplicate else 201, body)

    done = _once(request, caller, submitted, act)
    return answer(done.body, done.status, Location=f"{request.path}/{done.body['id']}")


@operation(
    router.post,
    "/jobs/batch",
    Needs(SUBMIT),
    {201: schemas.SubmittedBatch},
    problems=(409,),
    parameters=(KEY,),
)
def submit_batch(request: HttpRequest, batch: schemas.Batch) -> HttpResponse:
    """Submit up to 5,000 jobs, all or none.

    `index` of a problem is the first wrong job. For a duplicate, the list has the id of the
    existing job.
    """
    caller = caller_of(request)
    submitted = Submitted(batch.jobs, caller)
    done = _once(request, caller, submitted, lambda: Answer(201, {"ids": submitted.store_all()}))
    return answer(done.body, done.status)


def _once(
    request: HttpRequest, caller: Caller, submitted: Submitted, act: Callable[[], Answer]
) -> Answer:
    """Perform a request, unless one with its key was performed before.

    For a new request, missing queues are created first, outside of the transaction.
    """
    using, key = get_settings().database, request.headers.get("Idempotency-Key")
    if key is None:
        submitted.make_queues()
        return act()
    if len(key) > LONGEST_KEY or not re.fullmatch(KEY["schema"]["pattern"], key):
        raise ApiError(
            422,
            f"Idempotency-Key: give 1 to {LONGEST_KEY} visible ASCII characters without spaces, "
            "optionally in quotes.",
        )
    key = key.strip('"')  # the draft has a string of structured fields
    said = f"{request.path}\n{caller.tenant}\n".encode() + request.body
    digest = hashlib.sha256(said).hexdigest()
    if submitted.missing and not is_used(using, caller.token, key):
        submitted.make_queues()
    return do_once(using, caller.token, caller.tenant, key, digest, act)


@operation(router.get, "/tasks", Needs(READ), {200: schemas.TaskList})
def list_tasks(request: HttpRequest) -> HttpResponse:
    """List the tasks that the token may submit."""
    tasks = offered_tasks(caller_of(request))
    items = [
        {
            "name": task.name,
            "signature": str(inspect.signature(task.func)),
            "description": (inspect.getdoc(task.func) or "").partition("\n")[0],
        }
        for task in tasks
    ]
    return answer({"items": items})


StateGroup = Literal[
    "unfinished", "active", "finished",
    "scheduled", "held", "ready", "queued", "running", "success", "error", "cancelled",
]  # fmt: skip


@operation(router.get, "/jobs", Needs(READ), {200: schemas.JobPage})
def list_jobs(
    request: HttpRequest,
    state: StateGroup | None = None,
    task: Name = None,
    queue: Name = None,
    created_from: Moment = None,
    created_to: Moment = None,
    ended_from: Moment = None,
    ended_to: Moment = None,
    label: Name = None,
    argument: Name = None,
    created_by: Name = None,
    limit_user: Name = None,
    session: Name = None,
    priority: Annotated[int | None, Query(ge=-32768, le=32767)] = None,
    error: Name = None,
    before: Annotated[int, Query(ge=1, le=NEWEST)] = NEWEST,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> HttpResponse:
    """List jobs, newest first."""
    caller, using = caller_of(request), get_settings().database
    given = {
        name: str(value)
        for name, value in {
            "task": task,
            "queue": queue,
            "created_from": created_from,
            "created_to": created_to,
            "ended_from": ended_from,
            "ended_to": ended_to,
            "label": label,
            "argument": argument,
            "created_by": created_by,
            "limit_user": limit_user,
            "session": session,
            "error": error,
            "priority": priority,
        }.items()
        if value is not None
    }
    for value in given.values():
        if not is_storable(value):
            raise ApiError(422, f"{value!r} cannot be a name.")
    queues = queue_ids(using, tenant=caller.tenant, name=queue)
    states = None if state is None else STATE_GROUPS[state]
    try:
        narrowed = read_conditions(
            using, given, JobFilter(states, queues=queues, task=task), tenant=caller.tenant
        )
    except InvalidArgument as wrong:
        raise ApiError(422, str(wrong)) from None
    page = next(Asked(narrowed).below(before).walk(using, size=limit))
    rows = Job.objects.using(using).select_related("queue").defer(*shown.HEAVY)
    found = rows.find_many(page.ids)
    jobs = (found[i] for i in page.ids if i in found)
    items = [shown.job_summary(job) for job in jobs if job.source_type != INTERNAL]
    return answer({"items": items, "next": page.older})


@operation(router.get, "/jobs/{job_id}", Needs(READ), {200: schemas.JobDetails})
def read_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """Read a job, with its result and errors."""
    return answer(job_details(job_id, caller_of(request)))


@operation(
    router.post, "/jobs/{job_id}/cancel", Needs(SUBMIT), {200: schemas.JobDetails}, problems=(409,)
)
def cancel_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """Cancel a job.

    A waiting job ends at once. For a running job, cancellation is requested.
    """
    caller = caller_of(request)
    find_job(job_id, caller, light=True)
    with caller.acting():
        cancelled, asked = control.cancel([job_id])
    if not cancelled and not asked:
        raise ApiError(409, f"Job {job_id} has ended, or is a monitor's callback.")
    return answer(job_details(job_id, caller))


@operation(
    router.post, "/jobs/{job_id}/retry", Needs(SUBMIT), {200: schemas.JobDetails}, problems=(409,)
)
def retry_job(request: HttpRequest, job_id: JobId) -> HttpResponse:
    """Retry a job that failed or was cancelled. Its attempts restart at zero."""
    caller = caller_of(request)
    find_job(job_id, caller, light=True)
    with caller.acting():
        retried = control.retry([job_id])
    if not retried:
        raise ApiError(
            409, f"Job {job_id} did not fail and was not cancelled, or cannot be retried."
        )
    return answer(job_details(job_id, caller))


@operation(router.patch, "/jobs/{job_id}", Needs(TUNE), {200: schemas.JobDetails}, problems=(409,))
def tune_job(request: HttpRequest, job_id: JobId, changes: schemas.JobChanges) -> HttpResponse:
    """Change the priority or time of a waiting job."""
    caller = caller_of(request)
    find_job(job_id, caller, light=True)
    caller.check({"priority": changes.priority})
    done = [True]
    with caller.acting(), transaction.atomic(using=get_settings().database):
        if changes.priority is not None:
            done.append(bool(control.change_priority([job_id], changes.priority)))
        if changes.run_at is not None:
            done.append(bool(control.change_run_at([job_id], changes.run_at)))
        if not all(done):
            raise ApiError(409, f"Job {job_id} is no longer waiting.")
    return answer(job_details(job_id, caller))


assert {"unfinished", "active", "finished", *State.values} == set(STATE_GROUPS)
