"""What the filters of the list of jobs show: states with their counts, and names to suggest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import InvalidArgument
from ..gate_keys import ORDER
from ..models import TenantQueue
from ..queries.fleet import count_jobs
from ..states import State
from ..status.display_limits import COUNTED_TO, VISITED
from ..status.job_conditions import CONDITIONS, TIMES, read_moment, searchable_names
from ..status.job_filters import STATE_LABELS
from ..status.queue_loads import loads
from ..text import is_storable
from .filters import TenantChoiceFilter, TextFilter
from .formats import counted
from .tenant_input import CHOICES, NONE

NAMES_LIST = "tq-task-names"
"""Id of the <datalist> of task names."""
NAMES_MOST = COUNTED_TO // 2
"""Names of tasks, of tenants and of queues that are suggested."""
RANGES = {"1h": _("last hour"), "24h": _("last 24 hours"), "7d": _("last 7 days")}
"""Times of creation that a link selects. In a bookmark they mean the hours before its use."""
EXAMPLES = {"argument": "invoice=4711", "error": "ValueError"}
"""What inputs show while they are empty."""
TENANTS_LIST, QUEUES_LIST = "tq-tenants", "tq-queue-names"
"""Ids of the <datalist> of tenants and of queues."""


class StateFilter(admin.SimpleListFilter):
    """Jobs in a state, with a link for each."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the states without counts: they are counted when they are shown."""
        return [(value, label) for value, label in STATE_LABELS if value is not None]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for value, label in changelist.counted_states():  # type: ignore[attr-defined]
            yield {
                "selected": value == self.value(),
                "query_string": changelist.get_query_string({self.parameter_name: value}),
                "display": label,
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return all jobs: the list finds its page by ids."""
        return queryset


class TenantQueueFilter(StateFilter):
    """Jobs of the tenant queue that a link has chosen."""

    title = _("tenant queue")
    parameter_name = "queue_id"

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for pk, label in ((None, _("All")), (self.value(), changelist.queue)):  # type: ignore[attr-defined]
            yield {
                "selected": pk is not None,
                "query_string": changelist.get_query_string({self.parameter_name: pk}),
                "display": label,
            }


class JobTenantFilter(TextFilter):
    """Jobs of one tenant."""

    title = _("tenant")
    parameter_name = "tenant"
    suggestions = TENANTS_LIST


class JobTenantChoiceFilter(TenantChoiceFilter):
    """Jobs of no tenant."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [choice for choice in CHOICES if choice[0] == NONE]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return all jobs: the list finds its page by ids."""
        return queryset


class JobQueueFilter(TextFilter):
    """Jobs of the queues of one name."""

    title = _("queue")
    parameter_name = "queue"
    suggestions = QUEUES_LIST


class TaskNameFilter(TextFilter):
    """Jobs of one task."""

    title = _("task name")
    parameter_name = "task"
    suggestions = NAMES_LIST


class ConditionsFilter(TextFilter):
    """Jobs by times, labels and other columns: the inputs of one form."""

    title = _("time, label and more")
    parameter_name = "created_from"
    template = "admin/tenantqueue/job/conditions_filter.html"

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        given = {name: params.pop(name) for name in CONDITIONS if name in params}
        self.used_parameters |= {name: values[-1] for name, values in given.items()}

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(CONDITIONS)

    def expected_parameters(self) -> list[str | None]:
        return [*CONDITIONS]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        given = {name: changelist.params.get(name) or "" for name in CONDITIONS}
        yield {
            "form": f"tq-typed-{self.parameter_name}",
            "fields": [_field(name, label, given[name]) for name, label in CONDITIONS.items()],
            "ranges": [
                {
                    "label": label,
                    "selected": given["created_from"] == ago,
                    "query_string": changelist.get_query_string({"created_from": ago}),
                }
                for ago, label in RANGES.items()
            ],
            "arguments": searchable_names(),
            "clear": changelist.get_query_string(dict.fromkeys(CONDITIONS)),
            "given": [(name, text) for name, text in given.items() if text],
            "selected": any(given.values()),
            "query_string": changelist.get_query_string(),
            "display": self.title,
        }


def _field(name: str, label: Any, text: str) -> dict[str, Any]:
    """Return what an input shows. A time that cannot be read stays as it was typed."""
    shown, kind = text, "text"
    if name in TIMES:
        with suppress(InvalidArgument):
            shown = timezone.localtime(read_moment(text)).strftime("%Y-%m-%dT%H:%M") if text else ""
            kind = "datetime-local"
    return {
        "name": name,
        "label": label,
        "value": shown,
        "kind": kind,
        "example": EXAMPLES.get(name, ""),
    }


def filters_of(*, is_queue_chosen: bool) -> list[type[admin.SimpleListFilter]]:
    """Return the filters of the list: a queue that a link chose takes the place of its names."""
    if is_queue_chosen:
        return [StateFilter, TenantQueueFilter, TaskNameFilter, ConditionsFilter]
    where = (JobTenantFilter, JobTenantChoiceFilter, JobQueueFilter)
    return [StateFilter, *where, TaskNameFilter, ConditionsFilter]


def given_filters(address: Mapping[str, Any]) -> dict[str, str]:
    """Return what the filters of an address select, as read_filters() takes it.

    Raises InvalidArgument for a choice of tenants that there is not, or that excludes the name.
    """
    given = {name: text for name in address if (text := str(address[name] or ""))}
    choice = given.pop(str(JobTenantChoiceFilter.parameter_name), "")
    if choice not in ("", NONE):
        raise InvalidArgument(gettext("Choose one tenant or no tenant."))
    if choice and "tenant" in given:
        raise InvalidArgument(gettext("Remove the name, or choose one tenant."))
    return {**given, "tenant": ""} if choice else given


@dataclass(frozen=True, slots=True)
class Suggested:
    """Names that the filters suggest while the operator types."""

    tenants: Sequence[str]
    queues: Sequence[str]


def suggest(using: str, tenant: str | None, *, among: Collection[str] | None = None) -> Suggested:
    """Return names of the newest queues; the queues are those of the chosen tenant, if any.

    `among`: the tenants that the user sees; None: all.
    """
    queues = TenantQueue.objects.using(using).order_by("-pk")
    if among is not None:
        queues = queues.filter(tenant__in=sorted(among))
    found = list(queues.values_list("tenant", "name")[:VISITED])
    names = {name for _tenant, name in found}
    if tenant is not None:
        own = queues.filter(tenant=tenant) if is_storable(tenant) else queues.none()
        names = set(own.values_list("name", flat=True)[:NAMES_MOST])
    return Suggested(sorted({of for of, _name in found}), sorted(names)[:NAMES_MOST])


def counted_states(using: str, queue: TenantQueue | None) -> list[tuple[str | None, Any]]:
    """Return the states with the counts that a bounded statement has: never of the history."""
    counts: dict[str | None, int] = {}
    if queue is not None:
        load = loads(using, [queue.pk]).get(queue.pk)
        if load is not None:
            counts = {"active": load.running, State.READY.value: load.waiting}
    else:
        found = count_jobs(using, most=COUNTED_TO)
        counts = {
            "active": found.running,
            State.READY.value: found.ready,
            State.SCHEDULED.value: found.scheduled,
            State.HELD.value: sum(getattr(found.held, gate) for gate in ORDER),
        }
    return [
        (value, _with_count(value, label, counts[value]) if value in counts else label)
        for value, label in STATE_LABELS
    ]


def _with_count(value: str | None, label: Any, count: int) -> SafeString:
    text = counted(count, COUNTED_TO)
    return format_html('{} <span class="tq-count" data-of="{}">{}</span>', label, value, text)
