"""Values of tenant queues for clients of Fireworq."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models import shared_columns
from ...models.queue import TenantQueue

check_installed(__name__)


class FireworqQueue(models.Model):
    """Values of a queue for clients of Fireworq.

    A table of its own, since each push writes here and operators save the queue's row. A row is
    created by the first push or definition.
    """

    queue = shared_columns.key_of(TenantQueue, _("queue"))
    polling_interval = models.IntegerField(_("polling interval"), null=True)
    """Milliseconds, as a client has set it. It has no effect."""
    pushes = models.BigIntegerField(_("pushes"), default=0)
    minute = models.DateTimeField(_("minute of the last push"), null=True)
    pushes_in_minute = models.IntegerField(_("pushes in that minute"), default=0)
    pushes_before = models.IntegerField(_("pushes in the minute before that"), default=0)

    class Meta:
        db_table = "tenantqueue_fireworqqueue"
        verbose_name = _("queue of Fireworq clients")
        verbose_name_plural = _("queues of Fireworq clients")
