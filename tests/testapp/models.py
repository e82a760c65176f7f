"""Models of the test app: what task bodies write, and objects to delay."""

from __future__ import annotations

from django.db import models

from django_tenantqueue import Delayable


class Interval(models.Model):
    """When one run of a task body began and ended, by the database's clock, written by itself."""

    job_id = models.BigIntegerField()
    key = models.TextField()
    attempt = models.IntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.key} {self.job_id}"


class Effect(models.Model):
    """Something that a task did to the database."""

    job_id = models.BigIntegerField()
    note = models.TextField(default="")

    def __str__(self) -> str:
        return f"{self.job_id} {self.note}"


class Report(Delayable, models.Model):
    """A model whose methods can be delayed."""

    title = models.CharField(max_length=100)
    rows = models.IntegerField(default=0)

    def __str__(self) -> str:
        return self.title

    def execute(self, kind: str = "html") -> str:
        """Return a description of the made report."""
        self.rows += 1
        self.save(update_fields=["rows"])
        return f"{self.title} as {kind}"

    @classmethod
    def count(cls) -> int:
        """Return how many reports there are."""
        return cls.objects.count()

    def _secret(self) -> str:
        return "not to be run"


class Plain(models.Model):
    """A model without the mixin: its methods may not be run by name."""

    title = models.CharField(max_length=100)

    def __str__(self) -> str:
        return self.title

    def execute(self) -> str:
        """Return the title."""
        return self.title
