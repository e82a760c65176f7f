"""What the claim remembers of queues with a limit per second."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .queue import TenantQueue


class QueueRate(models.Model):
    """How much of a queue's burst was used up, written by each claim that takes jobs of it.

    Apart from the queue's own row, which operators save. Read and written under the claim's lock of
    that row only, by claim_jobs.sql; there is no row before the first such claim.

    A number of jobs and its time, not the time at which all is made up for (the one timestamp of
    GCRA): that holds for one rate only, and would hold the queue back after its rate was raised.
    """

    queue = models.OneToOneField(
        TenantQueue,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="+",
        verbose_name=_("queue"),
    )
    debt = models.FloatField(_("debt"))
    """Starts that `max_per_second` had not made up for at `as_of`, also above a lowered burst."""
    as_of = models.DateTimeField(_("as of"))

    class Meta:
        verbose_name = _("queue rate")
        verbose_name_plural = _("queue rates")

    def __str__(self) -> str:
        return f"{self.pk}: {self.debt:g}"
