"""The forms that tune a row: only what the operator changed is written, and never over others.

A form posts the values it showed beside those the operator wants. A column counts as changed when
these two differ, whatever the row holds by then; when the row has moved on in the same column,
that is a conflict, which the operator sees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.db.models import Field, Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..databases import are_several, database_of_tenant
from .formats import value_text
from .tenant_input import UNNAMED, TenantField, tenant_text, typed

if TYPE_CHECKING:
    _Form = forms.ModelForm[Model]
    _FormSet = forms.BaseModelFormSet[Model, "TuneForm"]
else:
    _Form, _FormSet = forms.ModelForm, forms.BaseModelFormSet


class SplitDateTime(AdminSplitDateTime):
    """Two inputs, each with its own name for screen readers, which Django gives from 6.0 on."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context(name, value, attrs)
        labels = (context["date_label"], context["time_label"])
        for widget, label in zip(context["widget"]["subwidgets"], labels, strict=True):
            widget["attrs"]["aria-label"] = label
        return context


def lock_rows(model: type[Model], ids: Iterable[int]) -> dict[int, Model]:
    """Return rows as they are now, locked until the end of the transaction, in order of id.

    No other session can tune them between comparison and save. A claim passes a locked queue
    over and looks again within milliseconds.
    """
    rows = model._default_manager.using(get_settings().database).select_for_update(no_key=True)
    return {row.pk: row for row in rows.filter(pk__in=list(ids)).order_by("pk")}


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    return cast("Field[Any, Any]", model._meta.get_field(name))


def column_label(model: type[Model], name: str) -> str:
    return str(_column(model, name).verbose_name)


def _gone(model: type[Model]) -> str:
    return gettext("This %s does not exist any more.") % model._meta.verbose_name


def hidden_tenant(tenant: str) -> ValidationError:
    """Return the error of a form that names a tenant which the user does not see."""
    return ValidationError(
        gettext("You are not allowed to see tenant “%s”.") % tenant, code="hidden"
    )


class ComparingForm(forms.BaseForm):
    """Notes what the operator has changed, and shows what others have changed meanwhile."""

    conflict: ClassVar[Any] = _(
        "You changed this from %(shown)s to %(wanted)s, but meanwhile another operator set it "
        "to %(now)s. Save again to make it %(wanted)s, or enter %(now)s to leave it."
    )
    changes: dict[str, tuple[Any, Any]]
    """What to write: name -> (from, to)."""

    def compare_with(self, stored: Mapping[str, Any]) -> None:
        """Note in `changes` what differs from the stored values; add errors for conflicts."""
        self.changes = {}
        for name, now in stored.items():
            if name not in self.changed_data or name not in self.cleaned_data:
                continue
            wanted = self.cleaned_data[name]
            if now == wanted:
                continue
            shown = self._shown(name, default=now)
            if shown == now:
                self.changes[name] = (now, wanted)
            else:
                self._refuse(name, shown, now, wanted)

    def change_texts(self) -> list[str]:
        """Return each change as words: slots 3 → 7."""
        return [
            f"{self.label_of(name)} {self._text_of(name, old)} → {self._text_of(name, new)}"
            for name, (old, new) in self.changes.items()
        ]

    def label_of(self, name: str) -> str:
        """Return what a column is called in a sentence."""
        return str(self.fields[name].label).lower()

    def _text_of(self, name: str, value: Any) -> str:
        is_tenant = isinstance(self.fields.get(name), TenantField)
        return tenant_text(value) if is_tenant else value_text(value)

    def _shown(self, name: str, default: Any) -> Any:
        """Return the value that the form showed; `default` if the request lacks it."""
        field = self.fields[name]
        raw = field.hidden_widget().value_from_datadict(
            self.data, self.files, self.add_initial_prefix(name)
        )
        try:
            return default if raw is None else field.to_python(raw)
        except ValidationError:
            return default

    def _refuse(self, name: str, shown: Any, now: Any, wanted: Any) -> None:
        message = self.conflict % {
            "shown": self._text_of(name, shown),
            "wanted": self._text_of(name, wanted),
            "now": self._text_of(name, now),
        }
        self.add_error(name, ValidationError(message, code="conflict"))
        # The next save is made knowing the value of now.
        data = self.data.copy()  # type: ignore[attr-defined]
        text = "" if now is None else str(now)
        is_tenant = isinstance(self.fields[name], TenantField)
        data[self.add_initial_prefix(name)] = typed(now) if is_tenant else text
        self.data = data


class TuneForm(ComparingForm, _Form):
    """The columns of a row that operators change. `compare()` must follow its validation.

    A subclass names its model, and the columns in `tunable`.
    """

    tunable: ClassVar[tuple[str, ...]] = ()
    anywhere: ClassVar[bool] = False
    """Whether the row may be in another database than the jobs of its tenant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.changes = {}
        if self.instance.pk is not None:
            for name in self.fields.keys() & set(self.tunable):
                self.fields[name].show_hidden_initial = True

    def _post_clean(self) -> None:
        """Leave the instance of an existing row as it was read: it is never saved.

        Its columns are checked one by one: that says all that the constraints say, without two
        queries for each row of the list. A row that the list does not have has no instance.
        """
        if self.instance._state.adding and "id" not in self.fields:
            super()._post_clean()  # type: ignore[misc]
            self._check_home()
            return
        for name in self.tunable:
            if name in self.cleaned_data:
                try:
                    _column(type(self.instance), name).run_validators(self.cleaned_data[name])
                except ValidationError as error:
                    self.add_error(name, error)
        if "tenant" in self.tunable and "tenant" in self.changed_data:
            self._check_home()

    def _check_home(self) -> None:
        """Reject a tenant whose jobs are in another database."""
        tenant = self.cleaned_data.get("tenant")
        if tenant is None or self.anywhere or not are_several():
            return
        home = database_of_tenant(tenant)
        if home != get_settings().database:
            text = gettext("The jobs of this tenant are in the database “%s”. Choose it first.")
            self.add_error("tenant", text % home)

    def compare(self, stored: Model) -> None:
        """Note what to write to the row as it is now."""
        self.compare_with({name: getattr(stored, name) for name in self.tunable})

    def label_of(self, name: str) -> str:
        return column_label(type(self.instance), name)


class SingleTuneForm(TuneForm):
    """The form of one row's page; its view runs in a transaction."""

    tenants: ClassVar[Collection[str] | None] = None
    """Tenants that the user may add rows of; None: all, and rows of every tenant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        column = _column(type(self.instance), "tenant") if "tenant" in self.fields else None
        if column is None or not column.null:
            return
        self.fields["tenant"] = TenantField(
            tenants=self.tenants,
            max_length=cast("int", column.max_length),
            label=self.fields["tenant"].label,
            help_text=column.help_text,
            show_hidden_initial=self.fields["tenant"].show_hidden_initial,
        )
        if self.instance._state.adding and "tenant" not in (kwargs.get("initial") or {}):
            self.initial["tenant"] = UNNAMED

    def clean_tenant(self) -> str | None:
        """Refuse what a user may not name who sees some tenants only."""
        tenant: str | None = self.cleaned_data["tenant"]
        if self.tenants is None or tenant in self.tenants:
            return tenant
        if tenant is None:
            raise ValidationError(gettext("You are not allowed to see all tenants."))
        raise hidden_tenant(tenant)

    @property
    def is_switch(self) -> bool:
        """Whether only `enabled` is changed: what has become wrong can be disabled."""
        return not self.instance._state.adding and set(self.changed_data) <= {"enabled"}

    def wanted_row(self) -> Model:
        """Return the row as it will be, to be checked: the instance stays as it was read."""
        model = type(self.instance)
        columns = {f.attname: getattr(self.instance, f.attname) for f in model._meta.fields}
        return model(**{**columns, **self.cleaned_data})

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.instance.pk is not None:
            stored = lock_rows(type(self.instance), [self.instance.pk]).get(self.instance.pk)
            if stored is None:
                raise ValidationError(_gone(type(self.instance)))
            self.compare(stored)
        return cleaned


class _RowIdField(forms.IntegerField):
    """The id of a row of the list; Django's own field reads every row once more."""

    widget = forms.HiddenInput

    def __init__(self, *, gone: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._gone = gone

    def clean(self, value: Any) -> int | None:
        number: int | None = super().clean(value)
        if number != self.initial:
            raise ValidationError(self._gone, code="gone")
        return number


class TuneFormSet(_FormSet):
    """The forms of a page of the list; its view runs in a transaction."""

    def add_fields(self, form: TuneForm, index: int | None) -> None:
        """Put the row's id into a form, and tell screen readers whose value each input is."""
        super().add_fields(form, index)
        assert self.model is not None
        form.fields["id"] = _RowIdField(gone=_gone(self.model), initial=form.instance.pk)
        for name in form.fields.keys() & set(form.tunable):
            label = {"column": form.fields[name].label, "row": form.instance}
            form.fields[name].widget.attrs["aria-label"] = gettext("%(column)s, %(row)s") % label

    def clean(self) -> None:
        """Compare the changed rows with what they are now, all locked by one statement."""
        super().clean()
        changed = [form for form in self.forms if form.instance.pk and form.has_changed()]
        assert self.model is not None
        stored = lock_rows(self.model, (form.instance.pk for form in changed)) if changed else {}
        for form in changed:
            if row := stored.get(form.instance.pk):
                form.compare(row)
