"""What API adds to the core."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Model
from django.utils import timezone

from ...features import Feature
from ...models import ApiToken, Change, IdempotencyKey


class Api(Feature):
    """See features.py for when each method is called."""

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the model of tokens."""
        return {Change.Kind.API_TOKEN: ApiToken}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the tables of idempotency keys and tokens."""
        return {IdempotencyKey: "tenant", ApiToken: "tenant"}

    def close_tenant(self, using: str, tenant: str) -> None:
        """Revoke the tokens of a tenant."""
        tokens = ApiToken.objects.using(using).filter(tenant=tenant, revoked_at__isnull=True)
        tokens.update(revoked_at=timezone.now())
