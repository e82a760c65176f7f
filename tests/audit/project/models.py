"""What the bodies of tasks write."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """That a job's body has run, and what it found there."""

    job_id = models.BigIntegerField()
    found = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.job_id} {self.found}"
