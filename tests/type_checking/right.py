# pyright: strict
"""What the documentation shows. Only checkers read this."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, assert_type

from django.contrib.auth.models import User
from django.utils import timezone

from django_tenantqueue import (
    BoundTask,
    Call,
    ConcurrentJobMonitor,
    Cron,
    Delayable,
    Every,
    Group,
    Job,
    JobOptions,
    Placeholder,
    Priority,
    RunningJob,
    Serial,
    Task,
    TaskHooks,
    TaskOptions,
    Unique,
    current_job,
    delayed,
    group,
    task,
    use_tenant,
)

P = ParamSpec("P")
R = TypeVar("R")


@task(queue="reports", max_attempts=5, timeout=timedelta(minutes=5))
def build(order_id: int) -> str:
    return str(order_id)


@task
def send(page: str, to: str = "eve") -> None:
    print(page, to)


@task(on_success=send.call(Placeholder("result")))
async def fetch(url: str, *, retries: int = 3) -> bytes:
    return url.encode() * retries


@task
def notify() -> None:
    """Look at what has ended."""
    running = current_job()
    assert_type(running, RunningJob)
    previous, summary = running.previous, running.summary
    if previous is not None:
        print(previous.pk, previous.result, previous.last_error)
    if summary is not None:
        print(summary.succeeded, [job.result for job in summary.details()])


# options


def options() -> None:
    assert_type(build(1), str)
    assert_type(build.delay(order_id=1), Job)
    assert_type(build.using(queue="x", priority=Priority.ADMIN).delay(1), Job)
    assert_type(build.call(1), Call)
    build.using(run_at=5, expires_at=timezone.now(), session=7).delay(1)
    build.using(session=Serial(7, on_wait="skip", on_failure="halt")).delay(1)
    build.using(run_at=timedelta(days=1), labels=["a"], limit_user="eve").delay(1)
    build.using(tenant=None, unique=None, on_success=None).delay(1)


def wrapped(order_id: int, **options: Unpack[JobOptions]) -> Job:
    return build.using(**options).delay(order_id)


def chosen(urgent: bool) -> BoundTask[[int]]:
    found: JobOptions = {"queue": "urgent"} if urgent else {}
    return build.using(**found)


def in_tenant() -> None:
    with use_tenant("acme"):
        wrapped(7, priority=120)


# chains and groups


def chain(order_id: int) -> None:
    archive = send.using(tenant="storage", queue="slow").call(Placeholder("result"))
    last = send.using(session=f"order:{order_id}", on_success=archive).call(
        Placeholder("result"), to="bo"
    )
    build.using(tenant="acme", on_success=last, on_end=notify).delay(order_id)
    build.using(on_success=[send.call(Placeholder("result")), notify]).delay(order_id)
    user = User.objects.get()
    build.using(on_end=(user, "email_user", ("Done",))).delay(order_id)


def groups(order_id: int) -> None:
    monitor = group(send.call("a", to) for to in ("eve", "bo")).delay(
        on_end=send.using(on_success=notify).call("b")
    )
    assert_type(monitor, ConcurrentJobMonitor)
    made = group([build.call(order_id), notify]).using(tenant="acme", parallel=5, interval=0.5)
    assert_type(made, Group)
    made.delay(on_end=notify)
    group((User.objects.all(), "email_user", ("Hello",))).delay()


def monitors(calls: list[Call]) -> None:
    monitor = ConcurrentJobMonitor.objects.start(
        "letters", (send.call(page) for page in "abc"), parallel=2, on_end=notify, keep_open=True
    )
    assert_type(monitor.add(calls), int)
    monitor.close()
    print(monitor.progress().total, [detail.pk for detail in monitor.details()])


def many() -> None:
    assert_type(build.enqueue_many([1, 2]), list[int])
    build.using(queue="x").enqueue_many(range(3))
    build.enqueue_many([{"order_id": 1}, (2,)])
    send.enqueue_many(["a", "b"])
    send.enqueue_many([("a", "eve"), ("b", "bo")])
    send.enqueue_many({"page": page, "to": "eve"} for page in "ab")


# schedules and uniqueness


@task(schedule="30 3 * * *")
def nightly() -> None: ...


@task(schedule=Cron("0 7 * * mon", time_zone="Europe/Berlin", args=("a",), catch_up="once"))
def weekly(name: str) -> None:
    print(name)


@task(schedule=Every(minutes=5, overlap="skip"), max_per_second=2.5, burst=10)
def often(at: datetime | None = None) -> None:
    print(at)


@task(unique=Unique())
def once(report_id: int) -> None:
    print(report_id)


def key_of(report_id: int) -> str:
    return f"report {report_id}"


@task(unique=Unique("until_expired", key=key_of, ttl=600))
def in_ten_minutes(report_id: int) -> None:
    print(report_id)


def unique() -> None:
    rule = Unique("until_executing", on_conflict="reschedule", ttl=timedelta(hours=1))
    print(once.using(unique=rule).delay(1).duplicate)


# hooks, retries


class Watched(TaskHooks):
    def __init__(self) -> None:
        self.errors: dict[int, BaseException] = {}

    def enqueue(self, job: Job) -> None:
        print(job.pk)

    def attempt_failed(self, job: RunningJob, error: BaseException) -> None:
        self.errors[job.id] = error

    def failure(self, job: RunningJob) -> None:
        print(job.task, job.attempt, self.errors.pop(job.id))

    def success(self, job: RunningJob, result: Any) -> None:
        print(job.tenant, job.queue, result)


@task(hooks=Watched(), retry_when=(OSError, ValueError), backoff=10, atomic=True, secret="card")
def charge(card: str) -> None:
    print(card)


@task(retry_when=OSError, backoff=lambda attempt, error: timedelta(seconds=attempt))
def charge_again(card: str) -> None:
    print(card)


@task(retry_when=lambda error: "busy" in str(error), backoff_max=timedelta(hours=1))
def charge_later() -> None:
    current_job().progress(1, 2, "half")
    current_job().stats["rows"] = 7


# coroutines


async def view() -> None:
    assert_type(await build.adelay(1), Job)
    assert_type(await fetch.using(queue="x").adelay("https://example.com", retries=1), Job)
    await build.aenqueue_many([1, 2])
    await group([build.call(1)]).adelay(on_end=notify)
    running = current_job()
    print(await running.amonitor(), await running.asummary(), await running.aprevious())


# methods and functions that are no tasks


class Tools(Delayable):
    @classmethod
    def make(cls, number: int) -> int:
        return number


def close_month(year: int, month: int) -> None:
    print(year, month)


def methods(user: User) -> None:
    assert_type(delayed(close_month, tenant="acme")(2026, month=11), Job)
    assert_type(delayed(build)(7), Job)
    assert_type(delayed(user, queue="mail").email_user("Hello", "…"), Job)
    assert_type(delayed(Tools).make(7), Job)
    assert_type(Tools.delay.make(7), Job)
    assert_type(Tools().delay(priority=120).make(7), Job)


# an option of an own app: docs/howto/type-checking.md


def delivery_task(
    carrier: Literal["bike", "van"], **options: Unpack[TaskOptions]
) -> Callable[[Callable[P, R]], Task[P, R]]:
    own: dict[str, Any] = {"carrier": carrier}
    return task(**options, **own)


@delivery_task("van", queue="deliveries")
def deliver(parcel_id: int) -> str:
    return str(parcel_id)


def deliveries() -> None:
    assert_type(deliver(1), str)
    deliver.delay(1)
