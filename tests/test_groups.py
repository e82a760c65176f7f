"""`group([...]).delay(on_end=…)`."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync

from django_tenantqueue import Placeholder, current_job, group, task
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption
from django_tenantqueue.execution import job_monitor
from django_tenantqueue.groups import DEFAULTS
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.testing import eager, run_pending
from tests.testapp.tasks import add, echo, fail, noop

pytestmark = pytest.mark.django_db


@task(name="groups.collect")
def collect() -> list[object]:
    summary = current_job().summary
    assert summary is not None
    return [[job.state, job.result] for job in summary.details()]


@task(name="groups.collect_async")
async def collect_async() -> list[object]:
    summary = await current_job().asummary()
    assert summary is not None
    return [[job.state, job.result] async for job in summary.adetails()]


def callback_of(monitor) -> Job:
    return Job.objects.get(pk=monitor.anchor_id)


@pytest.mark.parametrize("callback", [collect, collect_async])
def test_callback_has_the_results_in_the_order_of_the_calls(callback, monkeypatch):
    monkeypatch.setattr(job_monitor, "BATCH", 2)
    monkeypatch.setattr(job_monitor, "SMALL_BATCH", 2)
    calls = [add.call(1, 2), fail.using(max_attempts=1).call(), echo.call("x"), noop, echo.call(4)]

    monitor = group(calls).delay(on_end=callback)
    run_pending()

    assert callback_of(monitor).result == [
        ["success", 3],
        ["error", None],
        ["success", "x"],
        ["success", None],
        ["success", 4],
    ]


def test_group_takes_the_options_of_its_monitor():
    calls = group([noop.call()]).using(tenant="a", queue="q", priority=7).using(parallel=2)

    monitor = calls.using(name="import", session="s", created_by="eve").delay()
    run_pending()

    assert (monitor.name, monitor.tenant, monitor.priority) == ("import", "a", 7)
    assert (monitor.parallel, monitor.session_key, monitor.created_by) == (2, "a/s", "eve")
    (detail,) = monitor.details()
    assert (detail.state, detail.queue.name) == ("success", "q")


def test_option_that_is_none_is_the_default():
    options = dict.fromkeys(DEFAULTS)

    monitor = group([noop.call()]).using(parallel=2).using(**options).delay()

    usual = group([noop.call()]).delay()
    for name in ("name", "tenant", "priority", "parallel", "interval_seconds", "session_key"):
        assert getattr(monitor, name) == getattr(usual, name)
    started = ConcurrentJobMonitor.objects.start("m", [], parallel=1, priority=None)
    assert started.priority == usual.priority


def test_name_that_is_no_text_is_refused():
    with pytest.raises(InvalidOption, match="name=5: "):
        group([noop.call()]).using(name=5).delay()


def test_what_is_no_call_is_named():
    with pytest.raises(InvalidArgument, match=r"^calls\[1\] is None: give task"):
        group([noop.call(), None]).delay()
    with pytest.raises(InvalidArgument, match=r"^calls=5: give task"):
        group(5).delay()


def test_group_is_named_after_its_first_task():
    assert group([noop.call(), add.call(1)]).delay().name == noop.name
    assert group([]).delay().name == "group"


def test_unknown_option_is_refused():
    with pytest.raises(InvalidOption, match="did you mean 'parallel'"):
        group([noop]).using(paralel=3)


def test_callback_of_an_empty_group_runs():
    monitor = group([]).delay(on_end=collect)
    run_pending()

    assert callback_of(monitor).result == []


def test_chain_goes_on_after_a_group():
    call = collect.using(on_success=echo.using(tenant="b").call(Placeholder("result")))

    group([echo.call(1), echo.call(2)]).using(tenant="a").delay(on_end=call.call())
    *_, last = run_pending()

    assert (last.tenant, last.result) == ("b", [["success", 1], ["success", 2]])


def test_coroutines_start_groups():
    monitor = async_to_sync(group([echo.call(1)]).adelay)(on_end=collect)
    run_pending()

    assert callback_of(monitor).result == [["success", 1]]


@pytest.mark.parametrize("callback", [collect, collect_async])
def test_eager_mode_hands_the_results_to_the_callback(callback):
    results = []

    with eager():
        then = kept.call(Placeholder("result"))
        group([echo.call(1), noop]).delay(on_end=callback.using(on_success=then).call())
        results += kept_values

    assert results == [[["success", 1], ["success", None]]]


kept_values: list[object] = []


@task(name="groups.kept")
def kept(value: object) -> None:
    kept_values[:] = [value]
