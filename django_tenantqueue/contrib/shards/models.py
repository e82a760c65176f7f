"""The number of a database, and the tenants that are not where their hash puts them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ...features import check_installed

check_installed(__name__)


class Shard(models.Model):
    """The number of this database: one row, written by `tenantqueue shards setup`.

    `version` is raised by each change of the pins.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    number = models.SmallIntegerField(_("number"))
    version = models.BigIntegerField(default=0)
    has_moves = models.BooleanField(default=False, db_default=False)
    """A tenant was moved at some time: an id is looked for in all databases."""
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    objects: ClassVar[models.Manager[Shard]] = models.Manager()

    class Meta:
        db_table = "tenantqueue_shard"
        verbose_name = _("shard")
        verbose_name_plural = _("shards")
        default_permissions = ()
        constraints = (models.CheckConstraint(condition=Q(id=1), name="tenantqueue_shard_one"),)

    def __str__(self) -> str:
        return str(self.number)


class ShardPin(models.Model):
    """A tenant whose shard is not the one of its hash. Each database has a copy of all pins."""

    tenant = models.CharField(_("tenant"), max_length=200, primary_key=True)
    shard = models.SmallIntegerField(_("shard"))
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    objects: ClassVar[models.Manager[ShardPin]] = models.Manager()

    class Meta:
        db_table = "tenantqueue_shardpin"
        verbose_name = _("pinned tenant")
        verbose_name_plural = _("pinned tenants")
        default_permissions = ()
        constraints = (
            models.CheckConstraint(condition=~Q(tenant=""), name="tenantqueue_shardpin_tenant"),
        )

    def __str__(self) -> str:
        return f"{self.tenant} → {self.shard}"


class ShardMove(models.Model):
    """The move of a tenant, in the databases that it concerns. See moving.py for its steps.

    The database that the tenant leaves has the row until the move is switched. The other one has it
    from the switch until all rows have followed.
    """

    tenant = models.CharField(_("tenant"), max_length=200, primary_key=True)
    source = models.SmallIntegerField(_("source database"))
    target = models.SmallIntegerField(_("target database"))
    closed = models.BooleanField(default=False, db_default=False)
    """No job of the tenant can be enqueued in this database now."""
    queues = models.JSONField(default=dict)
    """What the queues are reset to, by their ids in the database that the tenant leaves."""
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    objects: ClassVar[models.Manager[ShardMove]] = models.Manager()

    class Meta:
        db_table = "tenantqueue_shardmove"
        verbose_name = _("move of a tenant")
        verbose_name_plural = _("moves of tenants")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.tenant}: {self.source} → {self.target}"
