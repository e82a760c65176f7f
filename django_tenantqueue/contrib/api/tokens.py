"""Tokens of the HTTP API: created, revoked, and recognised."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from ...batch_sizes import REMEMBERED, REMEMBERED_SECONDS, STAMP_SECONDS
from ...conf import main_database
from ...operations.actor import current_actor
from ...operations.tuning import (
    Ids,
    add_row,
    check_columns,
    ids_of,
    lock_rows,
    switch_rows,
    tune_rows,
)
from ...queries.base import execute
from .models import HIGHEST_NUMBER, LOWEST_NUMBER, ApiToken

PREFIX = "tq_"
"""Prefix of each token, so that people and secret scanners recognise one."""
SHOWN = 11
"""First characters of a token, stored to find its row."""
TUNABLE = ("queues", "min_priority", "max_priority", "requests_per_minute", "expires_at")
"""Columns of a token that operators change."""
SETTABLE = ("name", "tenant", "scopes", *TUNABLE)
"""Columns of a new token."""

_known: dict[tuple[str, str], tuple[ApiToken, float]] = {}


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def make_token(
    name: str,
    *,
    tenant: str | None = "",
    scopes: Iterable[str] = (ApiToken.Scope.READ, ApiToken.Scope.SUBMIT),
    expires_at: datetime | None = None,
    requests_per_minute: int | None = None,
    queues: Iterable[str] = (),
    priorities: tuple[int, int] = (LOWEST_NUMBER, HIGHEST_NUMBER),
    using: str | None = None,
) -> tuple[ApiToken, str]:
    """Create a token; return its row and the token itself, which cannot be read again.

    `tenant`: "" is for jobs without a tenant; None is every tenant, and each request names one.
    `scopes`: any of ApiToken.Scope. `queues`: patterns of allowed queues; none: those that exist or
    are declared. `priorities`: the lowest and the highest allowed number. Raises Django's
    ValidationError, also when the tenant has a valid token of this name, or `expires_at` is past.
    """
    row = ApiToken(
        name=name,
        tenant=tenant,
        scopes=ordered_scopes(scopes),
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        queues=", ".join(queues),
        min_priority=priorities[0],
        max_priority=priorities[1],
    )
    return row, add_token(row, using=using)


def ordered_scopes(scopes: Iterable[str]) -> str:
    """Return scopes as a row has them: in the order of Scope, unknown ones last."""
    given = dict.fromkeys(str(scope) for scope in scopes)
    known = [scope for scope in ApiToken.Scope.values if scope in given]
    return " ".join([*known, *(scope for scope in given if scope not in known)])


def check_new(row: ApiToken, *, using: str | None = None) -> None:
    """Raise ValidationError if the tenant has a valid token of this name."""
    rows = ApiToken.objects.using(using or main_database())
    if rows.filter(tenant=row.tenant, name=row.name, revoked_at=None).exists():
        raise row.unique_error_message(ApiToken, ("tenant", "name"))


def add_token(row: ApiToken, *, using: str | None = None) -> str:
    """Check a new row, write it, and return its token. Raises Django's ValidationError."""
    alias = using or main_database()
    secret = PREFIX + secrets.token_urlsafe(32)
    row.digest, row.start = _digest(secret), secret[:SHOWN]
    row.created_by = current_actor().name
    row._state.db = alias
    row.full_clean(exclude=("id", "created_at"), validate_constraints=False)
    check_new(row, using=alias)
    add_row(alias, row, (*SETTABLE, "start"), anywhere=True)
    return secret


def tune_token(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of tokens that are TUNABLE; return the ids of the changed ones.

    Takes effect within a second. Raises InvalidOption for an unknown column, Django's
    ValidationError for a wrong value, and ApiToken.DoesNotExist.
    """
    alias = using or main_database()
    check_columns(changes, TUNABLE)
    with transaction.atomic(using=alias):
        for wanted in lock_rows(alias, ApiToken, ids):
            for name, value in changes.items():
                setattr(wanted, name, value)
            wanted.clean_fields()
            wanted.clean()
        tuned = tune_rows(alias, ApiToken, ids, changes, TUNABLE)
    _known.clear()
    return tuned.changed


def revoke_tokens(ids: Ids, *, using: str | None = None) -> list[int]:
    """Revoke tokens for good; return the ids of those that were not revoked before.

    This process rejects them at once, others within a second of the commit.
    """
    tokens = ApiToken.objects.filter(pk__in=ids_of(ids, ApiToken), revoked_at=None)
    found = switch_rows(using or main_database(), tokens, {"revoked_at": timezone.now()})
    _known.clear()
    return [row.pk for row in found]


def authenticate(secret: str, *, using: str | None = None) -> ApiToken | None:
    """Return the row of a valid token, else None. Records its use.

    A process remembers a token for a second. The last use is written at most once a minute, in the
    caller's transaction, and without waiting for a lock.
    """
    if not secret.startswith(PREFIX):
        return None
    alias = using or main_database()
    key, now = (alias, _digest(secret)), time.monotonic()
    found = _known.get(key)
    if found is None or found[1] < now:
        token = ApiToken.objects.using(alias).filter(digest=key[1]).first()
        if token is None:
            return None
        if len(_known) >= REMEMBERED:
            _known.clear()
        _known[key] = (token, now + REMEMBERED_SECONDS)
    else:
        token = found[0]
    moment = timezone.now()
    if not token.is_valid(moment):
        return None
    used = token.last_used_at
    if used is None or (moment - used).total_seconds() > STAMP_SECONDS:
        execute(alias, "touch_token", {"id": token.pk, "every_seconds": STAMP_SECONDS})
        token.last_used_at = moment
    return token


def allowed(token: ApiToken, scope: str, tenant: str) -> bool:
    """Return whether a valid token has a scope for a tenant."""
    return scope in token.scope_names and token.tenant in (None, tenant)
