"""The package works from enqueue to result."""

from datetime import timedelta

import pytest

from django_tenantqueue.testing import run_pending
from tests.testapp.tasks import add


@pytest.mark.django_db
def test_run_pending_runs_what_was_enqueued():
    job = add.using(tenant="acme").delay(1, 2)

    ran = run_pending()

    assert [j.pk for j in ran] == [job.pk]
    assert ran[0].result == 3


@pytest.mark.django_db
def test_job_has_no_start_when_it_expired_before_it_could_run():
    job = add.using(expires_at=timedelta(seconds=-1)).delay(1)

    run_pending()

    assert (job.refresh().state, job.started_at) == ("cancelled", None)
