"""What the OpenAPI document says of each operation besides its own parameters and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ninja import NinjaAPI

from .access import Needs
from .models import IdempotencyKey
from .problems import MEDIA_TYPE
from .schemas import Problem

F = TypeVar("F", bound=Callable[..., Any])

TENANT: dict[str, Any] = {
    "in": "query",
    "name": "tenant",
    "required": False,
    "description": "The tenant that the request is about. A token of every tenant needs it.",
    "schema": {"type": "string", "maxLength": 200},
}
LONGEST_KEY = IdempotencyKey._meta.get_field("key").max_length or 0
KEY: dict[str, Any] = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "description": (
        "A text of your choice. Another request with it gets the first one's answer for 24 hours, "
        "and does nothing."
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
    401: "There is no valid token",
    403: "The token does not allow it",
    404: "There is no such row of the tenant",
    409: "The state of the job or of the queue does not allow it",
    413: "The body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE",
    422: "A value is wrong",
    429: "The token has made too many requests, too many new queues, or too many requests that "
    "wait; Retry-After says how many seconds to wait",
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
    """Adds to the document what all operations share."""

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
