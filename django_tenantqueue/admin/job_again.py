"""The page that enqueues a job again, with other arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.connection import ConnectionDoesNotExist
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..calls.arguments import MARK, check_entered, decode_args, marked_values
from ..calls.sources import INTERNAL, NOTHING, Source
from ..exceptions import TenantQueueError
from ..models import Job, TenantQueue
from ..status.display_limits import TEXT
from ..status.masking import MASK, mask_of_job, split
from .formats import json_text
from .job_forms import PriorityForm, RunAtField, open_queue

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    ConnectionDoesNotExist,
    LookupError,
    TenantQueueError,
    TypeError,
    ValueError,
)
"""What reading an argument of a wrong form raises, a row of an unknown database included."""


def can_be_repeated(job: Job) -> bool:
    """Whether a job runs something that can be called again."""
    runs_own = job.source_type in (NOTHING.source_type, INTERNAL)
    return not runs_own and None not in split(job.args)


class _Json(forms.CharField):
    """A list or an object as JSON text."""

    widget = forms.Textarea

    def __init__(self, kind: type, **options: Any) -> None:
        attrs = {"rows": 6, "cols": 80, "spellcheck": "false", "class": "tq-json"}
        super().__init__(required=False, widget=forms.Textarea(attrs=attrs), **options)
        self.kind = kind

    def clean(self, value: Any) -> Any:
        text = str(super().clean(value)).strip()
        if not text:
            return self.kind()
        try:
            found = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise _too_deep() from error
        except ValueError as error:
            raise ValidationError(gettext("This is not JSON: %s") % error, code="json") from error
        if not isinstance(found, self.kind):
            text = (
                gettext('Give a list: [1, "two"].')
                if self.kind is list
                else gettext('Give an object: {"name": "value"}.')
            )
            raise ValidationError(text, code="kind")
        return found


def _too_deep() -> ValidationError:
    return ValidationError(gettext("It is nested too deeply."), code="depth")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(gettext("%s is not a JSON number") % name)


class AgainForm(PriorityForm):
    """Arguments, queue, priority and time of the new job.

    `call`: positional and keyword arguments, with model instances loaded, once the form is valid.
    """

    args = _Json(list, label=_("Positional arguments"), strip=False)
    kwargs = _Json(dict, label=_("Keyword arguments"), strip=False)
    queue = forms.CharField(
        label=_("Queue"),
        max_length=100,
        strip=False,
        help_text=_("A queue of the job's tenant."),
    )
    run_at = RunAtField(
        label=_("Run at"),
        required=False,
        help_text=_("Starts at this time at the earliest. Empty: now."),
    )
    field_order = ("args", "kwargs", "queue", "priority", "run_at")

    def __init__(self, job: Job, queue: TenantQueue, source: Source, data: Any = None) -> None:
        self._job, self._queue, self._source = job, queue, source
        self._stored = split(job.args)
        self.call: tuple[list[Any], dict[str, Any]] = ([], {})
        mask = mask_of_job(job)
        self._shown = split(mask.call(job.args))
        args, kwargs = (json_text(part) for part in self._shown)
        later = job.run_at.replace(microsecond=0) if job.run_at > timezone.now() else None
        initial = {
            "args": args,
            "kwargs": kwargs,
            "queue": queue.name,
            "priority": job.priority,
            "run_at": later,
        }
        super().__init__(data, initial=initial)
        self.has_masks = any(f'"{MASK}"' in text for text in (args, kwargs))
        self.is_too_long = len(args) + len(kwargs) > TEXT * 20
        if self.is_too_long:
            del self.fields["args"], self.fields["kwargs"]
        elif mask.names:
            told = gettext("In order: %s") % ", ".join(mask.names)
            self.fields["args"].help_text = told

    def clean_queue(self) -> str:
        """Refuse a queue that there is not, or that takes no jobs."""
        name = str(self.cleaned_data["queue"])
        open_queue(self._queue._state.db or "default", self._queue.tenant, name)
        return name

    def clean_args(self) -> Any:
        return self._with_hidden("args", self._shown[0], self._stored[0])

    def clean_kwargs(self) -> Any:
        return self._with_hidden("kwargs", self._shown[1], self._stored[1])

    def _with_hidden(self, name: str, shown: Any, stored: Any) -> Any:
        try:
            return _restored(name, self.cleaned_data[name], shown, stored)
        except RecursionError as error:
            raise _too_deep() from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.is_too_long:
            args, kwargs = self._stored
        elif "args" in cleaned and "kwargs" in cleaned:
            args, kwargs = cleaned["args"], cleaned["kwargs"]
        else:
            return cleaned
        try:
            check_entered(args or [], kwargs or {}, self._job.args)
            for entry in marked_values([args, kwargs]):
                _check_readable(entry)
            self.call = decode_args(json.dumps({"args": args, "kwargs": kwargs}))
            self._source.check_call(tuple(self.call[0]), self.call[1])
        except RecursionError as error:
            raise _too_deep() from error
        except UNREADABLE as error:
            raise ValidationError(_words(error), code="arguments") from error
        return cleaned


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return gettext("An object with “%(mark)s” has no %(key)s.") % {"mark": MARK, "key": error}
    return str(error)


def _check_readable(entry: dict[str, Any]) -> None:
    """Raise ValueError for a text that is no value of its type. Models are loaded later, once."""
    if entry[MARK] == "model":
        return
    (value,), _named = decode_args(json.dumps({"args": [entry]}))
    if value is None:
        text = gettext("%(value)r is not a %(type)s.")
        raise ValueError(text % {"value": entry.get("value"), "type": entry[MARK]})


def _restored(path: str, edited: Any, shown: Any, stored: Any) -> Any:
    """Return an edited value with what is masked in it as it is stored.

    Raises ValidationError for a mask in another place than it was shown.
    """
    if edited == MASK:
        if shown != MASK:
            raise ValidationError(
                gettext("%(path)s: “%(mask)s” hides no value here. Type the value.")
                % {"path": path, "mask": MASK},
                code="mask",
            )
        return stored
    if isinstance(edited, dict):
        same = isinstance(shown, dict) and isinstance(stored, dict)
        was, kept = (shown, stored) if same else ({}, {})
        return {
            name: _restored(f"{path}[{name!r}]", value, was.get(name), kept.get(name))
            for name, value in edited.items()
        }
    if isinstance(edited, list):
        same = isinstance(shown, list) and len(shown) == len(edited)
        pairs: Sequence[tuple[Any, Any]] = (
            list(zip(shown, stored, strict=True)) if same else [(None, None)] * len(edited)
        )  # of another length: which value a mask stands for is not known
        return [
            _restored(f"{path}[{place}]", value, *pair)
            for place, (value, pair) in enumerate(zip(edited, pairs, strict=True))
        ]
    return edited
