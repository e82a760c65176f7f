"""The package works from enqueue to result."""

import subprocess
import sys
from datetime import timedelta

import pytest

import django_tenantqueue
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


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("from django_tenantqueue import task", "settings are not configured"),
        ("import django_tenantqueue; django_tenantqueue.nothing", "has no attribute 'nothing'"),
        ("from django_tenantqueue import shared_task", "has no 'shared_task': use"),
    ],
)
def test_import_without_django_says_what_is_missing(code: str, message: str) -> None:
    environment = {"PYTHONPATH": ":".join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )

    assert message in done.stderr
    assert "circular import" not in done.stderr


def test_names_of_the_package_are_listed() -> None:
    assert set(django_tenantqueue.__all__) < set(dir(django_tenantqueue))
