"""Columns that several models have."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..calls.options import check_moment
from ..exceptions import InvalidOption


def num_slots(help_text: Any, **options: Any) -> models.IntegerField[Any, int | None]:
    """Return the column of how many jobs may run at once."""
    return models.IntegerField(
        _("slots"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1_000_000)],
        help_text=help_text,
        **options,
    )


def max_per_second(help_text: Any) -> models.FloatField[Any, float | None]:
    """Return the column of how many jobs may start in a second."""
    return models.FloatField(
        _("starts per second"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0001), MaxValueValidator(1_000_000)],
        help_text=help_text,
    )


def burst() -> models.IntegerField[Any, int | None]:
    """Return the column of how many jobs may start at once where `max_per_second` limits them."""
    return models.IntegerField(
        _("burst"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text=_("How many may start at once after a pause. Empty: those of one second."),
    )


def burst_size(max_per_second: float | None, burst: int | None) -> int | None:
    """Return how many jobs may start at once; None without `max_per_second`. See burst.sql."""
    if max_per_second is None:
        return None
    return burst or max(1, math.ceil(max_per_second))


def time_zone() -> models.CharField[Any, str]:
    """Return the column of the zone in which a row gives its times."""
    return models.CharField(
        _("time zone"),
        max_length=100,
        blank=True,
        default="",
        help_text=_("An IANA name such as “Europe/Berlin”. Empty: that of the project."),
    )


def tenant_scope(default: str | None, help_text: Any = "") -> models.CharField[Any, str | None]:
    """Return the column of the tenant that a row is about: "" is none, NULL is every one."""
    return models.CharField(
        _("tenant"), max_length=200, null=True, blank=True, default=default, help_text=help_text
    )


def scope_label(tenant: str | None) -> str:
    """Return the tenant of such a row for its name: “*” is every tenant, “–” is none."""
    return "*" if tenant is None else tenant or "–"


def key_of(model: type[models.Model], label: Any) -> models.OneToOneField[Any, Any]:
    """Return the primary key of a row that stands apart from its row of `model`.

    Without a constraint in the database, whose check would lock that row.
    """
    return models.OneToOneField(
        model,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="+",
        verbose_name=label,
    )


def check_column_moment(row: models.Model, name: str) -> None:
    """Check that every time zone can show the time in a column. Raises ValidationError."""
    if isinstance(value := getattr(row, name), datetime):
        try:
            check_moment(name, value)
        except InvalidOption as error:
            raise ValidationError({name: str(error)}) from None
