"""What the filters of the list of jobs mean: from their names and values to the jobs they select.

The list, its downloads and bulk actions all read them here, so that they mean the same jobs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..batch_sizes import BATCH
from ..exceptions import InvalidArgument
from ..models import TenantQueue
from ..queries.lists import NEWEST, JobFilter
from ..states import ACTIVE, ELSEWHERE, FINAL, UNFINISHED, State
from ..text import is_storable, read_number
from .job_conditions import CONDITIONS, only_tenant, read_conditions
from .job_pages import QUEUES_MOST, JobPage, find_jobs, queue_ids
from .task_names import is_known

STATE_GROUPS: dict[str, frozenset[State]] = {
    "unfinished": UNFINISHED,
    "active": ACTIVE,
    "finished": FINAL,
    **{state.value: frozenset({state}) for state in State},
}
STATE_LABELS: list[tuple[str | None, Any]] = [
    (None, _("All")),
    ("unfinished", _("unfinished")),
    ("active", _("holding a slot")),
    ("finished", _("finished")),
    *((state.value, state.label) for state in State),
]
SEARCH = "q"
"""The name of the search among the filters."""
LABELS: dict[str, Any] = {
    "state": _("state"),
    "tenant": _("tenant"),
    "queue": _("queue"),
    "queue_id": _("tenant queue"),
    "task": _("task name"),
    **CONDITIONS,
    SEARCH: _("search"),
}
"""All filters, by their names in addresses and in the arguments of bulk actions."""
SOURCE = re.compile(r"([a-z_][\w@-]*\.[\w@-]+):(\S.*)", re.IGNORECASE)
"""How the search names an object: shop.order:17."""
COUNT_PAGE = BATCH * 5
"""Jobs that one step of a count reads."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What filters ask for, and what in them cannot be. `queue` is the one that they name by id."""

    filter: JobFilter
    job_id: int | None = None
    problem: str | None = None
    queue: TenantQueue | None = None

    def narrowed(self, states: frozenset[State]) -> Asked:
        """Return the same for jobs of these states only."""
        chosen = states if self.filter.states is None else states & self.filter.states
        return replace(self, filter=replace(self.filter, states=chosen))

    def below(self, before: int) -> Asked:
        """Return the same for jobs below an id only."""
        return replace(self, filter=replace(self.filter, before=min(before, self.filter.before)))

    def page(self, using: str, *, size: int, by_id: bool = False) -> JobPage:
        """Return the newest jobs, see find_jobs()."""
        if self.problem or self.filter.states == frozenset():
            return JobPage((), None)
        if self.job_id is not None:
            return JobPage((self.job_id,) if self.job_id <= self.filter.before else (), None)
        return find_jobs(using, self.filter, size=size, by_id=by_id)

    def walk(self, using: str, *, size: int) -> Iterator[JobPage]:
        """Yield all pages, the newest first. One may be empty where its window has no match.

        Each step ends its transaction before its page is yielded. Where the list may leave jobs out
        (`capped`), the walk continues by their ids.
        """
        asked = self
        by_id = False
        while True:
            page = asked.page(using, size=size, by_id=by_id)
            if page.capped:
                by_id = True
                continue
            yield page
            if page.older is None:
                return
            asked = asked.below(page.older)


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs match. `is_exact`: False when there are more, or may be."""

    jobs: int
    is_exact: bool


def read_filters(
    using: str, given: Mapping[str, str], *, tenants: Collection[str] | None = None
) -> Asked:
    """Return what the filters select among the jobs of some tenants; None: of all.

    The answer names the first thing in the filters that cannot be. Empty values are left out, but
    for the tenant "": jobs without a tenant.
    """
    values = {name: value.strip() if name == SEARCH else value for name, value in given.items()}
    values = {name: value for name, value in values.items() if value or name == "tenant"}
    for filter_name, value in values.items():
        if filter_name not in LABELS:
            return _problem(gettext("There is no filter %r.") % filter_name)
        if not is_storable(value):
            return _problem(gettext("There is no job with %r.") % value)
    state = values.get("state")
    if state is not None and state not in STATE_GROUPS:
        said = {"state": state, "known": ", ".join(STATE_GROUPS)}
        if (meant := ELSEWHERE.get(state.lower())) is not None:
            text = gettext("Unknown state %(state)r: use %(meant)r. Known states: %(known)s.")
            return _problem(text % {**said, "meant": meant.value})
        return _problem(gettext("Unknown state %(state)r. Known states: %(known)s.") % said)
    search = values.get(SEARCH)
    if search is not None and (query := search.removeprefix("#")).isdecimal():
        number = read_number(query)
        return Asked(JobFilter(), job_id=NEWEST if number is None else number)
    asked = _searched(
        using,
        search or "",
        JobFilter(None if state is None else STATE_GROUPS[state], task=values.get("task")),
    )
    tenant, queue_name = values.get("tenant"), values.get("queue")
    queue = None
    if given_id := values.get("queue_id"):
        known = (read_number(given_id) or 2**31) < 2**31
        queue = TenantQueue.objects.using(using).filter(pk=given_id).first() if known else None
        if queue is None or (tenants is not None and queue.tenant not in tenants):
            return _problem(gettext("There is no queue %s.") % given_id)
    of_keys = tenant if queue is None else queue.tenant
    if of_keys is None:
        of_keys = only_tenant(tenants)
    try:
        asked = read_conditions(using, values, asked, tenant=of_keys)
    except InvalidArgument as error:
        return _problem(str(error))
    if queue is not None:
        return Asked(replace(asked, queues=(queue.pk,)), queue=queue)
    if tenant is None and queue_name is None:
        seen = None if tenants is None else queue_ids(using, tenants=tenants)
        return Asked(replace(asked, queues=seen))
    queues = queue_ids(using, tenant=tenant, name=queue_name, tenants=tenants)
    if not queues:
        return _problem(_no_queue(tenant, queue_name))
    if len(queues) == QUEUES_MOST:
        text = gettext("More than %(count)d queues are called %(name)r: add the tenant.")
        return _problem(text % {"count": QUEUES_MOST, "name": queue_name})
    return Asked(replace(asked, queues=queues))


def _searched(using: str, text: str, asked: JobFilter) -> JobFilter:
    """Return a filter with what was searched for: an object, a known name, or any text."""
    if not text:
        return asked
    if named := SOURCE.fullmatch(text):
        return replace(asked, source=((named[1].lower(),), named[2]))
    if is_known(using, text):
        return replace(asked, task=text)
    return replace(asked, text=text)


def _problem(text: str) -> Asked:
    return Asked(JobFilter(), problem=text)


def _no_queue(tenant: str | None, name: str | None) -> str:
    if tenant is None:
        return gettext("No tenant has a queue called %r.") % name
    if name is None:
        return gettext("Tenant %r has no queue.") % tenant
    told = gettext("Tenant %(tenant)r has no queue called %(name)r.")
    return told % {"tenant": tenant, "name": name}


def count_matching(using: str, asked: Asked, *, most: int, pages: int | None = None) -> Count:
    """Count the jobs that match, up to `most`, with at most `pages` reads of COUNT_PAGE jobs."""
    found = 0
    for page in islice(asked.walk(using, size=COUNT_PAGE), pages):
        found += len(page.ids)
        if found > most:
            return Count(most, is_exact=False)
        if page.older is None:
            return Count(found, is_exact=True)
    return Count(found, is_exact=False)
