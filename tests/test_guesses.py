"""What a newcomer guesses: the error names what is meant, and nothing is wrong in silence."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core import mail
from django.core.exceptions import FieldDoesNotExist, FieldError
from django.core.management import CommandError, call_command
from django.db.models import Q
from django.test import override_settings

from django_tenantqueue import ConcurrentJobMonitor, Job, State, control, group, signals, task
from django_tenantqueue.conf import read_settings, unread_settings
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
    UnknownQueue,
    Unsupported,
    WaitTimeout,
)
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.testing import eager, run_pending
from tests.factories import make_queue
from tests.testapp.tasks import add, fail, noop

NEEDS = "schedules"

Wait = Callable[..., ConcurrentJobMonitor]
each_wait = pytest.mark.parametrize(
    "wait",
    [ConcurrentJobMonitor.wait, async_to_sync(ConcurrentJobMonitor.await_end)],
    ids=["wait", "await_end"],
)


@pytest.mark.parametrize(
    ("guess", "meant"),
    [("failed", "error"), ("SUCCEEDED", "success"), ("pending", "ready"), ("created", "ready")],
)
def test_state_that_does_not_exist_is_not_looked_for(guess: str, meant: str) -> None:
    with pytest.raises(InvalidOption, match=f"no such state, use '{meant}': the states are sch"):
        Job.objects.filter(state=guess).exists()
    with pytest.raises(InvalidOption, match=f"use '{meant}'"):
        Job.objects.exclude(state__in=["running", guess]).count()


def test_state_without_a_meaning_gets_the_list() -> None:
    with pytest.raises(
        InvalidOption, match="'blue': there is no such state: the states are"
    ) as got:
        Job.objects.filter(state="blue").exists()
    assert (got.value.option, got.value.value) == ("state", "blue")


@pytest.mark.django_db
def test_states_are_found_as_members_texts_and_attributes_of_the_model() -> None:
    job = add.using(tenant="acme").delay(1, 2)

    assert Job.State is State
    assert Job.objects.filter(state=Job.State.READY).get().pk == job.pk
    assert Job.objects.filter(state="ready", state__in=["ready", "error"]).count() == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from django_tenantqueue.testing import drain_queue", r"use run_pending\(\)"),
        (
            "from django_tenantqueue.signals import job_failed",
            r"with state 'error' .*takes \(sender, task, job_id, state, error, \*\*kwargs\)",
        ),
        ("from django_tenantqueue.contrib.schedules import periodic", "the option schedule="),
        ("from django_tenantqueue.contrib.schedules import periodic", "made when a worker starts"),
        ("from django_tenantqueue import periodic", "as in @task.*tenantqueue schedules sync"),
        ("from django_tenantqueue import chain", r"Job\.objects\.get\(previous_id=job\.pk\)"),
        ("from django_tenantqueue import chord", r"summary\.details\(\).*monitor\.anchor_id"),
        ("from django_tenantqueue import TenantQueue", r"django_tenantqueue\.models$"),
        ("from django_tenantqueue import pause", r"control\.pause\(queue='mail'\)"),
        ("from django_tenantqueue import enqueue_many", r"task\.enqueue_many"),
        ("from django_tenantqueue.models import Queue", r"TenantQueue .*\.pause\(\)"),
        ("from django_tenantqueue.models import Schedule", r"contrib\.schedules\.models"),
        ("from django_tenantqueue.models import PeriodicTask", r"contrib\.schedules\.models"),
        ("from django_tenantqueue.contrib.schedules import Schedule", r"schedules\.models$"),
        ("from django_tenantqueue.contrib.schedules import Cron", "of django_tenantqueue$"),
        ("from django_tenantqueue.testing import capture_jobs", r"use captured_jobs\(\)"),
    ],
)
def test_import_of_a_guessed_name_names_ours(line: str, said: str) -> None:
    with pytest.raises(ImportError, match=said):
        exec(line)


@pytest.mark.parametrize(
    ("column", "meant"),
    [("status", "use state"), ("tenant", "use queue__tenant"), ("task_name__in", "use task")],
)
def test_column_of_another_system_names_ours(column: str, meant: str) -> None:
    with pytest.raises(FieldError, match=rf"Instead of '{column}' {meant}"):
        Job.objects.filter(**{column: ["x"]})
    with pytest.raises(FieldError, match=meant):
        Job.objects.unfinished().exclude(**{column: ["x"]})
    with pytest.raises(FieldError, match="Choices are"):
        Job.objects.get(colour="red")


def test_hint_is_the_only_one() -> None:
    with pytest.raises(AttributeError, match=r"use Job\.objects\.get") as caught:
        _ = add.get_result
    assert (caught.value.name, caught.value.obj) == ("get_result", None)


def test_verb_for_numbers_names_the_command_for_many() -> None:
    with pytest.raises(CommandError, match=r"not the number of .* use tenantqueue bulk"):
        call_command("tenantqueue", "retry", "--tenant", "acme")


# receivers of signals


def test_receiver_that_would_fail_at_each_job_is_rejected() -> None:
    def on_end(sender: Any, job: Any, state: str, **kwargs: Any) -> None: ...

    def without_others(sender: Any, job_id: int) -> None: ...

    sent = r"job_finished sends these: \(sender, task, job_id, state, error, \*\*kwargs\)"
    with pytest.raises(InvalidOption, match=f"on_end: missing .*'job'. {sent}") as caught:
        signals.job_finished.connect(on_end)
    assert (caught.value.option, caught.value.value) == ("receiver", on_end)
    with pytest.raises(InvalidOption, match=f"without_others: got an unexpected .*{sent}"):
        signals.job_finished.connect(without_others)
    with pytest.raises(InvalidOption, match="7 is not a callable object"):
        signals.job_finished.connect(7)


@pytest.mark.django_db
def test_error_of_a_receiver_is_logged_with_its_job(caplog: pytest.LogCaptureFixture) -> None:
    def broken(**_: Any) -> None:
        raise ValueError("no such account")

    signals.job_finished.connect(broken)
    try:
        job = noop.delay()
        with caplog.at_level(logging.ERROR, logger="django_tenantqueue"):
            run_pending()
    finally:
        signals.job_finished.disconnect(broken)

    assert job.refresh().state == "success"
    (record,) = [one for one in caplog.records if one.name == "django_tenantqueue"]
    assert re.search(rf"broken of job_finished failed for job {job.pk} \(", record.getMessage())
    assert (record.job, record.tenant) == (job.pk, "")  # type: ignore[attr-defined]
    assert "no such account" in caplog.text


# states


@pytest.mark.parametrize("name", ["status", "get_status"])
def test_hint_of_the_state_lists_its_words(name: str) -> None:
    with pytest.raises(AttributeError, match=r"state, which is a State: 'success', 'error', 'canc"):
        getattr(Job(), name)


def test_status_of_the_class_is_state() -> None:
    with pytest.raises(AttributeError, match=r"Job has no 'Status': use Job\.State") as caught:
        _ = Job.Status  # type: ignore[attr-defined]
    assert caught.value.obj is None
    with pytest.raises(AttributeError, match=r"use Job\.State"):
        _ = Job().Status  # type: ignore[attr-defined]


# values and columns of queries


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"unique_key": "shop-1"}, "'acme/shop-1', or '/shop-1' without a tenant"),
        ({"args": [7]}, "use args={'args': [7]}"),
        ({"queue": "mail"}, "use queue__name='mail'"),
        ({"state__iexact": "Failed"}, "there is no such state, use 'error'"),
    ],
)
def test_value_that_no_row_has_is_not_looked_for(value: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(said)):
        Job.objects.filter(**value)
    with pytest.raises(InvalidOption, match=re.escape(said)):
        Job.objects.exclude(Q(pk=1) | Q(**value))


@pytest.mark.django_db
def test_values_that_rows_have_are_found() -> None:
    job = add.using(tenant="acme", queue="mail").delay(1, 2)

    assert Job.objects.get(args={"args": [1, 2]}, queue=job.queue, unique_key=None).pk == job.pk
    assert Job.objects.filter(queue=str(job.queue_id), state__iexact="Ready").exists()
    assert not Job.objects.filter(unique_key="acme/x").exists()


def test_column_of_another_system_names_ours_in_every_part_of_a_query() -> None:
    jobs = Job.objects.all()
    for look in (
        lambda: jobs.filter(Q(status="x")),
        lambda: jobs.order_by("-status"),
        lambda: jobs.values("status"),
        lambda: jobs.values_list("status"),
        lambda: jobs.order_by("id").values("status").distinct(),
    ):
        with pytest.raises(FieldError, match="Instead of 'status' use state"):
            str(look().query)
    with pytest.raises(FieldError, match="Choices are"):
        jobs.order_by("colour")


def test_columns_of_queues_and_schedules_name_ours() -> None:
    with pytest.raises(FieldError, match="Instead of 'queue' use name"):
        TenantQueue.objects.filter(queue="mail")
    with pytest.raises(FieldError, match="Instead of 'task_name' use task"):
        Schedule.objects.get(task_name="x")
    with pytest.raises(AttributeError, match=r"TenantQueue has no 'unpause': use resume\(\)"):
        TenantQueue().unpause()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="TenantQueue has no 'slots': use num_slots"):
        _ = TenantQueue().slots  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Schedule has no 'next_run_at': use next_at"):
        _ = Schedule().next_run_at  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="TenantQueue has no 'slots': use num_slots"):
        TenantQueue(tenant="acme", name="mail", slots=3)
    with pytest.raises(TypeError, match="Schedule has no 'cron': use expression"):
        Schedule.objects.create(name="x", cron="0 3 * * *")


def test_column_that_is_written_names_ours() -> None:
    for model, wrong, said in (
        (TenantQueue, "slots", "Instead of 'slots' use num_slots"),
        (Schedule, "next_run", "Instead of 'next_run' use next_at"),
        (Job, "status", "Instead of 'status' use state"),
    ):
        with pytest.raises(FieldDoesNotExist, match=said):
            model.objects.filter(pk=1).update(**{wrong: 3})
        with pytest.raises(FieldError, match=said):
            model.objects.filter(**{wrong: 3})
    with pytest.raises(FieldDoesNotExist, match=r"has no field named 'colour'$"):
        TenantQueue.objects.update(colour=3)


def test_tenant_and_methods_of_tasks_name_ours() -> None:
    for module in ("django_tenantqueue", "django_tenantqueue.models"):
        with pytest.raises(ImportError, match="has no 'Tenant': use TenantQueue"):
            exec(f"from {module} import Tenant")
    with pytest.raises(AttributeError, match=r"Task has no 'pause': use control\.pause\(task=…\)"):
        noop.pause()  # type: ignore[attr-defined]


# options


def test_option_of_uniqueness_names_the_key() -> None:
    for options in ({"unique_key": "shop-1"}, {"unique": "shop-1"}):
        with pytest.raises(InvalidOption, match=r"Unique\('until_executed', key='shop-1'\)"):
            noop.using(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("rate_limit", r"make_queue\(tenant, queue, max_per_second=0\.1, burst=6\).*one tenant"),
        ("limit", r"make_queue\(tenant, queue, max_per_second="),
        ("cron", r'schedule=… of @task, as in @task\(schedule="0 3 \* \* \*"\)'),
        ("every", r"Every\(minutes=5\)\), with django_tenantqueue\.contrib\.schedules"),
        ("at", "run_at="),
        ("dedupe_key", r"Unique\('until_executed', key='shop-1'\)"),
        ("singleton", r"Unique\('until_executed'\)"),
        ("max_concurrency", "num_slots=5.*limit_user="),
    ],
)
def test_option_of_another_system_names_ours(option: str, said: str) -> None:
    for make in (noop.using, task(name="tests.guess")(lambda: None).using):
        with pytest.raises(InvalidOption, match=f"^unknown option '{option}': use .*{said}"):
            make(**{option: 1})  # type: ignore[arg-type]


def test_all_unknown_options_are_named_in_one_error() -> None:
    said = r"^unknown option 'retry_backoff': use back.*; unknown option 'quue': did you .*'queue'"
    for make in (noop.using, partial(task, name="tests.guess")):
        with pytest.raises(InvalidOption, match=said) as caught:
            make(retry_backoff=1, max_attempts=3, quue="x")(lambda: None)  # type: ignore
        assert caught.value.option == "retry_backoff"
    with pytest.raises(InvalidOption, match=r"'concurrency': use parallel=.*'colour': known are"):
        group([noop.call()]).using(concurrency=5, colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("task_name", "job.task"),
        ("enqueued_at", "job.created_at"),
        ("queue_name", "job.queue.name"),
        ("error", r"job\.refresh\(\)\.last_error, a dict"),
        ("abort", r"job\.cancel\(\)"),
        ("await_", r"await job\.await_end"),
        ("progress", r"job\.refresh\(\), .*job\.progress_percent, .*job\.progress_message"),
    ],
)
def test_attribute_of_another_system_names_ours(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"^Job has no '{name}': use {said}"):
        getattr(Job(), name)


@pytest.mark.parametrize("name", ["delay_many", "bulk_delay", "bulk", "enqueue_bulk"])
def test_method_for_many_jobs_names_ours(name: str) -> None:
    with pytest.raises(AttributeError, match=r"use task\.enqueue_many\(\[1, 2\]\)"):
        getattr(noop.using(queue="mail"), name)


# settings


@pytest.mark.parametrize(
    ("key", "meant"),
    [("ALWAYS_EAGER", "EAGER"), ("IMMEDIATE", "EAGER"), ("MY_DATABASE", "DATABASE")],
)
def test_key_of_another_system_names_ours(key: str, meant: str) -> None:
    with pytest.raises(InvalidOption, match=rf"did you mean TENANTQUEUE\['{meant}'\]\?"):
        read_settings({key: True})


@pytest.mark.parametrize("name", ["TENANTQUEUE_ALWAYS_EAGER", "TENANTQUEUE_EAGER"])
def test_setting_that_is_not_read_is_not_overridden(name: str) -> None:
    said = rf"{name} is not read: .* Write TENANTQUEUE = \{{'EAGER': …\}}, or .* eager\(\)"
    with pytest.raises(InvalidOption, match=said), override_settings(**{name: True}):
        pass
    with override_settings(TENANTQUEUE_OF_OUR_OWN=1):
        assert unread_settings() == {}


def test_monitor_of_another_system_is_started_by_ours() -> None:
    start = r"A monitor is made with its details, by ConcurrentJobMonitor\.objects\.start\("
    with pytest.raises(TypeError, match=start):
        ConcurrentJobMonitor(name="x", limit=5, callback=noop.call())
    with pytest.raises(TypeError, match=start):
        ConcurrentJobMonitor.objects.create(name="x", limit=5)
    with pytest.raises(InvalidOption, match="'callback': use on_end="):
        ConcurrentJobMonitor.objects.start("x", [], parallel=1, callback=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="'limit': use parallel="):
        ConcurrentJobMonitor.objects.start("x", [], parallel=1, limit=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="'callback': use on_end="):
        noop.using(callback=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match=r"'monitor': use .*start\(.*monitor\.add\("):
        noop.using(monitor=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"use monitor\.details\(\)"):
        _ = ConcurrentJobMonitor().jobs  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_queue_that_does_not_exist_is_made_by_the_call_that_is_named() -> None:
    with pytest.raises(UnknownQueue, match=r"make_queue\('acme', 'mail'\) makes one"):
        control.pause(queue="mail", tenant="acme")
    with pytest.raises(InvalidOption, match="'slots' cannot be tuned: use num_slots"):
        control.tune(make_queue("acme", "mail"), slots=3)


def test_wrong_keyword_of_make_queue_names_ours() -> None:
    with pytest.raises(InvalidOption, match=r"make_queue\(\) has no 'slots': use num_slots"):
        control.make_queue("acme", "mail", slots=3)


@pytest.mark.django_db(transaction=True)
def test_wait_in_a_test_names_what_runs_jobs_there() -> None:
    with pytest.raises(WaitTimeout, match=r"in a test use run_pending\(\) or eager\(\)"):
        noop.delay().wait(0.01)


@pytest.mark.django_db(transaction=True)
def test_wait_between_attempts_names_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    job = fail.using(max_attempts=5).delay()
    run_pending()
    control.tune(job=job.pk, run_at=timedelta(hours=1))  # however slow this machine is

    with pytest.raises(WaitTimeout, match=r"is still scheduled .* s: attempt 1 of 5 ended in Val"):
        job.wait(0)
    monkeypatch.delattr(mail, "outbox")
    with pytest.raises(
        WaitTimeout, match=r"ValueError: .*; the next is in [\d.]+ s: .*max_attempts=1$"
    ):
        job.wait(0)


# monitors


@each_wait
@pytest.mark.django_db(transaction=True)
def test_monitor_is_waited_for_like_a_job(wait: Wait) -> None:
    monitor = group([add.call(1, 2), add.call(3, 4)]).delay(on_end=noop)

    with pytest.raises(WaitTimeout, match="still running after 0 s: 0 of 2 details have") as got:
        wait(monitor, timeout=0)
    assert (got.value.job_id, got.value.state) == (monitor.anchor_id, "running")
    assert str(got.value).startswith(f"monitor {monitor.pk} ('tests.testapp.tasks.add') is")
    run_pending()
    assert wait(monitor, timeout=0) is monitor
    assert sorted(job.result for job in monitor.details()) == [3, 7]
    assert Job.objects.get(pk=monitor.anchor_id).state == "success"


@each_wait
@pytest.mark.django_db(transaction=True)
def test_monitor_that_is_paused_or_cancelled_says_so(wait: Wait) -> None:
    monitor = group([noop.call()]).delay()
    monitor.pause()
    with pytest.raises(WaitTimeout, match="is still paused after"):
        wait(monitor, timeout=0)
    monitor.cancel()
    assert wait(monitor, timeout=0).cancelled_at is not None


@each_wait
@pytest.mark.django_db
def test_monitor_is_not_waited_for_in_a_transaction(wait: Wait) -> None:
    monitor = group([noop.call()]).delay()
    with pytest.raises(Unsupported, match=rf"monitor {monitor.pk} .* inside a transaction"):
        wait(monitor)
    with eager():
        made = group([noop.call()]).delay()
    assert wait(made) is made


# groups and their callbacks


@pytest.mark.parametrize("guess", ["on_success", "callback", "link"])
def test_callback_as_an_option_of_a_group_names_on_end(guess: str) -> None:
    with pytest.raises(InvalidOption, match="on_end="):
        group([noop.call()], **{guess: noop})


def test_options_of_a_group_are_no_arguments_of_group() -> None:
    with pytest.raises(InvalidOption, match=r"parallel=…: options .* in using\(\): group\("):
        group([noop.call()], parallel=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="unknown option 'colour'"):
        group([noop.call()], colour="red")  # type: ignore[arg-type]


def test_callback_with_a_parameter_for_the_results_names_the_summary() -> None:
    said = r"missing a required argument: '.*current_job\(\)\.summary\.details\(\)"
    with pytest.raises(TypeError, match=said):
        group([noop.call()]).delay(on_end=add)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=said):
        add.call()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=said):
        ConcurrentJobMonitor.objects.start("m", [noop.call()], parallel=1, on_end=add)
    with pytest.raises(TypeError, match=r"Placeholder\('result'\)"):
        noop.using(on_success=add)
    with pytest.raises(TypeError, match=r"too many positional arguments$"):
        noop.call(1, 2, 3)  # type: ignore[call-arg]


# the shell


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["list"], "no subcommand lists jobs"),
        (["status", "--json"], "Use --format json"),
        (["status", "--tenant", "acme"], "bulk ACTION --dry-run --tenant"),
        (["bulk", "retry", "--failed"], "Use --state error"),
        (["pause", "acme"], "arguments: acme. Use --tenant acme or --queue acme$"),
        (["routing", "list", "acme"], "arguments: acme. Use --tenant acme$"),
        (["status", "acme"], "arguments: acme$"),
    ],
)
def test_command_of_another_system_names_ours(line: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("tenantqueue", *line)


@pytest.mark.django_db
def test_state_of_another_system_is_no_filter() -> None:
    with pytest.raises(CommandError, match=r"Unknown state 'failed': use 'error'\. Known"):
        call_command("tenantqueue", "bulk", "retry", "--state", "failed")
    with pytest.raises(InvalidArgument, match=r"Unknown state 'failed': use 'error'\. Known"):
        control.bulk("retry", {"state": "failed"})
