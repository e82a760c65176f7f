"""Maintenance tasks: what was done last, and when."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Duty(models.Model):
    """One duty of the fleet's maintenance, written by the supervisor that performs it."""

    of_fleet = True

    name = models.CharField(_("name"), max_length=50, primary_key=True)
    worker = models.CharField(_("worker"), max_length=200)
    ran_at = models.DateTimeField(_("last run"))
    duration_seconds = models.FloatField(_("duration"))
    outcome = models.TextField(_("last result"), default="", blank=True)
    """Result of the last run that found something to do."""
    acted_at = models.DateTimeField(_("last change"), null=True)
    runs = models.BigIntegerField(_("runs"), default=0)
    error = models.TextField(_("error"), default="", blank=True)
    """Why the last run failed; empty when it did not."""

    class Meta:
        verbose_name = _("maintenance task")
        verbose_name_plural = _("maintenance tasks")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
