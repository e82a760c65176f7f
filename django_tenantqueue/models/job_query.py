"""Reads of jobs that operators and views need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from django.db import models, router

from ..calls.arguments import write_alias
from ..coroutines import twin
from ..states import ACTIVE, State
from .hinted_query import HintedQuerySet

if TYPE_CHECKING:
    from .job import Job


def user_text(user: object) -> str:
    """Return the `created_by` of a user: the primary key of a model instance, or its text.

    None and anonymous users give "None".
    """
    return str(user.pk if isinstance(user, models.Model) else user)


def source_types(target: models.Model) -> list[str]:
    """Return the values of `source_type` for the jobs of a model instance.

    The second is that of an instance in another database than the usual one of its model.
    """
    label = target._meta.label_lower
    alias = write_alias(target)
    usual = alias == router.db_for_write(type(target))
    return [label] if usual else [label, f"{label}@{alias}"]


class JobQuerySet(HintedQuerySet["Job"]):
    """Reads that operators and views need. Each is served by an index of the leaf it names."""

    def unfinished(self) -> Self:
        """Jobs in the hot leaf."""
        return self.filter(final=False)

    def finished(self) -> Self:
        """Jobs in the history."""
        return self.filter(final=True)

    def ready(self) -> Self:
        """Jobs that are ready: they wait for a slot."""
        return self.filter(final=False, state=State.READY)

    def active(self) -> Self:
        """Jobs that hold a slot."""
        return self.filter(final=False, state__in=sorted(ACTIVE))

    def find(self, job_id: int) -> Job | None:
        """Return the job of that id; None if it does not exist.

        The hot leaf is read first, since a read of the history probes every month. A job that an
        operator brings back between the two reads is found by the third.
        """
        for final in (False, True, False):
            found = self.filter(pk=job_id, final=final).order_by().first()
            if found is not None:
                return found
        return None

    afind = twin(find)

    def find_many(self, job_ids: Iterable[int]) -> dict[int, Job]:
        """Return the jobs of these ids that exist, by id, with two queries at most.

        The hot leaf is read first. The second read is of all leaves in one snapshot, so that a job
        that moves between the two is found.
        """
        wanted = set(job_ids)
        found = {job.pk: job for job in self.filter(pk__in=wanted, final=False).order_by()}
        if missing := wanted - found.keys():
            found |= {job.pk: job for job in self.filter(pk__in=missing).order_by()}
        return found

    afind_many = twin(find_many)

    def for_tenant(self, tenant: str) -> Self:
        """Jobs of all queues of one tenant."""
        return self.filter(queue__tenant=tenant)

    def for_user(self, user: object) -> Self:
        """Jobs that were enqueued with `created_by=str(user.pk)`, or with `created_by=user`."""
        return self.filter(created_by=user_text(user))

    def for_source(self, target: models.Model) -> Self:
        """Jobs that run a method of one model instance."""
        return self.filter(source_type__in=source_types(target), source_id=str(target.pk))
