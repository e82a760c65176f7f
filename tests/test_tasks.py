"""@task, .using(), .delay(), delayed() and Delayable, as users call them."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue import Priority, Task, Unique, delayed, task
from django_tenantqueue.calls.arguments import decode_args
from django_tenantqueue.calls.call import read_calls
from django_tenantqueue.calls.sources import describe_method, resolve
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption, NotAllowed
from django_tenantqueue.models import Job
from django_tenantqueue.operations import enqueue
from django_tenantqueue.queries import enqueue as enqueue_queries
from django_tenantqueue.queries import unique as unique_queries
from django_tenantqueue.testing import run_pending
from tests import sample_tasks
from tests.factories import make_queue
from tests.testapp.models import Plain, Report
from tests.testapp.tasks import add, async_add, echo, noop, whoami

pytestmark = pytest.mark.django_db
NAIVE = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)
WEST = timezone.get_fixed_timezone(-720)


def ran(job: Job) -> Job:
    run_pending()
    return job.refresh()


# calls


def test_function_runs_at_once_when_it_is_called():
    assert add(1, second=2) == 3
    assert not Job.objects.exists()


def test_result_is_stored_when_a_job_has_run():
    job = ran(add.delay(1, second=2))

    assert (job.state, job.result, job.attempt) == ("success", 3, 1)
    assert job.created_at <= job.queued_at <= job.started_at <= job.finished_at


def test_coroutine_runs_when_it_is_enqueued():
    job = async_add.delay(1, 2)

    assert job.is_async
    assert ran(job).result == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'first'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"third": 3}, "unexpected keyword argument 'third'"),
    ],
    ids=["missing", "too many", "unexpected"],
)
def test_call_is_refused_when_it_does_not_fit_the_function(args, kwargs, message):
    with pytest.raises(TypeError, match=f"tests.testapp.tasks.add: .*{message}"):
        add.delay(*args, **kwargs)
    assert not Job.objects.exists()


def test_job_is_returned_with_its_columns_when_it_is_enqueued(django_assert_num_queries):
    job = add.using(tenant="acme").delay(1)

    with django_assert_num_queries(0):
        assert job.pk == job.id
        assert job.state == "ready"
        assert job.task == "tests.testapp.tasks.add"
        assert job.priority == Priority.USER
        assert job.max_attempts == 5
        assert str(job) == f"tests.testapp.tasks.add #{job.pk}"
    assert job.args == {"args": [1]}


async def _adelay() -> tuple[Job, list[int]]:
    return await add.adelay(1), await add.using(tenant="acme").aenqueue_many([(1, 2), {"first": 3}])


def test_async_twins_enqueue_when_they_are_awaited():
    job, ids = async_to_sync(_adelay)()

    assert sorted(done.result for done in run_pending()) == [1, 3, 3]
    assert Job.objects.filter(pk__in=[job.pk, *ids]).count() == 3


def test_calls_may_be_tuples_dicts_or_single_arguments_when_many_are_enqueued():
    ids = add.using(tenant="acme").enqueue_many([(1, 2), {"first": 3, "second": 4}, 5])

    results = {job.pk: job.result for job in run_pending()}
    assert [results[job_id] for job_id in ids] == [3, 7, 5]


def test_nothing_happens_when_no_calls_are_enqueued():
    assert add.enqueue_many([]) == []


def test_nothing_is_stored_when_one_of_many_calls_does_not_fit():
    with pytest.raises(TypeError, match="too many"):
        add.enqueue_many([(1, 2), (1, 2, 3)])

    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("options", "statement"),
    [
        ({}, "insert_jobs"),
        ({"limit_user": "7"}, "insert_jobs"),
        ({"unique": Unique("until_executed")}, "insert_unique_jobs"),
    ],
)
def test_statements_are_bounded_when_many_big_calls_are_enqueued(options, statement, monkeypatch):
    monkeypatch.setattr(enqueue, "BATCH_BYTES", 50_000)
    where = unique_queries if "unique" in options else enqueue_queries
    insert, sizes = getattr(where, statement), []

    def noting(wrapper, row):
        sizes.append(len(row["args"]))
        return insert(wrapper, row)

    monkeypatch.setattr(where, statement, noting)
    bound = echo.using(tenant=make_queue().tenant, **options)
    ids = bound.enqueue_many(f"{number} {'x' * 20_000}" for number in range(10))

    assert len(ids) == Job.objects.count() == 10
    assert len(sizes) == 4
    assert max(sizes) < 70_000


# options


def test_times_of_any_offset_are_stored():
    at = datetime(2070, 1, 1, tzinfo=timezone.get_fixed_timezone(-1138))

    job = noop.using(run_at=at, expires_at=at + timedelta(days=1)).delay().refresh()

    assert (job.run_at, job.expires_at) == (at, at + timedelta(days=1))


def test_columns_are_filled_when_options_are_given():
    at = datetime(2070, 1, 1, tzinfo=UTC)
    job = (
        noop.using(tenant="acme", queue="reports", priority=Priority.ADMIN_HIGH, run_at=at)
        .using(expires_at=timedelta(hours=1), max_attempts=7, timeout=timedelta(minutes=1))
        .using(labels=["nightly", "büro"], created_by="ann")
        .delay()
        .refresh()
    )

    assert (job.queue.tenant, job.queue.name) == ("acme", "reports")
    assert (job.priority, job.lane) == (120, 120)
    assert (job.state, job.run_at) == ("scheduled", at)
    assert timedelta(minutes=59) < job.expires_at - timezone.now() < timedelta(minutes=61)
    assert (job.max_attempts, job.timeout_seconds) == (7, 60.0)
    assert (job.labels, job.created_by) == (["nightly", "büro"], "ann")


def test_options_apply_to_all_when_many_are_enqueued():
    ids = noop.using(tenant="acme", priority=7, labels=["a"]).enqueue_many([()] * 3)

    rows = Job.objects.filter(pk__in=ids).values_list("queue__tenant", "priority", "labels")
    assert list(rows) == [("acme", 7, ["a"])] * 3


def test_last_value_wins_when_an_option_is_given_twice():
    bound = noop.using(priority=1, tenant="acme")

    assert bound.using(priority=2).delay().priority == 2
    assert bound.delay().priority == 1


def test_default_counts_when_an_option_is_none():
    assert noop.using(priority=3).using(priority=None).delay().priority == Priority.DEFAULT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"priorty": 1}, "unknown option 'priorty': did you mean 'priority'"),
        ({"colour": 1}, "unknown option 'colour': known are callback_url, created_by"),
        ({"priority": "high"}, "priority='high': it must be an int from -32768 to 32767"),
        ({"priority": 32768}, "priority=32768: it must be an int"),
        ({"priority": True}, "priority=True: it must be an int"),
        ({"tenant": 5}, "tenant=5: it must be a str"),
        ({"tenant": "a\x00"}, "without NUL"),
        ({"tenant": "a" * 201}, "at most 200 characters"),
        ({"queue": ""}, "queue='': it must be from 1 to 100"),
        ({"run_at": NAIVE}, "is naive: use django.utils.timezone"),
        ({"run_at": timedelta.max}, "it must be at most 100 years"),
        ({"expires_at": datetime.max.replace(tzinfo=WEST)}, "its year must be from 1900 to 8999"),
        ({"run_at": "5"}, "run_at='5': it must be an aware datetime, or a timedelta or seconds"),
        ({"expires_at": "soon"}, "expires_at='soon'"),
        ({"max_attempts": 0}, "max_attempts=0: it must be an int from 1 to 32767"),
        ({"timeout": -1}, "timeout=-1: it must be seconds or a timedelta, above 0"),
        ({"timeout": True}, "timeout=True"),
        ({"labels": "nightly"}, "labels='nightly': it must be a list of str"),
        ({"labels": [1]}, "labels=1: it must be a str"),
        ({"created_by": 1}, "created_by=1"),
    ],
    ids=str,
)
def test_option_is_refused_when_it_is_wrong(options, message):
    with pytest.raises(InvalidOption) as caught:
        noop.using(**options)
    assert message in str(caught.value)

    with pytest.raises(InvalidOption):
        delayed(Report, **options)


@pytest.mark.parametrize("text", ["a\x00", "\ud800", "ü\x00", "ü\udfff"], ids=ascii)
@pytest.mark.parametrize(
    "option", ["tenant", "queue", "labels", "created_by", "session", "limit_user"]
)
def test_option_is_refused_when_it_cannot_be_stored(option, text):
    with pytest.raises(InvalidOption, match=f"^{option}=.* NUL characters and lone surrogates"):
        noop.using(**{option: [text] if option == "labels" else text})
    assert noop.using(**{option: ["ü😀"] if option == "labels" else "ü😀"}).delay().pk


def test_options_of_the_task_count_when_none_are_given():
    @task(name="tests.with_options", queue="mail", priority=5, max_attempts=2, tenant="acme")
    def with_options() -> None:
        """Do nothing."""

    job = with_options.delay().refresh()

    assert (job.task, job.queue.name, job.queue.tenant) == ("tests.with_options", "mail", "acme")
    assert (job.priority, job.max_attempts) == (5, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quue": "mail"}, "unknown option 'quue': did you mean 'queue'"),
        ({"priority": "x"}, "priority='x'"),
        ({"retry_when": 5}, "retry_when=5 must be an exception class"),
        ({"backoff": "long"}, "backoff='long' must be seconds, a timedelta or a callable"),
    ],
    ids=str,
)
def test_declaration_is_refused_when_an_option_is_wrong(options, message):
    def function() -> None:
        """Do nothing."""

    with pytest.raises(InvalidOption, match=message):
        task(name="tests.wrong", **options)(function)


def test_declaration_is_refused_when_a_coroutine_is_to_be_atomic():
    async def function() -> None:
        """Do nothing."""

    with pytest.raises(InvalidOption, match="a coroutine cannot be atomic"):
        task(name="tests.wrong", atomic=True)(function)


def test_declaration_is_refused_when_no_worker_could_find_the_function():
    with pytest.raises(InvalidOption, match="is local to a function"):

        @task
        def local() -> None:
            """Do nothing."""


def test_declaration_is_refused_when_options_are_not_named():
    with pytest.raises(InvalidOption, match="options must be named"):
        task("mail")


def test_function_keeps_its_name_and_doc_when_it_is_a_task():
    assert isinstance(add, Task)
    assert (add.__name__, add.__doc__) == ("add", "Return the sum.")
    assert repr(add) == "<Task tests.testapp.tasks.add>"


def test_job_runs_at_its_time_when_it_is_enqueued_for_later():
    later = noop.using(run_at=timedelta(hours=1)).delay()
    past = noop.using(run_at=timezone.now() - timedelta(hours=1)).delay()

    assert (later.state, past.state) == ("scheduled", "ready")
    assert [job.pk for job in run_pending()] == [past.pk]
    assert [job.pk for job in run_pending(scheduled=True)] == [later.pk]


# delayed() and Delayable


def test_method_of_an_instance_runs_on_the_loaded_row_when_it_is_delayed():
    report = Report.objects.create(title="Sales")

    job = ran(report.delay(priority=3, tenant="acme").execute("pdf"))

    assert (job.result, job.priority, job.queue.tenant) == ("Sales as pdf", 3, "acme")
    assert (job.task, job.source_type, job.source_id) == (
        "testapp.Report.execute",
        "testapp.report",
        str(report.pk),
    )
    report.refresh_from_db()
    assert report.rows == 1


@pytest.fixture
def archive(monkeypatch):
    """A second alias, of the same database."""
    monkeypatch.setitem(connections.databases, "archive", connections.databases["default"])
    connections["archive"] = connections["default"]
    yield "archive"
    del connections["archive"]


@pytest.mark.parametrize("form", ["instance", "queryset"])
def test_instance_is_loaded_from_the_database_it_came_from_when_it_is_delayed(form, archive):
    report = Report.objects.create(title="Sales")
    rows = Report.objects.using(archive)
    if form == "instance":
        source = describe_method(rows.get(pk=report.pk), "execute")
    else:
        (call,) = read_calls((rows, "execute"))
        source = call.source

    assert (source.source_type, source.source_id) == ("testapp.report@archive", str(report.pk))
    assert source.name == "testapp.Report.execute"
    method, _ = resolve(source.source_type, source.source_id, source.source_method)
    assert method.__self__._state.db == archive


@pytest.mark.parametrize("form", ["argument", "instance", "queryset"])
def test_instance_is_loaded_from_the_primary_when_it_was_read_from_a_replica(form, archive):
    """A replica lags, and the worker's machine may have none."""
    Report.objects.create(title="Sales", rows=1)
    with override_settings(DATABASE_ROUTERS=["tests.test_tasks.ReadsArchive"]):
        rows = Report.objects.all()
        assert rows.get()._state.db == archive
        same = echo.using(unique=Unique("until_executed"))
        if form == "argument":
            job = same.delay(rows.get())
            assert same.delay(Report.objects.using("default").get()).pk == job.pk
            (loaded,), _named = decode_args(json.dumps(job.args), {})
        else:
            source = describe_method(rows.get(), "execute")
            if form == "queryset":
                (call,) = read_calls((rows, "execute"))
                source = call.source
            loaded = resolve(source.source_type, source.source_id, "execute")[0].__self__

    assert (loaded.title, loaded._state.db) == ("Sales", "default")


class ReadsArchive:
    """Reads from a replica, whose alias is `archive`."""

    def db_for_read(self, model, **hints):
        return "archive"

    def db_for_write(self, model, **hints):
        return "default"


@pytest.mark.parametrize("form", ["mixin", "function"])
def test_class_method_runs_when_it_is_delayed(form):
    Report.objects.create(title="Sales")

    job = Report.delay.count() if form == "mixin" else delayed(Report, tenant="acme").count()

    assert ran(job).result == 1


def test_job_ends_for_good_when_its_instance_was_deleted():
    report = Report.objects.create(title="Sales")
    job = report.delay(max_attempts=5).execute()
    report.delete()

    job = ran(job)

    assert (job.state, job.attempt) == ("error", 1)
    assert "testapp.Report" in job.last_error["message"]
    assert "does not exist any more" in job.last_error["message"]


def test_instance_is_refused_when_it_is_not_saved():
    with pytest.raises(InvalidArgument, match=r"testapp\.Report is not saved yet"):
        delayed(Report(title="new")).execute()
    with pytest.raises(InvalidArgument, match=r"testapp\.Report is not saved yet"):
        Report(title="new").delay.execute()


def test_method_is_refused_when_its_class_is_neither_delayable_nor_listed():
    plain = Plain.objects.create(title="x")

    with pytest.raises(NotAllowed, match=r"Plain\.execute may not be run: give the class the Del"):
        delayed(plain).execute()

    with override_settings(TENANTQUEUE={"CALLABLES": ["tests.testapp.models.Plain.*"]}):
        assert ran(delayed(plain).execute()).result == "x"


def test_run_is_refused_when_the_list_has_changed_since_the_enqueue():
    plain = Plain.objects.create(title="x")
    with override_settings(TENANTQUEUE={"CALLABLES": ["tests.testapp.models.Plain.execute"]}):
        job = delayed(plain, max_attempts=5).execute()

    job = ran(job)

    assert (job.state, job.attempt) == ("error", 1)
    assert "may not be run" in job.last_error["message"]


@pytest.mark.parametrize("method", ["_secret", "_meta", "_state"])
def test_method_is_refused_when_it_has_a_leading_underscore(method):
    report = Report.objects.create(title="x")

    with pytest.raises(NotAllowed, match=f"'{method}' has a leading underscore"):
        getattr(report.delay, method)


def test_method_is_refused_when_there_is_none():
    report = Report.objects.create(title="x")

    with pytest.raises(InvalidArgument, match=r"testapp.Report has no method 'exectue'"):
        report.delay.exectue()
    with pytest.raises(InvalidArgument, match=r"testapp.Report has no method 'title'"):
        report.delay.title()


@override_settings(TENANTQUEUE={"CALLABLES": ["tests.sample_tasks.*"]})
def test_call_is_refused_when_it_does_not_fit_what_is_delayed():
    report = Report.objects.create(title="x")

    with pytest.raises(TypeError, match=r"^testapp\.Report\.execute: too many positional"):
        report.delay.execute("pdf", 2)
    with pytest.raises(TypeError, match=r"^testapp\.Report\.execute: .*'sort'"):
        delayed(report).execute(sort="pdf")
    with pytest.raises(TypeError, match=r"^tests\.testapp\.models\.Report\.count: too many"):
        Report.delay.count(1)
    with pytest.raises(TypeError, match=r"Tools\.make: missing a required argument: 'value'"):
        delayed(sample_tasks.Tools).make()
    with pytest.raises(TypeError, match=r"Tools\.fixed: too many"):
        delayed(sample_tasks.Tools).fixed(1)
    with pytest.raises(TypeError, match=r"listed_function: missing a required argument"):
        delayed(sample_tasks.listed_function)()
    assert not Job.objects.exists()


@override_settings(TENANTQUEUE={"CALLABLES": ["tests.sample_tasks.*"]})
def test_method_is_refused_when_its_instance_would_be_left_behind():
    with pytest.raises(InvalidArgument, match=r"use delayed\(instance\)\.of_instances\(…\)"):
        delayed(sample_tasks.tools.of_instances)
    assert ran(delayed(sample_tasks.Tools.make)(7)).result == 7


def test_method_of_instances_is_refused_when_it_is_delayed_on_the_class():
    with pytest.raises(InvalidArgument, match="is a method of instances"):
        Report.delay.execute()


LISTED = {"CALLABLES": ["tests.sample_tasks.listed_function", "tests.sample_tasks.Tools.*"]}


@override_settings(TENANTQUEUE=LISTED)
def test_function_runs_when_it_is_listed():
    job = ran(delayed(sample_tasks.listed_function, tenant="acme")(4, second=5))

    assert job.result == [4, 5]
    assert job.task == "tests.sample_tasks.listed_function"


@override_settings(TENANTQUEUE=LISTED)
def test_methods_of_a_class_run_when_they_are_listed():
    assert ran(delayed(sample_tasks.Tools).make(7)).result == 7
    assert ran(delayed(sample_tasks.Tools).fixed()).result == "fixed"
    with pytest.raises(InvalidArgument, match="is a method of instances"):
        delayed(sample_tasks.Tools).of_instances()
    with pytest.raises(InvalidArgument, match="has no method 'attribute'"):
        delayed(sample_tasks.Tools).attribute()


def test_function_is_refused_when_it_is_not_listed():
    with pytest.raises(NotAllowed, match="listed_function may not be run: make it a @task"):
        delayed(sample_tasks.listed_function)


@override_settings(TENANTQUEUE={"CALLABLES": ["tests.*", "os.*"]})
def test_function_is_refused_when_it_is_hidden_although_all_are_listed():
    with pytest.raises(NotAllowed, match="leading underscore"):
        delayed(sample_tasks._hidden_function)
    with pytest.raises(NotAllowed, match="leading underscore"):
        delayed(os._exit)


@pytest.mark.parametrize("target", [5, "text", lambda: None], ids=["int", "str", "lambda"])
def test_target_is_refused_when_it_is_nothing_that_can_be_named(target):
    with pytest.raises(InvalidArgument):
        delayed(target)


def test_task_is_enqueued_when_it_is_given_to_delayed():
    assert ran(delayed(add, tenant="acme")(1, 2)).result == 3


def test_forged_row_is_not_run_when_it_names_something_else():
    job = noop.delay()
    for source_type, source_id, method in (
        ("callable", "", "os:system"),
        ("callable", "", "tests.sample_tasks:_hidden_function"),
        ("class", "tests.sample_tasks:Tools", "fixed"),
        ("testapp.plain", "1", "execute"),
    ):
        Job.objects.filter(pk=job.pk).update(
            source_type=source_type, source_id=source_id, source_method=method
        )
        job = ran(job)
        assert (job.state, job.result) == ("error", None)
        assert job.last_error["class"].endswith(".NotAllowed")
        job = noop.delay()


# eager mode


@override_settings(TENANTQUEUE={"EAGER": True})
def test_job_runs_in_place_when_mode_is_eager():
    job = add.using(tenant="acme").delay(1, 2)

    assert (job.state, job.result, job.attempt) == ("success", 3, 1)
    assert job.pk < 0
    assert async_add.delay(1, 2).result == 3
    assert not Job.objects.exists()


@override_settings(TENANTQUEUE={"EAGER": True})
def test_tenant_is_set_when_mode_is_eager():
    assert whoami.using(tenant="acme").delay().result["tenant"] == "acme"


@override_settings(TENANTQUEUE={"EAGER": True})
def test_error_surfaces_when_mode_is_eager():
    with pytest.raises(ValueError, match="it failed"):
        sample_tasks.raises.delay("it failed")


@override_settings(TENANTQUEUE={"EAGER": True})
def test_arguments_are_encoded_when_mode_is_eager():
    assert echo.delay((1, 2)).result == [1, 2]
    with pytest.raises(InvalidArgument, match="argument 1 is of type object"):
        echo.delay(object())


@override_settings(TENANTQUEUE={"EAGER": True})
def test_methods_run_in_place_when_mode_is_eager():
    report = Report.objects.create(title="Sales")

    assert report.delay.execute("pdf").result == "Sales as pdf"
    assert all(job_id < 0 for job_id in add.enqueue_many([(1, 2), (3, 4)]))


@pytest.mark.parametrize("name", ["run_at", "expires_at"])
def test_unix_timestamp_is_refused_where_seconds_from_now_are_meant(name):
    with pytest.raises(InvalidOption, match="Give an aware datetime instead of a Unix timestamp"):
        noop.using(**{name: time.time() + 60})
    with pytest.raises(InvalidOption, match=name):
        noop.using(**{name: float("nan")})
    assert noop.using(**{name: timedelta(days=365 * 50)})


def test_option_of_a_task_is_named_as_one_where_jobs_have_none():
    with pytest.raises(InvalidOption, match="unknown option 'backoff': it is an option of @task"):
        noop.using(backoff=3)
    with pytest.raises(InvalidOption, match=r"known are .*unique"):
        noop.using(colour=1)


def test_user_that_is_a_row_is_told_from_who_made_the_job():
    with pytest.raises(InvalidOption, match=r"is created_by=str\(request.user.pk\)"):
        noop.using(limit_user=object())
