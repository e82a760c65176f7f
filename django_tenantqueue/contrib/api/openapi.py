"""Parts of the OpenAPI document that operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ninja import NinjaAPI

from .access import Needs
from .error_responses import MEDIA_TYPE
from .models import IdempotencyKey
from .schemas import Problem

F = TypeVar("F", bound=Callable[..., Any])

TENANT: dict[str, Any] = {
    "in": "query",
    "name": "tenant",
    "required": False,
    "description": "Tenant of the request. Required with a token for every tenant.",
    "schema": {"type": "string", "maxLength": 200},
}
LONGEST_KEY = IdempotencyKey._meta.get_field("key").max_length or 0
KEY: dict[str, Any] = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "description": (
        "A text of your choice. For 24 hours, a repeated request with this key gets the first "
        "answer and has no other effect."
    ),
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_KEY,
        "pattern": '^"?[!#-~]+"?$',
    },
}
MEANINGS = {
    400: "The body is not JSON",
    401: "The token is missing or not valid",
    403: "The token does not allow it",
    404: "The tenant has no such object",
    409: "The state of the job or of the queue does not allow it",
    413: "The body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE",
    422: "A value is not valid",
    429: "Too many requests, waiting requests or new queues; Retry-After: seconds to wait",
}
SCHEME = "token"
EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["progress", "end"]},
        "data": {"type": "string", "description": "A job as JSON"},
    },
}
STREAMS = ("follow_job",)
"""Operations that answer with server-sent events."""


def operation(
    method: Callable[..., Any],
    path: str,
    auth: Needs,
    response: dict[int, Any],
    *,
    problems: Sequence[int] = (),
    parameters: Sequence[dict[str, Any]] = (),
) -> Callable[[F], F]:
    """Return a decorator that adds an operation, with its scope and its problems."""
    statuses = {401, 403, 422, 429, *problems}
    if "{" in path:
        statuses.add(404)

    def add(view: F) -> F:
        extra = {
            "parameters": [*parameters, TENANT],
            "x-scope": auth.scope.value,
            "security": [{SCHEME: []}],
            "responses": {status: _described(status) for status in sorted(statuses)},
        }
        summary, _, text = (view.__doc__ or "").partition("\n")
        text = " ".join(text.split())
        method(
            path,
            auth=auth,
            response=response,
            operation_id=view.__name__,
            url_name=view.__name__,
            summary=summary.rstrip("."),
            description=f"{text} Scope: `{auth.scope.value}`.".strip(),
            openapi_extra=extra,
        )(view)
        return view

    return add


def _described(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": MEANINGS[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == 429:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answer


class DocumentedAPI(NinjaAPI):
    """Adds the shared parts to the document."""

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        """Return the OpenAPI document."""
        document = super().get_openapi_schema(**kwargs)
        parts = document["components"]
        parts["securitySchemes"] = {SCHEME: {"type": "http", "scheme": "bearer"}}
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for name, part in problem.pop("$defs", {}).items():
            parts["schemas"][name] = part
        parts["schemas"]["Problem"] = problem
        for operations in document["paths"].values():
            for each in operations.values():
                if each["operationId"] in STREAMS:
                    content = each["responses"][200]["content"]
                    content.clear()
                    content["text/event-stream"] = {"schema": EVENT}
                if "requestBody" in each:
                    for status in (400, 413):
                        each["responses"][status] = _described(status)
        return document
