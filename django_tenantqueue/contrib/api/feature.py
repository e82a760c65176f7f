"""Connects the HTTP API to the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from django.db.models import Model
from django.utils import timezone

from ...batch_sizes import BATCH
from ...conf import main_database
from ...features import Duty, Feature
from .idempotency import prune_idempotency_keys
from .models import ApiToken, IdempotencyKey
from .settings import ApiSettings
from .tokens import revoke_tokens, tune_token

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand


class Api(Feature):
    """See features.py for when each method is called."""

    settings = ApiSettings

    def duties(self) -> Iterable[Duty]:
        yield Duty("prune_requests", prune_idempotency_keys, 60.0, BATCH)

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        from .management.subcommands.token import CreateToken

        return {"token create": CreateToken}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        return {ApiToken: {"tune": tune_token, "delete": revoke_tokens}}

    def audited(self) -> Mapping[str, type[Model]]:
        return {"api_token": ApiToken}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {IdempotencyKey: "tenant", ApiToken: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        tokens = ApiToken.objects.using(main_database())
        tokens.filter(tenant=tenant, revoked_at__isnull=True).update(revoked_at=timezone.now())
