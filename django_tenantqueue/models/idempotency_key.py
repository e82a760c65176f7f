"""Keys of requests that the HTTP API must not do twice."""

from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from .api_token import ApiToken


class IdempotencyKey(models.Model):
    """The answer to a request that came with `Idempotency-Key`, written with what it has done.

    `digest` is the SHA-256 hash of the request. `status` is NULL in the transaction of the request
    alone.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    tenant = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64)
    status = models.SmallIntegerField(null=True)
    answer = models.JSONField(null=True, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("token", "key"), name="tenantqueue_idempotencykey_unique"
            ),
        )
        indexes = (models.Index(fields=("created_at",), name="tenantqueue_idempotency_due"),)
