"""What only clients of Fireworq ask of a tenant queue."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models import shared_columns
from ...models.queue import TenantQueue

check_installed(__name__)


class FireworqQueue(models.Model):
    """What the Fireworq API keeps of a queue besides its own columns.

    Apart from the queue's row, which operators save: each push writes here. There is no row before
    the first push or definition.
    """

    queue = shared_columns.key_of(TenantQueue, _("queue"))
    polling_interval = models.IntegerField(_("polling interval"), null=True)
    """Milliseconds, as a client has put it. Nothing acts on it."""
    pushes = models.BigIntegerField(_("pushes"), default=0)
    minute = models.DateTimeField(_("minute of the last push"), null=True)
    pushes_in_minute = models.IntegerField(_("pushes in that minute"), default=0)
    pushes_before = models.IntegerField(_("pushes in the minute before that"), default=0)

    class Meta:
        db_table = "tenantqueue_fireworqqueue"
        verbose_name = _("queue of Fireworq clients")
        verbose_name_plural = _("queues of Fireworq clients")
