"""Performs a request once, even if it is sent several times with the same key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from ...batch_sizes import BATCH
from ...queries.base import fetch
from .exceptions import IdempotencyKeyReused
from .models import ApiToken, IdempotencyKey

KEEP_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    body: Any


def do_once(
    using: str,
    token: ApiToken,
    tenant: str,
    key: str,
    digest: str,
    act: Callable[[], Answer],
) -> Answer:
    """Return the answer to the first request with this key of this token. Calls `act` if it is new.

    The key, the answer and the writes of `act` are one transaction, which is rolled back if `act`
    raises. A concurrent request with the key waits for it. `digest` identifies the request. Raises
    IdempotencyKeyReused if the first request had another.
    """
    rows = IdempotencyKey.objects.using(using)
    params = {
        "token_id": token.pk,
        "key": key,
        "tenant": tenant,
        "digest": digest,
        "keep_seconds": KEEP_SECONDS,
    }
    while True:
        with transaction.atomic(using=using):
            taken = fetch(using, "take_idempotency_key", params)
            if taken:
                answer = act()
                rows.filter(pk=taken[0][0]).update(status=answer.status, answer=answer.body)
                return answer
            first = rows.filter(token=token, key=key).first()
        if first is None:  # pruned between the two statements
            continue
        if first.digest != digest:
            raise IdempotencyKeyReused(
                f"Idempotency-Key {key!r} was used for another request: give each request a key of "
                "its own"
            )
        assert first.status is not None, "it was committed with its answer"
        return Answer(first.status, first.answer)


def is_used(using: str, token: ApiToken, key: str) -> bool:
    """Return whether the answer to a request with this key of this token is kept."""
    kept = IdempotencyKey.objects.using(using).filter(created_at__gte=_kept_from())
    return kept.filter(token=token, key=key).exists()


def prune_idempotency_keys(using: str) -> int:
    """Delete up to BATCH expired keys; return how many.

    Locks the rows, and skips those that a request has locked.
    """
    keys = IdempotencyKey.objects.using(using)
    old = keys.filter(created_at__lt=_kept_from()).order_by("created_at")
    with transaction.atomic(using=using):
        locked = old.select_for_update(skip_locked=True).values_list("pk", flat=True)
        return keys.filter(pk__in=list(locked[:BATCH])).delete()[0]


def _kept_from() -> CombinedExpression:
    return Now() - timedelta(seconds=KEEP_SECONDS)
