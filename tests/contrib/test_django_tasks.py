"""The framework's documentation, sentence by sentence. Django 5.2 runs them on the backport."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django import VERSION
from django.core.checks import run_checks
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue import Serial, Unique, use_tenant
from django_tenantqueue.calls.sources import find_task, registered_tasks
from django_tenantqueue.contrib.django_tasks import TenantQueueBackend, TenantQueueTask, framework
from django_tenantqueue.contrib.django_tasks.framework import (
    InvalidTask,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from django_tenantqueue.exceptions import UnknownQueue, UnknownTask
from django_tenantqueue.models import Job, TaskControl
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.operations.control import cancel
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending
from tests.testapp.tasks import noop

from . import functions
from .functions import task

if VERSION >= (6, 0):
    from django.tasks import default_task_backend
    from django.tasks.exceptions import InvalidTaskBackend, TaskResultMismatch
else:
    from django_tasks import default_task_backend, exceptions
    from django_tasks.exceptions import TaskResultMismatch

    InvalidTaskBackend = getattr(exceptions, "InvalidTaskBackend", None) or (
        exceptions.InvalidTaskBackendError
    )

pytestmark = pytest.mark.django_db
BACKEND = "django_tenantqueue.contrib.django_tasks.TenantQueueBackend"


def ended(result: TaskResult) -> TaskResult:
    """Run what is pending; return the result, refreshed."""
    run_pending(scheduled=True)
    result.refresh()
    return result


@pytest.fixture
def sent() -> Iterator[list[tuple[str, Any, Any]]]:
    """Yield the signals that are sent: name, sender, status at that moment."""
    seen: list[tuple[str, Any, Any]] = []
    receivers = []
    for name, signal in (
        ("enqueued", task_enqueued),
        ("started", task_started),
        ("finished", task_finished),
    ):

        def receive(sender: Any, task_result: TaskResult, name: str = name, **kwargs: Any) -> None:
            seen.append((name, sender, TaskResultStatus(task_result.status)))

        signal.connect(receive)
        receivers.append((signal, receive))
    yield seen
    for signal, receive in receivers:
        signal.disconnect(receive)


# tasks


def test_module_is_djangos_own_from_django_6():
    module = "django.tasks.base" if VERSION >= (6, 0) else "django_tasks.base"
    assert framework.Task.__module__ == module


def test_decorator_makes_a_task_of_ours():
    assert isinstance(functions.add, TenantQueueTask)
    assert type(task_backends["default"]) is TenantQueueBackend
    assert functions.add.name == "add"
    assert functions.add.call(1, second=2) == 3


def test_all_features_are_supported():
    backend = task_backends["default"]
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_defaults_of_a_task():
    made = functions.add
    assert (made.priority, made.queue_name, made.backend) == (0, "default", "default")
    assert made.run_after is None
    assert not made.takes_context


@pytest.mark.parametrize(
    ("make", "name"),
    [(lambda: functions.add, "priority"), (lambda: functions.add.enqueue(1), "status")],
)
def test_attributes_cannot_be_modified(make: Any, name: str):
    with pytest.raises(AttributeError):
        setattr(make(), name, 10)


def test_using_leaves_the_task_as_it_is():
    moment = timezone.now()
    changed = functions.add.using(
        priority=5, queue_name="mail", run_after=moment, backend="limited"
    )
    assert (changed.priority, changed.queue_name) == (5, "mail")
    assert (changed.run_after, changed.backend) == (moment, "limited")
    assert functions.add.priority == 0
    assert changed.using(priority=6).queue_name == "mail"


def test_using_refuses_an_option_that_does_not_exist():
    with pytest.raises(TypeError, match="did you mean 'tenant'"):
        functions.add.using(tennant="acme")
    with pytest.raises(TypeError, match="'takes_context'"):
        functions.add.using(takes_context=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(({"priority": wrong}, "between -100 and 100") for wrong in (-101, 101, 1.5)),
        ({"run_after": datetime(2030, 1, 1)}, "aware"),  # noqa: DTZ001
        ({"max_attempts": 0}, "max_attempts=0"),
        ({"queue_name": "q" * 101}, "1 to 100"),
    ],
)
def test_task_is_invalid_when_an_option_is_wrong(options: dict[str, Any], said: str):
    with pytest.raises(InvalidTask, match=said):
        functions.add.using(**options)


def test_task_is_invalid_when_its_context_is_no_argument():
    with pytest.raises(InvalidTask, match="context"):
        task(takes_context=True)(functions.plain)


def test_task_is_invalid_when_it_is_local():
    def local() -> None: ...

    with pytest.raises(InvalidTask, match="module level"):
        task(local)


def test_task_is_invalid_when_the_backend_has_no_such_queue():
    with pytest.raises(InvalidTask, match="other"):
        functions.fail_until.using(queue_name="other")
    assert functions.add.using(queue_name="other").queue_name == "other"  # QUEUES is []


def test_run_after_cannot_be_declared():
    with pytest.raises(TypeError):
        task(run_after=timezone.now())(functions.plain)


def test_backend_is_invalid_when_it_is_not_declared():
    with pytest.raises(InvalidTaskBackend):
        task(backend="missing")(functions.plain)


@pytest.mark.skipif(VERSION < (6, 1), reason="Django 6.1 pickles tasks and declares options")
def test_task_is_pickled_with_its_options():
    changed = functions.add.using(tenant="acme", priority=3)
    assert pickle.loads(pickle.dumps(changed)) == changed


@pytest.mark.skipif((6, 0) <= VERSION < (6, 1), reason="Django 6.1 declares options")
def test_options_are_declared_with_the_task():
    declared = task(max_attempts=4, tenant="acme")(functions.plain)
    assert (declared.max_attempts, declared.tenant) == (4, "acme")


# enqueueing


def test_enqueue_makes_a_job_named_as_the_function():
    result = functions.add.enqueue(1, second=2)

    job = Job.objects.get(pk=int(result.id))
    assert job.task == "tests.contrib.functions.add"
    assert job.args == {"args": [1], "kwargs": {"second": 2}}
    assert (job.queue.name, job.max_attempts, job.state) == ("default", 1, State.READY)
    assert (result.status, result.is_finished, result.attempts) == ("READY", False, 0)
    assert (result.args, result.kwargs, result.backend) == ([1], {"second": 2}, "default")
    assert result.enqueued_at is not None
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None,) * 3
    assert (result.errors, result.worker_ids) == ([], [])
    assert result.task == functions.add
    assert isinstance(result.id, str)
    assert len(result.id) < 64


def test_job_is_enqueued_in_the_callers_transaction():
    with transaction.atomic():
        result = functions.add.enqueue(1)
        transaction.set_rollback(True)

    with pytest.raises(TaskResultDoesNotExist):
        functions.add.get_result(result.id)


def test_job_is_enqueued_after_the_commit_when_that_is_asked_for(
    django_capture_on_commit_callbacks: Any,
):
    with django_capture_on_commit_callbacks(execute=True):
        transaction.on_commit(partial(functions.add.enqueue, 1, second=2))
        assert not Job.objects.exists()

    assert Job.objects.get().task == "tests.contrib.functions.add"


def test_jobs_run_in_the_order_of_their_priorities():
    results = {
        priority: functions.add.using(priority=priority).enqueue(priority)
        for priority in (0, -100, 100, 5)
    }
    assert [str(job.pk) for job in run_pending()] == [
        results[priority].id for priority in (100, 5, 0, -100)
    ]
    assert functions.add.get_result(results[-100].id).task.priority == -100
    assert Job.objects.get(pk=results[0].id).priority == 240


def test_job_waits_when_run_after_has_not_come():
    moment = timezone.now() + timedelta(hours=1)
    result = functions.add.using(run_after=moment).enqueue(1)

    assert run_pending() == []
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert functions.add.get_result(result.id).task.run_after == moment
    assert ended(result).return_value == 1


def test_job_waits_when_run_after_is_a_timedelta():
    result = functions.add.using(run_after=timedelta(hours=1)).enqueue(1)

    assert run_pending() == []
    assert ended(result).return_value == 1
    with pytest.raises(InvalidTask, match="between -100 and 100"):
        functions.add.using(run_after=timedelta(hours=1), priority=101)


@pytest.mark.parametrize("value", [datetime(2030, 1, 1, tzinfo=UTC), date(2030, 1, 1), {1}, noop])
def test_enqueue_raises_typeerror_when_an_argument_is_no_json(value: Any):
    with pytest.raises(TypeError):
        functions.echo.enqueue(value)
    with pytest.raises(TypeError):
        functions.echo.enqueue(value=value)
    assert not Job.objects.exists()


def test_arguments_are_passed_after_a_round_trip():
    class Text(str):
        __slots__ = ()

    assert ended(functions.echo.enqueue((1, (2,), Text("x"), b"y"))).return_value == [
        *(1, [2], "x", "y")
    ]
    result = ended(functions.double_dictionary.enqueue((1, 2, 3)))
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].traceback.startswith("Traceback (most recent call last):")
    assert "unhashable type: 'list'" in result.errors[0].traceback


def test_arguments_that_do_not_fit_raise_an_error_at_the_enqueue():
    with pytest.raises(TypeError, match=r"functions\.add: too many positional arguments"):
        functions.add.enqueue(1, 2, 3)
    assert not Job.objects.exists()


def test_enqueue_validates_the_task_again():
    result = functions.add.using(queue_name="other")
    object.__setattr__(result, "backend", "limited")
    with pytest.raises(InvalidTask):
        result.enqueue(1)


def test_async_forms_do_the_same():
    async def journey() -> tuple[TaskResult, TaskResult]:
        result = await functions.async_add.aenqueue(1, second=2)
        await result.arefresh()
        with pytest.raises(TaskResultMismatch):
            await functions.add.aget_result(result.id)
        with pytest.raises(TaskResultDoesNotExist):
            await task_backends["default"].aget_result("0")
        return result, await functions.async_add.aget_result(result.id)

    first, second = async_to_sync(journey)()
    assert first.id == second.id
    assert first.enqueued_at == second.enqueued_at
    assert Job.objects.get(pk=first.id).is_async
    assert ended(first).return_value == 3


# results


def test_result_says_how_a_job_succeeded():
    result = functions.add.enqueue(1, 2)
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018 - it raises

    found = ended(result)
    assert (found.status, found.is_finished, found.return_value) == ("SUCCESSFUL", True, 3)
    assert found.enqueued_at <= found.started_at <= found.finished_at
    assert found.last_attempted_at == found.started_at
    assert (found.attempts, found.worker_ids, found.errors) == (1, ["0"], [])
    assert default_task_backend.get_result(found.id) == functions.add.get_result(found.id)


@pytest.mark.parametrize("declared", [functions.add, functions.async_add])
def test_result_is_the_one_that_is_read_back(declared: Any):
    result = declared.enqueue(1, second=2)
    read = task_backends["default"].get_result(result.id)

    assert result == read
    assert (result.task, result.args, result.kwargs) == (declared, [1], {"second": 2})
    assert result.enqueued_at == Job.objects.get(pk=int(result.id)).created_at
    assert result == async_to_sync(task_backends["default"].aget_result)(result.id)


@pytest.mark.parametrize(
    "given",
    [
        {"tenant": "acme"},
        {"session": Serial("order-17", on_wait="skip", on_failure="halt")},
        {"limit_user": "ann", "labels": ["nightly"], "created_by": "import"},
        {"max_attempts": 4, "timeout": 60, "hard_timeout": 90},
        {"run_after": timedelta(hours=1), "queue_name": "mail", "priority": 10},
    ],
)
def test_job_goes_to_the_same_place_when_the_task_of_a_result_is_enqueued(given: dict[str, Any]):
    result = functions.add.using(**given).enqueue(1, second=2)
    read = task_backends["default"].get_result(result.id)

    again = read.task.enqueue(1, second=2)

    assert result == read
    first, second = (Job.objects.get(pk=int(one.id)) for one in (read, again))
    for name in (
        *("tenant", "queue_id", "session_key", "session_skip", "session_halt", "limit_user"),
        *("labels", "created_by", "max_attempts", "timeout_seconds", "hard_timeout_seconds"),
        *(("priority", "run_at") if "run_after" in given else ()),
    ):
        assert getattr(first, name) == getattr(second, name), name


def test_tenant_of_a_result_is_that_of_the_job():
    with use_tenant("acme"):
        result = functions.add.enqueue(1, second=2)

    assert task_backends["default"].get_result(result.id).task.tenant == "acme"
    assert result.task.tenant == "acme"


def test_result_is_ready_when_a_worker_was_quicker(monkeypatch: pytest.MonkeyPatch):
    read = TenantQueueBackend.get_result

    def run_first(self: TenantQueueBackend, result_id: str) -> TaskResult:
        run_pending()
        return read(self, result_id)

    monkeypatch.setattr(TenantQueueBackend, "get_result", run_first)
    result = functions.add.enqueue(1, second=2)

    assert (result.status, result.started_at, result.attempts) == ("READY", None, 0)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value


def test_result_is_of_the_moment_when_it_was_read():
    result = functions.add.enqueue(1)
    before = functions.add.get_result(result.id)
    run_pending()
    assert before.status == TaskResultStatus.READY
    before.refresh()
    assert before.status == TaskResultStatus.SUCCESSFUL


@pytest.mark.parametrize("declared", [functions.fail, functions.async_fail])
def test_result_says_how_a_job_failed(declared: Any):
    result = ended(declared.enqueue("it broke"))

    assert (result.status, result.is_finished, result.attempts) == ("FAILED", True, 1)
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert "it broke" in error.traceback
    assert "functions.py" in error.traceback
    assert result.finished_at is not None
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018 - it raises


def test_error_names_a_class_of_the_project():
    (error,) = ended(functions.fail_locally.enqueue()).errors
    assert error.exception_class_path == "tests.contrib.functions.LocalError"
    assert error.exception_class is functions.LocalError


def test_job_fails_when_its_value_is_no_json():
    result = ended(functions.return_a_set.enqueue())
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class is TypeError


def test_result_has_failed_when_the_job_is_cancelled():
    result = functions.add.enqueue(1)
    cancel([int(result.id)])
    result.refresh()
    assert (result.status, result.errors, result.attempts) == ("FAILED", [], 0)


def test_result_does_not_exist():
    ours = noop.delay()
    for result_id in ("0", "nonsense", "-1", "9" * 30, str(ours.pk), "٣" * 20):
        with pytest.raises(TaskResultDoesNotExist):
            functions.add.get_result(result_id)


def test_result_of_another_task_is_a_mismatch():
    result = functions.add.enqueue(1)
    with pytest.raises(TaskResultMismatch):
        functions.echo.get_result(result.id)


def test_result_does_not_exist_when_its_cache_has_dropped_it(settings: Any):
    settings.TENANTQUEUE = {"RESULT_STORE": "default"}
    result = ended(functions.add.enqueue(1))
    assert result.return_value == 1
    from django.core.cache import cache

    cache.clear()
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


# the context


@pytest.mark.parametrize("declared", [functions.tell, functions.async_tell])
def test_context_tells_of_the_run(declared: Any):
    result = declared.using(queue_name="mail", priority=7, tenant="acme").enqueue(1, a=2)

    told = ended(result).return_value
    assert told == {
        "id": result.id,
        "attempt": 1,
        "attempts": 1,
        "status": "RUNNING",
        "args": [1],
        "kwargs": {"a": 2},
        "enqueued": True,
        "started": True,
        "queue": "mail",
        "priority": 7,
        "errors": [],
        "tenant": "acme",
    }


def test_context_tells_of_earlier_attempts():
    told = ended(functions.tell_in_second_attempt.enqueue()).return_value
    assert (told["attempt"], told["attempts"]) == (2, 2)
    assert told["errors"] == ["builtins.ValueError"]


def test_current_job_reports_progress_inside_of_a_task():
    result = ended(functions.report.enqueue(3))
    assert Job.objects.get(pk=result.id).progress_done == 3


# attempts


def test_job_runs_once_by_default():
    assert ended(functions.fail.enqueue("once")).attempts == 1


def test_job_is_retried_as_often_as_options_say():
    result = functions.fail_until.enqueue(3)
    run_pending()
    result.refresh()

    assert (result.return_value, result.attempts) == (3, 3)
    assert result.worker_ids == ["unknown", "unknown", "0"]
    assert len(result.errors) == 2
    assert result.enqueued_at <= result.started_at < result.last_attempted_at


def test_result_is_ready_when_another_attempt_is_due():
    result = functions.fail.using(max_attempts=2).enqueue("again")
    run_pending()
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == ("READY", 1, 1)
    assert result.started_at == result.last_attempted_at is not None
    assert ended(result).status == TaskResultStatus.FAILED
    assert len(result.errors) == 2


# signals


@pytest.mark.parametrize("declared", [functions.add, functions.async_add])
def test_signals_are_sent_when_a_job_succeeds(declared: Any, sent: list[Any]):
    result = declared.enqueue(1)
    assert sent == [("enqueued", TenantQueueBackend, "READY")]
    ended(result)
    assert sent[1:] == [
        ("started", TenantQueueBackend, "RUNNING"),
        ("finished", TenantQueueBackend, "SUCCESSFUL"),
    ]


@pytest.mark.parametrize("declared", [functions.fail, functions.async_fail])
def test_finished_is_sent_once_when_the_last_attempt_fails(declared: Any, sent: list[Any]):
    ended(declared.using(max_attempts=2).enqueue("twice"))
    assert [name for name, *_ in sent] == ["enqueued", "started", "started", "finished"]
    assert sent[-1][2] == TaskResultStatus.FAILED


def test_finished_is_sent_when_an_error_is_permanent(sent: list[Any]):
    ended(functions.fail_for_good.enqueue())
    assert [name for name, *_ in sent] == ["enqueued", "started", "finished"]


@pytest.mark.parametrize("declared", [functions.add, functions.async_add])
def test_receiver_is_given_the_whole_result(declared: Any):
    seen: list[TaskResult] = []

    def receive(task_result: TaskResult, **kwargs: Any) -> None:
        seen.append(task_result)
        assert Job.objects.filter(pk=task_result.id).exists()  # the ORM can be used

    async def areceive(task_result: TaskResult, **kwargs: Any) -> None:
        seen.append(task_result)

    task_finished.connect(receive)
    task_finished.connect(areceive)
    try:
        result = ended(declared.enqueue(1, second=2))
    finally:
        task_finished.disconnect(receive)
        task_finished.disconnect(areceive)
    assert len(seen) == 2
    assert (seen[0].return_value, seen[0].kwargs) == (3, {"second": 2})
    assert seen[0].enqueued_at == result.enqueued_at
    assert seen[0].finished_at is not None


def test_outcome_is_the_same_when_a_receiver_fails():
    def receive(**kwargs: Any) -> None:
        raise ZeroDivisionError

    task_started.connect(receive)
    try:
        assert ended(functions.add.enqueue(1)).return_value == 1
    finally:
        task_started.disconnect(receive)


def test_run_reads_no_row_when_only_the_framework_listens():
    counts = []
    for enqueue in (noop.delay, functions.report_nothing.enqueue, functions.tell.enqueue):
        enqueue()
        with CaptureQueriesContext(connection) as queries:
            run_pending()
        counts.append(len(queries))
    assert counts[0] == counts[1] == counts[2] - 1


# tenants, sessions, uniqueness


def test_tenant_is_the_current_one():
    with use_tenant("acme"):
        result = functions.add.enqueue(1)
    assert Job.objects.get(pk=result.id).tenant == "acme"
    assert functions.add.get_result(result.id).task.queue_name == "default"


def test_tenant_of_options_is_taken_when_there_is_no_current_one():
    assert Job.objects.get(pk=functions.fail_for_good.enqueue().id).tenant == "office"
    with use_tenant("acme"):
        result = functions.fail_for_good.enqueue()
    assert Job.objects.get(pk=result.id).tenant == "acme"
    result = functions.fail_for_good.using(tenant="other").enqueue()
    assert Job.objects.get(pk=result.id).tenant == "other"


def test_tenant_is_the_one_that_using_names():
    result = functions.add.using(tenant="acme", labels=["a"], created_by="7").enqueue(1)
    job = Job.objects.get(pk=result.id)
    assert (job.tenant, job.labels, job.created_by) == ("acme", ["a"], "7")


def test_jobs_of_a_session_run_one_after_another():
    first, second = (functions.add.using(session="s").enqueue(n) for n in (1, 2))
    assert Job.objects.get(pk=second.id).state == State.HELD
    assert functions.add.get_result(second.id).status == TaskResultStatus.READY
    assert [str(job.pk) for job in run_pending()] == [first.id, second.id]


def test_duplicate_is_the_existing_result(sent: list[Any]):
    unique = functions.add.using(unique=Unique("until_executed"))
    first = unique.enqueue(1, second=2)
    assert unique.enqueue(1, 2).id == first.id  # the arguments mean the same
    assert unique.enqueue(1, 3).id != first.id
    assert [name for name, *_ in sent] == ["enqueued", "enqueued"]


def test_options_of_the_backend_are_defaults():
    job = Job.objects.get(pk=functions.fail_for_good.using(timeout=5).enqueue().id)
    assert (job.max_attempts, job.timeout_seconds) == (3, 5)
    assert job.source_id == "limited"


# what workers and operators know of them


def test_task_control_pauses_the_function():
    TaskControl.objects.create(task="tests.contrib.functions.add", paused=True)
    waits, runs = functions.add.enqueue(1), functions.echo.enqueue(2)
    assert [str(job.pk) for job in run_pending()] == [runs.id]
    waits.refresh()
    assert waits.status == TaskResultStatus.READY


def test_task_is_found_by_its_path(monkeypatch: pytest.MonkeyPatch):
    path = functions.echo.module_path
    monkeypatch.delitem(registered_tasks(), path)  # as in a worker that has not imported it
    assert find_task(path).options.queue == "mail"
    assert path in registered_tasks()


def test_task_is_found_when_it_stands_under_another_name():
    sys.modules.pop("tests.contrib.early", None)
    registered_tasks().pop("tests.contrib.early.hidden", None)
    assert find_task("tests.contrib.early.hidden").name == "tests.contrib.early.hidden"


@pytest.mark.parametrize(
    "path",
    ["tests.contrib.functions.task", "os.system", "nothing.at.all", "nothing", "", ".", "a..b"],
)
def test_path_is_rejected_when_it_names_no_task(path: str):
    with pytest.raises(UnknownTask):
        find_task(path)


def test_job_waits_when_no_worker_knows_its_task():
    job = Job.objects.get(pk=functions.add.enqueue(1).id)
    Job.objects.filter(pk=job.pk).update(source_method="tests.contrib.functions.gone")

    with pytest.raises(LookupError, match=r"no task is named 'tests.contrib.functions.gone'"):
        run_pending()

    assert job.refresh().state == State.SCHEDULED


def test_job_is_enqueued_again_by_an_operator():
    first = functions.tell.using(backend="limited", priority=3).enqueue(1)
    again = enqueue_again(Job.objects.get(pk=first.id), (2,), {})

    told = ended(functions.tell.get_result(str(again.pk))).return_value
    assert (told["args"], told["priority"], told["attempt"]) == ([2], 3, 1)
    with pytest.raises(TypeError):
        enqueue_again(Job.objects.get(pk=functions.add.enqueue(1).id), (1, 2, 3), {})


def test_strict_queues_know_the_queues_that_tasks_name(settings: Any):
    settings.TENANTQUEUE = {"STRICT_QUEUES": True}
    functions.echo.using(tenant="strict").enqueue(1)  # it declares "mail"
    with pytest.raises(UnknownQueue, match="Did you mean 'mail'"):
        functions.echo.using(tenant="strict", queue_name="mial").enqueue(1)


def test_task_of_another_backend_runs_here_when_using_says_so(settings: Any):
    dummy = framework.BaseTaskBackend.__module__.replace("base", "dummy.DummyBackend")
    settings.TASKS = {**settings.TASKS, "dummy": {"BACKEND": dummy}}
    declared = task(backend="dummy")(functions.elsewhere)
    assert not isinstance(declared, TenantQueueTask)

    result = ended(declared.using(backend="default").enqueue(1))

    assert (result.return_value, result.backend) == (1, "default")
    assert find_task("tests.contrib.functions.elsewhere").options.queue in (None, "default")


def test_signature_is_without_the_context():
    known = find_task("tests.contrib.functions.tell")
    functions.tell.enqueue(1)
    job = Job.objects.get()
    assert known.source.name == job.task
    from django_tenantqueue.calls.known import known_signature

    signature = known_signature("task", "", job.task)
    assert signature is not None
    assert list(signature.parameters) == ["args", "kwargs"]


def test_alias_is_the_tasks_own_when_it_is_gone(settings: Any):
    result = functions.add.using(backend="limited").enqueue(1)
    assert functions.add.get_result(result.id).backend == "limited"
    settings.TASKS = {"default": settings.TASKS["default"]}
    found = ended(functions.add.get_result(result.id))
    assert (found.backend, found.return_value) == ("default", 1)


def test_task_runs_at_once_in_eager_mode(settings: Any):
    settings.TENANTQUEUE = {"EAGER": True}
    for declared in (functions.add, functions.async_add):
        result = declared.enqueue(1, second=2)
        assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 3, 1)
    assert functions.tell.enqueue().return_value["attempt"] == 1
    with pytest.raises(ValueError, match="no"):
        functions.fail.enqueue("no")


# configuration


def errors_of(settings: Any, **params: Any) -> list[str]:
    settings.TASKS = {"default": {"BACKEND": BACKEND, **params}}
    return [str(message.id) for message in task_backends["default"].check()]


def test_check_is_silent_when_all_is_well(settings: Any):
    assert errors_of(settings, QUEUES=["a"], OPTIONS={"tenant": "acme"}) == []
    if VERSION >= (6, 0):
        assert [m for m in run_checks() if "TASKS" in m.msg] == []


def test_check_finds_wrong_options(settings: Any):
    assert errors_of(settings, OPTIONS={"max_atempts": 3}) == ["tenantqueue.E012"]
    assert errors_of(settings, OPTIONS={"max_attempts": "3"}) == ["tenantqueue.E012"]
    assert errors_of(settings, OPTIONS={"queue": "x"}) == ["tenantqueue.E012"]
    assert errors_of(settings, QUEUES=["x" * 101]) == ["tenantqueue.E012"]


def test_check_finds_that_the_app_is_not_installed(settings: Any):
    backend = task_backends["default"]
    settings.INSTALLED_APPS = [
        app
        for app in settings.INSTALLED_APPS
        if not app.startswith(("django_tenantqueue", "tests.testapp"))
    ]
    assert [message.id for message in backend.check()] == ["tenantqueue.E011"]


def test_task_can_be_declared_before_the_models_are_loaded():
    code = (
        "import json; from django.conf import settings; settings.configure("
        "INSTALLED_APPS=['django_tenantqueue'], USE_TZ=True, "
        f"TASKS={{'default': {{'BACKEND': '{BACKEND}', 'QUEUES': []}}}}); "
        "import tests.contrib.early as early; import django; django.setup(); "
        "from django_tenantqueue.calls.sources import registered_tasks; "
        "print(json.dumps('tests.contrib.early.hello' in registered_tasks()))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, check=False, text=True
    )
    assert (done.stderr, json.loads(done.stdout or "null")) == ("", True)
