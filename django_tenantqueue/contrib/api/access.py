"""Who asks: the token of a request, what it allows, and the tenant that the request is about."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from ...calls.options import check_tenant
from ...exceptions import RequestRefused
from ...models import Change
from ...operations.actor import acting_as
from .bearer import check_priority, check_queue_of_job, seconds_to_wait, token_of
from .models import ApiToken
from .tokens import allowed

READ, SUBMIT, TUNE = ApiToken.Scope.READ, ApiToken.Scope.SUBMIT, ApiToken.Scope.TUNE


@dataclass(frozen=True, slots=True)
class Caller:
    """The token of a request, and the tenant that the request is about."""

    token: ApiToken
    tenant: str

    @property
    def name(self) -> str:
        """What jobs and changes call it."""
        return f"token {self.token.name}"

    def acting(self) -> AbstractContextManager[None]:
        """Name the token in the list of changes, for what is changed inside."""
        return acting_as(self.name, Change.Source.API)

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise RequestRefused or UnknownQueue for a queue or priority that it may not give."""
        if given.get("queue"):
            check_queue_of_job(self.token, self.tenant, given["queue"])
        if given.get("priority") is not None:
            check_priority(self.token, given["priority"])

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope, too."""
        return allowed(self.token, scope, self.tenant)


def no_token() -> RequestRefused:
    """Return the error for a request without a valid token."""
    return RequestRefused(
        401,
        "Send a valid token: Authorization: Bearer tq_…",
        {"WWW-Authenticate": 'Bearer realm="tenantqueue"'},
    )


class Needs:
    """Lets a request through whose token has a scope for the tenant. Ninja calls it."""

    def __init__(self, scope: ApiToken.Scope) -> None:
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        """Return the caller. Raises RequestRefused: 401, 429, 403."""
        token = token_of(request)
        if token is None:
            raise no_token()
        if seconds := seconds_to_wait(token):
            raise RequestRefused(
                429,
                f"The token has made too many requests: wait for {seconds} s.",
                {"Retry-After": str(seconds)},
            )
        caller = Caller(token, _tenant_of(request, token))
        if not caller.may(self.scope):
            raise RequestRefused(403, f"The token does not have the scope {self.scope.value!r}.")
        return caller


class AsyncNeeds(Needs):
    """See Needs, for operations that are coroutines."""

    async def __call__(self, request: HttpRequest) -> Caller:  # type: ignore[override]
        """See Needs."""
        return await sync_to_async(super().__call__)(request)


def _tenant_of(request: HttpRequest, token: ApiToken) -> str:
    asked = request.GET.get("tenant")
    if not token.all_tenants:
        if asked is not None and asked != token.tenant:
            raise RequestRefused(403, f"The token is not for tenant {asked!r}.")
        return token.tenant
    if asked is None:
        raise RequestRefused(
            422, "The token is for all tenants: say which one, with the parameter tenant."
        )
    return check_tenant("tenant", asked)


def caller_of(request: HttpRequest) -> Caller:
    """Return who makes a request that Needs has let through."""
    found: Any = request.auth  # type: ignore[attr-defined]
    assert isinstance(found, Caller)
    return found
