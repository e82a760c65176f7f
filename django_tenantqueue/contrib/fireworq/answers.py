"""Requests and answers: tokens, bodies, and errors in the form of Fireworq."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, NoReturn, ParamSpec

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from ...conf import database, settings_of, switch_database
from ...databases import database_of_tenant
from ...models import Change, TenantQueue
from ...operations.actor import acting_as
from ...text import clean_text, is_storable
from ..api.access import check_queue, seconds_to_wait
from ..api.exceptions import ApiError
from ..api.models import ApiToken
from ..api.tokens import allowed, authenticate
from .settings import FireworqSettings

P = ParamSpec("P")
PLAIN = {"content_type": "text/plain; charset=utf-8"}
LONGEST_CATEGORY = 255
"""Characters of a category, as in Fireworq."""
NETWORK = "the network"
"""Actor of changes without a token: see TENANT_WITHOUT_TOKEN."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Tenant and token of a request. `token`: None if none is needed."""

    using: str
    tenant: str
    token: ApiToken | None

    def check(self, scope: str) -> None:
        """Raise ApiError unless the token has a scope."""
        if self.token is not None and not allowed(self.token, scope, self.tenant):
            raise ApiError(
                HTTPStatus.FORBIDDEN, f"The token {self.token.name!r} has no scope {scope!r}"
            )

    def check_queue(self, name: str) -> None:
        """Raise ApiError unless the token allows a queue."""
        if self.token is not None:
            check_queue(self.token, name)

    def find_queue(self, name: str) -> TenantQueue:
        """Return a queue of the tenant that is not deleted (retired). Raises ApiError."""
        rows = TenantQueue.objects.using(self.using)
        rows = rows.filter(tenant=self.tenant, name=name, retired=False)
        found = rows.first() if is_storable(name) else None
        if found is None:
            raise ApiError(HTTPStatus.NOT_FOUND, f"No such queue: {name}")
        return found


View = Callable[Concatenate[HttpRequest, Caller, P], HttpResponse]


def answers(**scopes: str) -> Callable[[View[P]], Callable[..., HttpResponse]]:
    """Make a view of a function. `scopes`: the scope that each method needs.

    HEAD is answered as GET, another method with 405, a request without a valid token with 401.
    """

    def wrap(view: View[P]) -> Callable[..., HttpResponse]:
        @csrf_exempt  # a token is needed, and browsers are kept out: see _check_browser()
        @never_cache
        @wraps(view)
        def answer(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            with database(None):  # _caller() switches it
                return in_database(request, *args, **kwargs)

        def in_database(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            try:
                _check_browser(request)
                caller = _caller(request)
                method = "GET" if request.method == "HEAD" else str(request.method)
                if method not in scopes:
                    raise ApiError(
                        HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(scopes)}
                    )
                caller.check(scopes[method])
                name = NETWORK if caller.token is None else f"token {caller.token.name}"
                with acting_as(name, Change.Source.API):
                    return view(request, caller, *args, **kwargs)
            except ApiError as refused:
                return _refused(refused)

        return answer

    return wrap


def _refused(error: ApiError) -> HttpResponse:
    """Return the answer for an error: the status as text, and the detail."""
    status = HTTPStatus(error.status)
    content = f"{status.value} {status.phrase}"
    if error.detail:
        content += f"\n\n{clean_text(error.detail, 2000)}"
    return HttpResponse(f"{content}\n", status=status, headers=error.headers, **PLAIN)


def _check_browser(request: HttpRequest) -> None:
    """Reject cross-site requests of browsers, which have a trusted network or a stored password.

    Browsers send Sec-Fetch-Site only over HTTPS, and Origin with every POST.
    """
    site, origin = request.headers.get("Sec-Fetch-Site", "none"), request.headers.get("Origin")
    is_other = origin is not None and origin.partition("://")[2] != request.get_host()
    if is_other or site not in ("none", "same-origin"):
        raise ApiError(HTTPStatus.FORBIDDEN, "Cross-site requests are rejected")


def _caller(request: HttpRequest) -> Caller:
    trusted = settings_of(FireworqSettings).tenant_without_token
    tenant, secret = _credentials(request)
    if secret is None and trusted is not None:
        return Caller(_use_database_of(trusted), trusted, None)
    token = None if secret is None else authenticate(secret)
    if token is not None and token.tenant is None and is_storable(tenant or ""):
        named = tenant or ""
    elif token is not None and token.tenant is not None and tenant in (None, "", token.tenant):
        named = token.tenant
    else:
        raise ApiError(
            HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": 'Basic realm="fireworq"'}
        )
    if seconds := seconds_to_wait(token):
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, headers={"Retry-After": str(seconds)})
    return Caller(_use_database_of(named), named, token)


def _use_database_of(tenant: str) -> str:
    """Use the database of a tenant until the answer, and return its alias."""
    using = database_of_tenant(tenant)
    switch_database(using)
    return using


def _credentials(request: HttpRequest) -> tuple[str | None, str | None]:
    """Return the tenant and the token of a request, each None if missing."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return None, value.strip()
    if kind.lower() != "basic":
        return None, None
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
    except ValueError:
        return None, ""
    tenant, _, secret = text.rpartition(":")  # a token has no colon, but a tenant may have
    return tenant, secret


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer 404 for an unknown address."""
    return HttpResponse("404 page not found\n", status=HTTPStatus.NOT_FOUND, **PLAIN)


def as_json(content: Any) -> HttpResponse:
    """Return content as JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return HttpResponse(text, content_type="application/json")


# bodies


def bad_request(detail: str) -> ApiError:
    """Return the error for a parameter that is missing or wrong."""
    return ApiError(HTTPStatus.BAD_REQUEST, detail)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_body(request: HttpRequest, fields: Collection[str]) -> dict[str, Any]:
    """Return these fields of the JSON object in a body, without missing ones.

    As in Fireworq, names are case-insensitive, and null means missing.
    """
    try:
        content = json.loads(request.body.decode(), parse_constant=_no_constant)
    except (RequestDataTooBig, UnreadablePostError) as error:
        raise bad_request(f"The body cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:
        raise bad_request(f"The body is not JSON: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise bad_request("The body must be a JSON object")
    found = {name.lower(): value for name, value in content.items()}
    return {name: found[name] for name in fields if found.get(name) is not None}


def whole(body: Mapping[str, Any], name: str, most: int = 2**63 - 1) -> int:
    """Return a whole number of a body, 0 if missing."""
    value = body.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise bad_request(f"{name}: it must be a whole number from 0 to {most}")
    return value


def text(body: Mapping[str, Any], name: str) -> str:
    """Return a text of a body."""
    value = body.get(name, "")
    if not isinstance(value, str):
        raise bad_request(f"{name}: it must be a string")
    if not value:
        raise bad_request(f"Missing field: {name}")
    return value


def check_category(category: str) -> str:
    """Return a valid job category. Raises ApiError."""
    if len(category) > LONGEST_CATEGORY or not is_storable(category):
        raise bad_request(
            f"job_category: it must have at most {LONGEST_CATEGORY} characters, and no NUL"
        )
    return category
