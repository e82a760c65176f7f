"""Requests and answers, as in the OpenAPI document."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from ...operations.enqueue import BULK_ROWS
from ...queries.lists import NEWEST
from ...settings import TEN_YEARS
from ...states import State

MOST_JOBS = BULK_ROWS
"""Jobs of one batch. They are one INSERT, if all of them are of one task with the same options."""
MOST_ID = NEWEST


_DATE = re.compile(r"\d{4}-")


def _text_only(value: Any) -> Any:
    # pydantic takes a number, also one in a text, for seconds since 1970
    if value is not None and not (isinstance(value, str) and _DATE.match(value)):
        raise ValueError("give a time as ISO 8601 text, such as 2030-01-31T12:00:00Z")
    return value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)  # PostgreSQL takes no offset of 16 hours or more
    except OverflowError:
        raise ValueError("give a time of the years 1 to 9999") from None


def _integral(value: Any) -> Any:
    # 7.0 is an integer in JSON Schema, and what JavaScript and some encoders write
    return int(value) if isinstance(value, float) and value.is_integer() else value


Moment = Annotated[AwareDatetime, BeforeValidator(_text_only), AfterValidator(_in_utc)]
Whole = Annotated[int, BeforeValidator(_integral), Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
QueueName = Annotated[str, Field(min_length=1, max_length=100)]
Priority = Annotated[Whole, Field(ge=-32768, le=32767)]
Slots = Annotated[Whole, Field(ge=0, le=1_000_000)]
Count = Annotated[Whole, Field(ge=1, le=1_000_000)]


class Input(BaseModel):
    """Base of requests. Unknown members are an error.

    Not a Schema of ninja, which is five times as slow with a batch.
    """

    model_config = ConfigDict(extra="forbid")


class UniqueInput(Input):
    """Which jobs are duplicates, for how long, and how a duplicate is handled."""

    mode: Literal["until_executing", "until_executed", "until_expired", "while_executing"] = (
        "until_executed"
    )
    key: Name | None = None
    """Default: the task and its arguments."""
    ttl_seconds: Annotated[Number, Field(gt=0, lt=TEN_YEARS)] | None = None
    on_conflict: Literal["return", "raise"] = "return"


class Submission(Input):
    """One job to enqueue. Defaults are those of the task and the settings."""

    task: Annotated[str, Field(min_length=1, max_length=500)]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    queue: QueueName | None = None
    priority: Priority | None = None
    """Lower runs first."""
    run_at: Moment | None = None
    delay_seconds: Annotated[Number, Field(ge=0, le=3_155_760_000)] | None = None
    """Seconds from now, in place of `run_at`."""
    expires_at: Moment | None = None
    """A job that has not started by then is cancelled."""
    session: Name | None = None
    """Jobs of one session run one after another."""
    limit_user: Name | None = None
    """User whose limit applies."""
    labels: Annotated[list[str], Field(max_length=100)] | None = None
    max_attempts: Annotated[Whole, Field(ge=1, le=32767)] | None = None
    timeout_seconds: Annotated[Number, Field(gt=0, lt=1e9)] | None = None
    unique: UniqueInput | None = None


class Batch(Input):
    """Many jobs, all or nothing."""

    jobs: Annotated[list[Submission], Field(min_length=1, max_length=MOST_JOBS)]


class JobChanges(Input):
    """Changes of a waiting job."""

    priority: Priority | None = None
    run_at: Moment | None = None


class QueueChanges(Input):
    """Changes of a queue. `null` is no limit."""

    num_slots: Slots | None = None
    weight: Annotated[Whole, Field(ge=1, le=1000)] = 1
    max_per_second: Annotated[Number, Field(ge=0.0001, le=1_000_000)] | None = None
    burst: Count | None = None
    max_waiting: Annotated[Whole, Field(ge=0, le=100_000_000)] | None = None
    paused: Flag = False
    retired: Flag = False


class SessionChanges(Input):
    """Changes of a session or a user limit. `paused: false` also ends a halt."""

    num_slots: Slots | None = None
    paused: Flag = False
    on_wait: Literal["", "block", "skip"] = ""
    on_failure: Literal["", "continue", "halt"] = ""


class MonitorChanges(Input):
    """Changes of a monitor."""

    parallel: Slots = 1
    interval_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 0.0
    priority: Priority = 0
    paused: Flag = False
    stop_after_failures: Count | None = None


class RoutingChanges(Input):
    """The queue of a routing."""

    queue: QueueName


class ScheduleChanges(Input):
    """Changes of a schedule. Of one that is declared in code, only `enabled`."""

    enabled: Flag = True
    kind: Literal["cron", "interval", "once"] = "cron"
    expression: Name = ""
    time_zone: Annotated[str, Field(max_length=100)] = ""
    queue: Annotated[str, Field(max_length=100)] = ""
    priority: Priority | None = None
    jitter_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 0.0
    catch_up: Literal["skip", "once", "all"] = "skip"
    overlap: Literal["allow", "skip"] = "allow"
    starts_at: Moment | None = None
    ends_at: Moment | None = None


class Submitted(Schema):
    """A stored job. `duplicate`: it existed before, with the same unique key."""

    id: int
    state: State
    duplicate: bool


class SubmittedBatch(Schema):
    """The ids of the jobs, in the order of the batch."""

    ids: list[int]


class Progress(Schema):
    """Progress that a task has reported."""

    done: float | None
    total: float | None
    percent: float | None
    message: str | None


class JobError(Schema):
    """A failed attempt."""

    at: str | None
    attempt: int | None
    error_class: str | None
    message: str | None


class JobSummary(Schema):
    """A job in a list."""

    id: int
    task: str
    queue: str
    state: State
    final: bool
    priority: int
    attempt: int
    max_attempts: int
    progress: Progress
    labels: list[str]
    created_by: str | None
    created_at: datetime
    run_at: datetime
    expires_at: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None


class JobDetails(JobSummary):
    """A job. Secret values are masked. `result_missing`: its result is no longer kept."""

    args: Any
    kwargs: Any
    result: Any
    result_missing: bool
    error: str | None
    errors: list[JobError]
    stats: Any


class JobPage(Schema):
    """A page of jobs, newest first. `next` is the `before` of the next page, null at the end.

    A page before the last may have fewer jobs than the limit.
    """

    items: list[JobSummary]
    next: int | None


class TaskDetails(Schema):
    """A task that the token may submit."""

    name: str
    signature: str
    description: str


class TaskList(Schema):
    """Tasks that the token may submit."""

    items: list[TaskDetails]


class QueueDetails(Schema):
    """A queue. `running` and `waiting` are counted up to 1,000."""

    id: int
    name: str
    num_slots: int | None
    weight: int
    max_per_second: float | None
    burst: int | None
    max_waiting: int | None
    paused: bool
    retired: bool
    running: int
    waiting: int


class QueuePage(Schema):
    """A page of queues. `next` is the `after` of the next page, null at the end."""

    items: list[QueueDetails]
    next: int | None


class SessionDetails(Schema):
    """A session (`serial`), or a user limit (`limit_user`). Counts are up to 1,000."""

    id: int
    kind: Literal["serial", "limit_user"]
    key: str
    num_slots: int | None
    paused: bool
    on_wait: Literal["", "block", "skip"]
    on_failure: Literal["", "continue", "halt"]
    halted_at: datetime | None
    halted_by: int | None
    inside: int
    waiting: int


class SessionPage(Schema):
    """A page of sessions. `next` is the `after` of the next page, null at the end."""

    items: list[SessionDetails]
    next: int | None


class MonitorDetails(Schema):
    """A monitor and its progress."""

    id: int
    name: str
    parallel: int
    interval_seconds: float
    priority: int
    paused: bool
    stop_after_failures: int | None
    created_at: datetime
    cancelled_at: datetime | None
    callback_job: int
    status: str
    total: int
    done: int
    failed: int
    cancelled: int
    running: int
    waiting: int
    percent: float | None
    ends_at: datetime | None


class MonitorPage(Schema):
    """A page of monitors, newest first. `next`: see JobPage."""

    items: list[MonitorDetails]
    next: int | None


class CancelledMonitor(Schema):
    """Number of details that ended at once."""

    ended: int


class ScheduleDetails(Schema):
    """A schedule, without its arguments."""

    id: int
    name: str
    task: str
    queue: str
    priority: int | None
    kind: Literal["cron", "interval", "once"]
    expression: str
    time_zone: str
    jitter_seconds: float
    catch_up: Literal["skip", "once", "all"]
    overlap: Literal["allow", "skip"]
    starts_at: datetime | None
    ends_at: datetime | None
    enabled: bool
    source: str
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: int | None
    failures: int
    last_error: str


class SchedulePage(Schema):
    """A page of schedules. `next` is the `after` of the next page, null at the end."""

    items: list[ScheduleDetails]
    next: int | None


class RoutingDetails(Schema):
    """A routing. New jobs whose name matches the pattern go to the queue."""

    pattern: str
    queue: str


class RoutingList(Schema):
    """All routings of a tenant. `next` is null, as on the last page of other lists."""

    items: list[RoutingDetails]
    next: None


class ProblemEntry(Schema):
    """A wrong value: its place in the request, and the reason."""

    at: str
    message: str


class Problem(Schema):
    """Problem details, RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemEntry] = []
    index: int | None = None
    """Index of the wrong job of a batch, from 0."""
    job: int | None = None
    """Id of the job that has the unique key."""
