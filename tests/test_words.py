"""Words that users try: seconds for times, a task's longest backoff, and other systems' names."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

import django_tenantqueue
from django_tenantqueue import Job, current_job, group, task
from django_tenantqueue.calls import foreign
from django_tenantqueue.calls.options import NAMES
from django_tenantqueue.conf import get_settings, read_settings
from django_tenantqueue.exceptions import InvalidOption, WaitTimeout
from django_tenantqueue.operations import control
from django_tenantqueue.tasks import Task
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_queue
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def near(moment, expected) -> bool:
    return abs(moment - expected) < timedelta(minutes=1)


@pytest.mark.parametrize("option", ["run_at", "expires_at"])
@pytest.mark.parametrize("value", [3600, 3600.0, HOUR])
def test_moment_may_be_seconds_from_now(option, value):
    job = noop.using(**{option: value}).delay().refresh()

    assert near(getattr(job, option), timezone.now() + HOUR)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, -(10**12)])
def test_moment_is_refused_when_it_is_too_far_away(value):
    with pytest.raises(InvalidOption, match="it must be at most 100 years"):
        noop.using(run_at=value)


def test_moment_is_no_truth_value():
    with pytest.raises(InvalidOption, match="run_at=True: it must be an aware datetime"):
        noop.using(run_at=True)


@pytest.mark.parametrize("value", [3600, HOUR])
def test_time_of_a_waiting_job_may_be_changed_by_seconds(value):
    job = make_job()

    assert control.change_run_at([job.pk], value) == [job.pk]

    assert near(job.refresh().run_at, timezone.now() + HOUR)
    assert job.state == "scheduled"


def test_setting_of_seconds_may_be_a_timedelta():
    made = read_settings({"BACKOFF_MAX": HOUR, "POLL_INTERVAL": timedelta(milliseconds=500)})

    assert (made.backoff_max, made.poll_interval) == (3600.0, 0.5)
    with pytest.raises(InvalidOption, match="HISTORY_KEEP"):
        read_settings({"HISTORY_KEEP": HOUR})


def test_wait_takes_a_timedelta(transactional_db):
    with pytest.raises(WaitTimeout, match=r"still created after 0\.01 s"):
        make_job().wait(timedelta(milliseconds=10))


def with_backoff(**options) -> Task:
    return task(name="tests.with_backoff", **options)(lambda: None)


def waits(made: Task, attempt: int = 20) -> float:
    found = made.backoff_seconds(attempt, ValueError())
    assert found is not None
    return found


@pytest.mark.parametrize("longest", [7, timedelta(seconds=7)])
def test_longest_backoff_is_the_tasks_own(longest):
    assert 5.6 <= waits(with_backoff(backoff_max=longest)) <= 8.4
    assert 5.6 <= waits(with_backoff(backoff=3, backoff_max=longest)) <= 8.4
    assert waits(with_backoff(backoff=lambda attempt, error: 100, backoff_max=longest)) == 7.0
    assert waits(with_backoff(backoff=lambda attempt, error: 2, backoff_max=longest)) == 2.0


def test_longest_backoff_may_be_above_that_of_the_settings():
    most = get_settings().backoff_max

    assert waits(with_backoff(backoff=1, backoff_max=10 * most), attempt=31) > 5 * most


def test_first_backoff_is_that_of_the_settings_when_a_task_has_a_longest_one_alone():
    assert 4.0 <= waits(with_backoff(backoff_max=HOUR), attempt=1) <= 6.0
    assert with_backoff().backoff_seconds(1, ValueError()) is None


def test_backoff_may_be_a_timedelta():
    minute = timedelta(minutes=1)

    assert 48 <= waits(with_backoff(backoff=minute), attempt=1) <= 72
    assert waits(with_backoff(backoff=lambda attempt, error: minute)) == 60.0


@pytest.mark.parametrize("value", [0, -1, True, "1", timedelta(0)])
def test_longest_backoff_is_refused_when_it_is_no_time(value):
    with pytest.raises(InvalidOption, match="backoff_max="):
        with_backoff(backoff_max=value)


@pytest.mark.parametrize("name", sorted(foreign.METHODS))
def test_method_of_another_system_is_answered_with_ours(name):
    for target in (noop, noop.using(queue="mail")):
        with pytest.raises(AttributeError, match=f"{name!r}: use ") as caught:
            getattr(target, name)
        assert foreign.METHODS[name] in str(caught.value)
    assert not hasattr(noop, name)


@pytest.mark.parametrize("name", sorted(foreign.JOB))
def test_attribute_of_a_result_elsewhere_is_answered_with_ours(name):
    job = noop.delay()

    with pytest.raises(AttributeError, match=f"Job has no {name!r}: use ") as caught:
        getattr(job, name)
    assert foreign.JOB[name] in str(caught.value)
    with pytest.raises(AttributeError, match="'Job' object has no attribute 'staet'"):
        job.staet  # type: ignore[attr-defined] # noqa: B018


@task
def use(name: str) -> str:
    """Return what is said about an attribute of the running job."""
    try:
        return str(getattr(current_job(), name))
    except AttributeError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(foreign.RUNNING))
def test_attribute_of_a_running_task_elsewhere_is_answered_with_ours(name):
    job = use.delay(name)

    run_pending()

    assert job.refresh().result == f"RunningJob has no {name!r}: use {foreign.RUNNING[name]}"


_OF_TASKS = (foreign.METHODS, foreign.OPTIONS, foreign.JOB, foreign.RUNNING)


def test_what_other_names_are_answered_with_exists():
    from django_tenantqueue import exceptions, states
    from django_tenantqueue.execution.current_job import RunningJob

    texts = "\n".join(
        text for known in (*_OF_TASKS, foreign.GROUP, foreign.PACKAGE) for text in known.values()
    )
    for name in re.findall(r"\bjob\.(\w+)", texts):
        assert hasattr(Job, name), name
    for name in re.findall(r"current_job\(\)\.(\w+)", texts):
        assert hasattr(RunningJob, name), name
    for name in re.findall(r"\btask\.(\w+)", texts):
        assert hasattr(Task, name), name
    for name in re.findall(r"\bcontrol\.(\w+)", texts):
        assert hasattr(control, name), name
    for name in re.findall(r"\bState\.(\w+)", texts):
        assert hasattr(states.State, name), name
    for name in re.findall(r"raise (\w+)", texts):
        assert hasattr(exceptions, name), name


def test_unknown_method_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="'Task' object has no attribute 'dealy'") as caught:
        noop.dealy()  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.obj) == ("dealy", noop)


@pytest.mark.parametrize("name", sorted(foreign.OPTIONS))
def test_option_of_another_system_is_answered_with_ours(name):
    assert name not in NAMES
    with pytest.raises(InvalidOption, match=f"unknown option '{name}': use ") as caught:
        noop.using(**{name: 1})
    assert foreign.OPTIONS[name] in str(caught.value)
    with pytest.raises(InvalidOption, match=f"'{name}': use "):
        task(name="tests.foreign", **{name: 1})(lambda: None)


def test_option_among_the_arguments_is_answered_with_using():
    with pytest.raises(TypeError, match="argument 'countdown'") as caught:
        noop.delay(countdown=3)
    assert foreign.OPTIONS["countdown"] in str(caught.value)


@pytest.mark.parametrize("name", sorted(foreign.GROUP))
def test_method_of_a_group_elsewhere_is_answered_with_ours(name):
    with pytest.raises(AttributeError, match=f"Group has no {name!r}: use ") as caught:
        getattr(group([noop.call()]), name)
    assert foreign.GROUP[name] in str(caught.value)


def test_group_that_is_called_says_how_it_is_enqueued():
    with pytest.raises(TypeError, match=r"enqueued by group\(\[…\]\)\.delay\(\)"):
        group([noop.call()])()


@pytest.mark.parametrize("name", sorted(foreign.PACKAGE))
def test_import_of_a_name_elsewhere_is_answered_with_ours(name):
    with pytest.raises(ImportError, match=f"django_tenantqueue has no {name!r}: use ") as caught:
        exec(f"from django_tenantqueue import {name}")
    assert foreign.PACKAGE[name] in str(caught.value)
    assert not hasattr(django_tenantqueue, "chian")


def test_job_tells_its_tenant():
    job = noop.using(tenant="acme").delay()

    assert job.tenant == "acme"
    assert Job.objects.get(queue__tenant="acme").tenant == "acme"


def test_job_without_a_queue_has_no_tenant():
    assert make_job(make_queue("acme"), queue_id=0).tenant == ""


def test_tenants_are_read_along_when_they_are_selected():
    for tenant in ("acme", "globex"):
        make_job(make_queue(tenant))

    with CaptureQueriesContext(connection) as captured:
        found = {job.tenant for job in Job.objects.unfinished().select_related("queue")}

    assert found == {"acme", "globex"}
    assert len(captured) == 1


@task
def tell_tenant() -> str:
    """Return the tenant of the job."""
    return current_job().tenant


def test_running_job_tells_the_same_tenant():
    job = tell_tenant.using(tenant="acme").delay()

    run_pending()

    assert job.refresh().result == job.tenant


@override_settings(TENANTQUEUE={"BACKOFF_BASE": timedelta(seconds=50)})
def test_setting_of_a_timedelta_acts():
    assert get_settings().backoff_base == 50.0
