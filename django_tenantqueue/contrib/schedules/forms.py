"""Forms of schedules."""

from __future__ import annotations

import json
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...admin.formats import json_text
from ...admin.job_again import UNREADABLE
from ...admin.live_forms import SingleTuneForm
from ...calls.arguments import check_entered, check_storable, decode_args
from ...calls.sources import describe_named
from ...exceptions import TenantQueueError, UnknownTask
from ...status.masking import MASK, Mask, mask_of
from .models import Schedule

CALL = ("args", "kwargs")


def masked_call(row: Schedule) -> dict[str, Any]:
    """Return the arguments of a schedule with secret values masked.

    All are masked if the task is not known here, since the row does not say which are secret.
    """
    call = {"args": row.args, "kwargs": row.kwargs}
    try:
        source, _task = describe_named(row.task)
        mask = mask_of(source.source_type, "", source.source_method, call)
    except TenantQueueError:
        mask = Mask(True, frozenset(), ())
    hidden = mask.call(call)
    return hidden if isinstance(hidden, dict) else dict.fromkeys(CALL, MASK)


class CallField(forms.JSONField):
    """A list or an object as indented JSON."""

    def to_python(self, value: Any) -> Any:
        """Return the value of a text."""
        try:
            found = super().to_python(value)
            check_storable(found, gettext("the value"))
        except RecursionError:
            raise ValidationError(gettext("It is nested too deeply.")) from None
        except ValueError as error:  # also of an int with more digits than Python reads
            raise ValidationError(str(error)) from None
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the text as it was typed."""
        return data

    def prepare_value(self, value: Any) -> str:
        """Return the text that the input shows."""
        return value if isinstance(value, str) else json_text(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare the values, not their texts."""
        try:
            return bool(self.to_python(initial) != self.to_python(data))
        except ValidationError:
            return True


def _json_input() -> forms.Textarea:
    return forms.Textarea({"rows": 4, "cols": 80, "spellcheck": "false", "class": "tq-json"})


class ScheduleForm(SingleTuneForm):
    args = CallField(
        label=_("Positional arguments"),
        required=False,
        widget=_json_input(),
        help_text=_("A list, as in [1, “two”]."),
    )
    kwargs = CallField(
        label=_("Keyword arguments"),
        required=False,
        widget=_json_input(),
        help_text=_(
            'An object. {"__tenantqueue__": "scheduled_at"} is replaced by the time of the tick. '
            "“tenant”, “job_id” and “attempt” work the same way."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shown_call = masked_call(cast("Schedule", self.instance))
        for name in CALL:
            if name in self.fields:
                self.initial[name] = self._shown_call[name]

    def clean_args(self) -> Any:
        """Return a list, its hidden values put back."""
        return self._whole("args", list, gettext("Give a list."))

    def clean_kwargs(self) -> Any:
        """Return an object, its hidden values put back."""
        return self._whole("kwargs", dict, gettext("Give an object."))

    def _whole(self, name: str, kind: type, text: str) -> Any:
        value = self.cleaned_data[name]
        if value in (None, ""):
            value = kind()
        if not isinstance(value, kind):
            raise ValidationError(text)
        stored = getattr(self.instance, name)
        if value == self._shown_call[name]:
            return stored
        if f'"{MASK}"' in json.dumps(value, ensure_ascii=False):
            raise ValidationError(
                gettext("“%s” hides a value. Enter all values to change one.") % MASK
            )
        return value

    def clean(self) -> dict[str, Any] | None:
        """Check that the columns fit together, and that the task accepts the arguments."""
        cleaned = super().clean()
        if self.errors or self.is_switch:
            return cleaned
        row = cast("Schedule", self.wanted_row())
        row.clean()
        if "task" in self.changes:
            self._check_hidden()
        stored = [getattr(self.instance, name) for name in CALL]
        try:
            check_entered(row.args, row.kwargs, stored)
            source, _task = describe_named(row.task)
            text = json.dumps({"args": row.args, "kwargs": row.kwargs})
            args, kwargs = decode_args(text)
            source.check_call(tuple(args), kwargs)
        except UnknownTask:
            pass  # another process may know it: save_model() warns
        except UNREADABLE as error:
            self.add_error("task", ValidationError(str(error)))
        return cleaned

    def _check_hidden(self) -> None:
        """Reject hidden arguments for another task, which may show them."""
        for name in CALL:
            if name not in self.changes and self._shown_call[name] != getattr(self.instance, name):
                text = gettext("Some arguments are hidden. Enter them again for another task.")
                self.add_error(name, ValidationError(text, code="hidden"))

    def _shown(self, name: str, default: Any) -> Any:
        """Return what the form showed. Arguments are returned without masks."""
        shown = super()._shown(name, default)
        if name in CALL and shown == self._shown_call[name]:
            return getattr(self.instance, name)
        return shown

    def _refuse(self, name: str, shown: Any, now: Any, wanted: Any) -> None:
        if name in CALL:
            row = Schedule(task=cast("Schedule", self.instance).task, **{name: now})
            shown, now = json_text(shown), json_text(masked_call(row)[name])
        super()._refuse(name, shown, now, wanted)
