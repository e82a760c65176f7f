"""A pattern of CALLABLES allows what is defined there, also to schedules."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.services import run_schedules
from django_tenantqueue.exceptions import NotAllowed
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending

CODE = "tests.listed_code"
PATTERN = override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.*"]})


@PATTERN
@pytest.mark.django_db
def test_shell_is_not_reached_by_a_schedule() -> None:
    row = make_schedule("nightly", f"{CODE}:os.system", "0 3 * * *", args=["true"])

    with pytest.raises(NotAllowed, match=r"it is posix\.system, which matches no pattern"):
        run_schedules([row.pk])

    assert not Job.objects.exists()


@pytest.mark.django_db
def test_job_is_refused_by_the_worker_when_the_pattern_does_not_allow_it() -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": [f"{CODE}.os.system"]}):
        row = make_schedule("nightly", f"{CODE}:os.system", "0 3 * * *", args=["true"])
        (job,) = run_schedules([row.pk])
    with PATTERN:
        run_pending()

    job.refresh()
    assert (job.state, job.attempt) == ("error", 1)
    assert job.last_error["class"].endswith(".NotAllowed")
