"""Errors as problem details (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from ninja import errors as ninja_errors

from ...exceptions import (
    DuplicateJob,
    InvalidState,
    JobNotFound,
    NotAllowed,
    QueueFull,
    QueueRetired,
    TenantMoving,
    TenantQueueError,
)
from .exceptions import ApiError

MEDIA_TYPE = "application/problem+json"
CONFLICTS = (DuplicateJob, InvalidState, QueueFull, QueueRetired)
"""Errors that say nothing against the request itself: 409."""


def problem(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **members: object
) -> HttpResponse:
    """Return a problem. `members`: further members of the object."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **members,
    }
    text = json.dumps(body, cls=DjangoJSONEncoder)
    return HttpResponse(text, status=status, content_type=MEDIA_TYPE, headers=dict(headers or {}))


def problem_of(request: HttpRequest, error: Any) -> HttpResponse:
    """Return the problem for an error of the package, of Django or of ninja."""
    members = {"index": error.index} if hasattr(error, "index") else {}
    match error:
        case ApiError():
            return problem(error.status, error.detail, error.headers, **members)
        case ninja_errors.ValidationError():
            return _invalid(_entry(entry) for entry in error.errors)
        case ninja_errors.HttpError():  # it is raised for a body alone
            return problem(400, "The body of the request is not JSON.")
        case ValidationError():
            return _invalid(_fields_of(error))
        case RequestDataTooBig():
            return problem(413, str(error))
        case JobNotFound():
            return problem(404, str(error))
        case NotAllowed():
            return problem(403, str(error))
        case DuplicateJob():
            return problem(409, str(error), job=error.job_id, **members)
        case TenantMoving():
            return problem(503, str(error), {"Retry-After": "2"}, **members)
        case TenantQueueError() if isinstance(error, CONFLICTS):
            return problem(409, str(error), **members)
    return problem(422, str(error), **members)


HANDLED = (
    RequestDataTooBig,
    TenantQueueError,
    ValidationError,
    ninja_errors.HttpError,
    ninja_errors.ValidationError,
)
"""Errors that become problems. All others are bugs, which Django logs and answers."""


def _invalid(entries: Iterable[dict[str, str]]) -> HttpResponse:
    return problem(422, "The request has wrong values.", errors=list(entries))


def _entry(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of a value and the message about it."""
    place = [str(part) for part in entry["loc"]]
    # "body", and what the function calls the whole of it
    shown = place[2:] if place[0] == "body" else place[1:]
    return {"at": "/".join(shown), "message": str(entry["msg"])}


def _fields_of(error: ValidationError) -> Iterable[dict[str, str]]:
    if hasattr(error, "error_dict"):
        for name, messages in error.message_dict.items():
            at = "" if name == "__all__" else name
            yield from ({"at": at, "message": str(message)} for message in messages)
    else:
        yield from ({"at": "", "message": str(message)} for message in error.messages)
