"""Words that users try: seconds for times, a task's longest backoff, and other systems' names."""

from __future__ import annotations

import inspect
import pickle
import re
from copy import copy
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import NoReverseMatch
from django.utils import timezone

import django_tenantqueue
from django_tenantqueue import (
    ConcurrentJobMonitor,
    Cron,
    Every,
    Job,
    Retry,
    Serial,
    TaskHooks,
    control,
    current_job,
    delayed,
    exceptions,
    group,
    signals,
    task,
)
from django_tenantqueue.calls import other_systems
from django_tenantqueue.calls.options import NAMES
from django_tenantqueue.conf import get_settings, read_settings
from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
    Unsupported,
    WaitTimeout,
)
from django_tenantqueue.settings import Settings
from django_tenantqueue.status.monitor_progress import Progress
from django_tenantqueue.tasks import Task
from django_tenantqueue.testing import eager, run_pending
from tests.factories import make_job, make_queue
from tests.testapp.models import Report
from tests.testapp.tasks import add, noop

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def near(moment, expected) -> bool:
    return abs(moment - expected) < timedelta(minutes=1)


def test_arguments_that_are_durations_have_no_unit():
    found = [
        control.__dict__[name] for name in control.__all__ if name not in ("Result", "acting_as")
    ]
    found += [task, group, ConcurrentJobMonitor.objects.start, Job.wait, Every, Cron, Retry]
    for one in found:
        assert not [n for n in inspect.signature(one).parameters if n.endswith("_seconds")], one


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

    assert control.tune(job, run_at=value).changed == [job.pk]

    assert near(job.refresh().run_at, timezone.now() + HOUR)
    assert job.state == "scheduled"


def test_setting_of_seconds_may_be_a_timedelta():
    raw = {"BACKOFF_MAX": HOUR, "POLL_INTERVAL": timedelta(milliseconds=500)}
    made = read_settings(raw)[Settings]

    assert (made.backoff_max, made.poll_interval) == (3600.0, 0.5)
    with pytest.raises(InvalidOption, match="HISTORY_KEEP_MONTHS"):
        read_settings({"HISTORY_KEEP_MONTHS": HOUR})


def test_wait_takes_a_timedelta(transactional_db):
    with pytest.raises(WaitTimeout, match=r"still ready after 0\.01 s"):
        make_job().wait(timedelta(milliseconds=10))


def with_backoff(**options) -> Task:
    return task(name="tests.with_backoff", **options)(lambda: None)


def waits(made: Task, attempt: int = 20) -> float:
    found = made._backoff_seconds(attempt, ValueError())
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
    assert with_backoff()._backoff_seconds(1, ValueError()) is None


def test_backoff_may_be_a_timedelta():
    minute = timedelta(minutes=1)

    assert 48 <= waits(with_backoff(backoff=minute), attempt=1) <= 72
    assert waits(with_backoff(backoff=lambda attempt, error: minute)) == 60.0


@pytest.mark.parametrize("value", [0, -1, True, "1", timedelta(0)])
def test_longest_backoff_is_refused_when_it_is_no_time(value):
    with pytest.raises(InvalidOption, match="backoff_max="):
        with_backoff(backoff_max=value)


@pytest.mark.parametrize("name", sorted(other_systems.METHODS))
def test_method_of_another_system_is_answered_with_ours(name):
    for target in (noop, noop.using(queue="mail")):
        with pytest.raises(AttributeError, match=f"{name!r}: use ") as caught:
            getattr(target, name)
        assert other_systems.METHODS[name] in str(caught.value)
    assert not hasattr(noop, name)


@pytest.mark.parametrize(
    ("kind", "make", "known"),
    [
        ("Job", noop.delay, other_systems.JOB),
        ("Group", lambda: group([noop.call()]), other_systems.GROUP),
        ("Monitor", lambda: group([noop.call()]).delay(), other_systems.MONITOR),
        ("Call", noop.call, other_systems.CALL),
    ],
)
def test_name_of_another_system_is_answered_with_ours(kind, make, known):
    made = make()

    for name, instead in known.items():
        with pytest.raises(AttributeError, match=f"{kind} has no {name!r}: use ") as caught:
            getattr(made, name)
        assert instead in str(caught.value)


def test_unknown_attribute_of_a_job_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="'Job' object has no attribute 'staet'"):
        noop.delay().staet  # type: ignore[attr-defined] # noqa: B018


@task
def use(name: str) -> str:
    """Return what is said about an attribute of the running job."""
    try:
        return str(getattr(current_job(), name))
    except AttributeError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(other_systems.RUNNING))
def test_attribute_of_a_running_task_elsewhere_is_answered_with_ours(name):
    job = use.delay(name)

    run_pending()

    assert job.refresh().result == f"RunningJob has no {name!r}: use {other_systems.RUNNING[name]}"


@pytest.mark.parametrize("name", sorted(other_systems.MODULE))
def test_import_of_a_name_of_another_system_is_answered_with_ours(name):
    with pytest.raises(ImportError, match=f"django_tenantqueue has no {name!r}: use ") as caught:
        exec(f"from django_tenantqueue import {name}")
    assert other_systems.MODULE[name] in str(caught.value)
    assert name not in django_tenantqueue.__all__


def test_import_of_an_unknown_name_is_told_as_python_tells_it():
    with pytest.raises(ImportError, match="cannot import name 'tsak' from 'django_tenantqueue'"):
        exec("from django_tenantqueue import tsak")
    assert not hasattr(django_tenantqueue, "tsak")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (
            lambda: delayed(print, 1),
            r"delayed\(\) takes options by name.*: delayed\(function, queue=",
        ),
        (
            lambda: Report.delay(1),
            r"\.delay\(\) takes options.*: instance\.delay\(queue=…\)\.method",
        ),
        (lambda: delayed(Report)(1), r"instance\.delay\(queue=…\)\.method\(1, 2\)"),
    ],
)
def test_arguments_in_place_of_options_show_the_form(form, said):
    with pytest.raises(InvalidArgument, match=said):
        form()


def test_group_that_is_called_names_delay():
    with pytest.raises(TypeError, match=r"group\(\[task\.call\(1\), …\]\)\.delay\(on_end=…\)"):
        group([noop.call()])()


def test_group_of_several_arguments_names_the_list():
    with pytest.raises(InvalidArgument, match="one list of calls, not 2 arguments: group"):
        group(noop.call(), noop.call())  # type: ignore[arg-type]


def test_calls_that_are_piped_or_called_name_what_does_it():
    with pytest.raises(TypeError, match="use on_success=…"):
        noop.call() | noop.call()
    with pytest.raises(TypeError, match=r"a call is not called: use task\.delay"):
        noop.call()()


def test_option_among_the_arguments_is_answered_with_its_place():
    said = r"add: .*'countdown'; if the option is meant: use run_at=…, .*: add\.using\(…\)\.delay"
    for enqueue in (add.delay, add.using(queue="mail").delay, add.call):
        with pytest.raises(TypeError, match=said):
            enqueue(1, countdown=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"if the option is meant: add\.using\(queue=…\)\.delay"):
        add.delay(queue="mail")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'thrid'$"):
        add.delay(1, thrid=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'eta'; .*: delayed\(…, …\)"):
        delayed(Report.objects.create(title="x")).execute(eta=1)


@pytest.mark.parametrize(("old", "new"), [("then", "on_success"), ("on_done", "on_end")])
def test_other_names_of_what_follows_are_answered(old, new):
    for use in (noop.using, with_backoff, Report.delay):
        with pytest.raises(InvalidOption, match=f"unknown option '{old}': use {new}=…"):
            use(**{old: noop.call()})
    with pytest.raises(InvalidOption, match=rf"{old}=…: group\(…\)\.delay\(on_end=…\)"):
        group([noop.call()]).delay(**{old: noop.call()})
    with pytest.raises(InvalidOption, match="unknown option 'on_done': use on_end=…"):
        ConcurrentJobMonitor.objects.start("m", [], parallel=1, on_done=noop.call())


def test_function_of_a_worker_is_answered_with_the_hook():
    for name in ("on_success", "on_end"):
        with pytest.raises(InvalidOption, match=r"a method of hooks=…, of @task: success\(job, "):
            noop.using(**{name: print})


def test_options_of_a_group_are_no_arguments_of_delay():
    with pytest.raises(InvalidOption, match=r"parallel=…: options of a group come before delay"):
        group([noop.call()]).delay(parallel=5)


def test_option_that_a_task_has_as_a_parameter_is_an_argument():
    job = with_own_options.delay(1, countdown=3)

    assert job.args == {"args": [1], "kwargs": {"countdown": 3}}


def test_function_for_failures_is_answered_with_the_hook():
    with pytest.raises(InvalidOption, match=r"hooks=…, of @task, whose failure\(job\)"):
        task(name="tests.foreign", on_failure=print)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match=r"is the method failure\(job\) of hooks=…, of @task"):
        Serial("s", on_failure=print)  # type: ignore[arg-type]


def test_interval_names_its_unit():
    with pytest.raises(
        TypeError, match=r"Every\(300\): it takes no positional argument: Every\(sec"
    ):
        Every(300)  # type: ignore[misc]


def test_crontab_is_answered_with_its_five_fields():
    with pytest.raises(TypeError, match=r"Cron\(hour=…\): give one text of five fields: Cron\('30"):
        Cron(minute=30, hour=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'huor'"):
        Cron("* * * * *", huor=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("when", [Cron("1 * * * *", args=(1,)), Every(hours=2, overlap="skip")])
def test_times_of_a_schedule_are_copied_and_pickled(when):
    assert copy(when) == pickle.loads(pickle.dumps(when)) == replace(when) == when


def test_task_with_self_names_the_running_job():
    @task(name="tests.bound")
    def bound(self, number): ...

    for enqueue in (bound.delay, bound.call):
        with pytest.raises(TypeError, match=r"'number'; a task has no self: .* current_job\(\)"):
            enqueue(1)
    with pytest.raises(TypeError, match=r"too many positional arguments$"):
        delayed(Report.objects.create(title="x")).execute(1, 2, 3)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("countdown", "eta", "run_at"), "enqueue a task with run_at=… that enqueues the group"),
        (
            ("then", "on_end", "on_done", "on_success", "link_error"),
            r"{}=…: group\(…\)\.delay\(on_end=…\)",
        ),
        (
            ("expires_at", "max_attempts", "labels"),
            r"each call: group\(\[task\.using\({}=…\)\.call",
        ),
    ],
)
def test_option_that_a_group_has_not_says_how(names, said):
    for name in names:
        with pytest.raises(InvalidOption, match=said.format(name)):
            group([noop.call()]).using(**{name: 5})


def test_callback_of_a_group_is_named():
    with pytest.raises(InvalidArgument, match=r"takes no arguments: delay\(on_end=…\)"):
        group([noop.call()]).delay(noop.call())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not joined by \|: use group\(…\)\.delay\(on_end=…\)"):
        group([noop.call()]) | noop.call()


def test_group_behind_a_job_is_answered_with_a_task():
    with pytest.raises(InvalidOption, match="on_success: a group that follows a job, or is in "):
        noop.using(on_success=group([noop.call()]))
    with pytest.raises(InvalidArgument, match="is started by a task"):
        group([group([noop.call()])]).delay()


@pytest.mark.parametrize(
    ("positional", "named", "said"),
    [
        *(((wait,), {}, r"Retry\(.*\): use after=") for wait in (60, 0, timedelta(minutes=1))),
        *(
            ((), {name: 1}, rf"Retry\({name}=…\): use raise Retry\(after=seconds\)")
            for name in ("exc", "countdown")
        ),
    ],
)
def test_retry_names_its_time(positional, named, said):
    with pytest.raises(TypeError, match=said):
        Retry(*positional, **named)
    assert str(Retry(ValueError("busy"))) == "busy"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["TimeLimitExceeded", "WaitTimeout"])
def test_import_of_an_exception_names_its_module(name):
    with pytest.raises(ImportError, match=f"'{name}': it is in django_tenantqueue.exceptions"):
        exec(f"from django_tenantqueue import {name}")


class Hooks(TaskHooks):
    def failure(self, job: object) -> None:
        """Be called after the last attempt."""


class Misspelt(TaskHooks):
    def on_failure(self, job: object) -> None:
        """Never be called."""


class OfOldName(TaskHooks):
    def error(self, job: object, error: BaseException) -> None:
        """Never be called."""


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        (object(), "whose class inherits from django_tenantqueue.TaskHooks"),
        (Hooks, r"is a class: give an object, Hooks\(\)"),
        (TaskHooks(), "overrides none of the methods enqueue, before, success, attempt_failed"),
        (Misspelt(), r"has a method on_failure\(\), which is not called: name it failure\(job\)"),
        (
            OfOldName(),
            r"has a method error\(\), which is not called: name it attempt_failed\(job, ",
        ),
    ],
)
def test_hooks_that_would_not_be_called_are_refused(hooks, said):
    with pytest.raises(InvalidOption, match=said):
        task(name="tests.hooks", hooks=hooks)(lambda: None)


def test_backoff_is_no_truth_value():
    with pytest.raises(InvalidOption, match="backoff=True must be seconds"):
        with_backoff(backoff=True)


def test_job_outside_of_one_says_where_it_is():
    with pytest.raises(LookupError, match="nor where the task is called as a function; in tests"):
        current_job()


def test_status_url_without_the_urls_names_them(settings):
    settings.ROOT_URLCONF = "django.contrib.auth.urls"
    with pytest.raises(NoReverseMatch, match=r"lack path\('jobs/', include\('django_tenantqueue"):
        _ = noop.delay().status_url


def test_job_of_eager_mode_is_waited_for_and_refreshed():
    with eager():
        job = add.delay(1, 2)

    assert job._is_eager
    assert job.wait(timeout=0).result == 3  # also in a transaction
    assert async_to_sync(job.await_end)(timeout=0) is job
    assert job.refresh() is job
    assert not noop.delay()._is_eager


def test_wait_in_a_transaction_names_what_tests_use():
    with pytest.raises(Unsupported, match=r"In a TestCase use run_pending\(\) or eager\(\)"):
        noop.delay().wait(timeout=0)


def test_group_of_eager_mode_says_that_it_keeps_no_jobs():
    with eager():
        monitor = group([noop.call()]).delay()

    with pytest.raises(Unsupported, match="ran in eager mode, which stores no jobs"):
        monitor.details()


KNOWN = (
    other_systems.METHODS,
    other_systems.OPTIONS,
    other_systems.JOB,
    other_systems.RUNNING,
    other_systems.GROUP,
    other_systems.MONITOR,
    other_systems.CALL,
    other_systems.MODULE,
)


def test_what_other_names_are_answered_with_exists():
    from django_tenantqueue import states
    from django_tenantqueue.execution.current_job import RunningJob

    texts = "\n".join(text for known in KNOWN for text in known.values())
    for name in re.findall(r"\bjob\.(\w+)", texts):
        assert hasattr(Job, name), name
    for name in re.findall(r"current_job\(\)\.(\w+)", texts):
        assert hasattr(RunningJob, name), name
    for name in re.findall(r"\btask\.(\w+)", texts):
        assert hasattr(Task, name), name
    for name in re.findall(r"\bmonitor\.(\w+)", texts):
        assert hasattr(ConcurrentJobMonitor, name), name
    for name in re.findall(r"\b(?:and|has) (status, [\w, ]+)", texts):
        counts = set(re.findall(r"\w+", name)) - {"and"}
        assert counts <= {field.name for field in fields(Progress)}, counts
    for name in re.findall(r"\bcontrol\.(\w+)", texts):
        assert name in control.__all__, name
    for name in re.findall(r"\bState\.(\w+)", texts):
        assert hasattr(states.State, name), name
    for name in re.findall(r"raise (\w+)", texts):
        assert hasattr(exceptions, name), name


@pytest.mark.parametrize("module", [exceptions, signals])
def test_names_of_celery_are_answered_where_they_are_imported(module):
    for name, instead in module.ELSEWHERE.items():
        with pytest.raises(ImportError, match=re.escape(f"has no {name!r}: use {instead}")):
            exec(f"from {module.__name__} import {name}")
    with pytest.raises(ImportError, match="cannot import name 'Unheard'"):
        exec(f"from {module.__name__} import Unheard")


def test_unknown_method_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="'Task' object has no attribute 'dealy'") as caught:
        noop.dealy()  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.obj) == ("dealy", noop)


@pytest.mark.parametrize("name", sorted(other_systems.OPTIONS))
def test_option_of_another_system_is_answered_with_ours(name):
    assert name not in NAMES
    with pytest.raises(InvalidOption, match=f"unknown option '{name}': use ") as caught:
        noop.using(**{name: 1})
    assert other_systems.OPTIONS[name] in str(caught.value)
    with pytest.raises(InvalidOption, match=f"'{name}': use "):
        task(name="tests.foreign", **{name: 1})(lambda: None)


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
def with_own_options(number: int, countdown: int) -> None:
    """Take an argument that is an option elsewhere."""


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
