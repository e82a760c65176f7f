"""The input for the tenant that a row is about: every tenant, no tenant, or one by its name.

A form never reads an empty input as "every tenant": that is chosen by name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Case, Model, QuerySet, Value, When
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

EVERY, NONE, ONE = "every", "none", "one"
"""What the select posts."""
CHOICES = ((ONE, _("one tenant:")), (NONE, _("no tenant")), (EVERY, _("every tenant")))


class Typed(str):
    """What the inputs show and post as one text: a choice, a colon, and a name."""

    __slots__ = ()


UNNAMED = Typed(f"{ONE}:")
"""What a form shows before anything is entered."""


def typed(tenant: str | None) -> Typed:
    """Return what the inputs show of a column."""
    choice = EVERY if tenant is None else ONE if tenant else NONE
    return Typed(f"{choice}:{tenant or ''}")


def has_every_tenant(model: type[Model]) -> bool:
    """Whether a row of a model may be about every tenant."""
    return any(field.name == "tenant" and field.null for field in model._meta.concrete_fields)


def with_choice(rows: QuerySet[Any]) -> Any:
    """Return the rows with `tenant_choice`: what the select would post."""
    choice = Case(
        When(tenant=None, then=Value(EVERY)), When(tenant="", then=Value(NONE)), default=Value(ONE)
    )
    return rows.annotate(tenant_choice=choice)


def tenant_text(tenant: str | None) -> str:
    """Return what a sentence calls the tenant of a row; None is every tenant."""
    return gettext("every tenant") if tenant is None else tenant or gettext("no tenant")


class TenantInput(forms.MultiWidget):
    """A select, and an input for the name, which is called as the column."""

    def __init__(self, choices: Collection[tuple[str, Any]]) -> None:
        name = forms.TextInput({"class": "vTextField", "aria-label": _("name of the tenant")})
        which = forms.Select({"aria-label": _("which tenants")}, choices)
        super().__init__({"choice": which, "": name})

    def decompress(self, value: Any) -> list[str]:
        choice, _colon, name = (value or UNNAMED).partition(":")
        return [choice, name]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Typed:  # type: ignore[override]
        choice, text = super().value_from_datadict(data, files, name)
        return Typed(f"{choice or ''}:{text or ''}")


class TenantField(forms.Field):
    """None for every tenant, "" for none, or the name of one."""

    hidden_widget = forms.HiddenInput

    def __init__(self, *, tenants: Collection[str] | None, max_length: int, **kwargs: Any) -> None:
        """`tenants`: those that the user may name; None: all, and every tenant."""
        offered = {ONE} if tenants is None or any(tenants) else set()
        offered |= {NONE} if tenants is None or "" in tenants else set()
        offered |= {EVERY} if tenants is None else set()
        widget = TenantInput([choice for choice in CHOICES if choice[0] in offered])
        super().__init__(required=False, widget=widget, **kwargs)
        self._name = forms.CharField(required=False, max_length=max_length, strip=False)

    def to_python(self, value: Any) -> str | None:
        """Return the tenant. A name alone is that of one tenant."""
        choice, _colon, text = (value or "").partition(":")
        name = str(self._name.clean(text))
        if choice in ("", ONE):
            if not name.strip():
                raise ValidationError(
                    gettext("Give the name of the tenant, or choose no tenant or every tenant.")
                )
            return name
        if name.strip():
            raise ValidationError(gettext("Remove the name, or choose one tenant."))
        if choice not in (NONE, EVERY):
            raise ValidationError(gettext("Choose one tenant, no tenant or every tenant."))
        return None if choice == EVERY else ""

    def prepare_value(self, value: Any) -> Typed:
        """Return what the inputs show of a column, or of what was typed."""
        return value if isinstance(value, Typed) else typed(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether another tenant is meant."""
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True
