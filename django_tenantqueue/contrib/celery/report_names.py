"""Names of Celery: the section of the guide that each belongs to, and where its meaning differs."""

from __future__ import annotations

import re
from typing import NamedTuple

PAGE = "docs/howto/coming-from-celery.md"
SECTIONS = {
    "app": "The Celery app and its settings",
    "tasks": "Tasks and retries",
    "calls": "Calls",
    "results": "Results and progress",
    "limits": "Time limits, rates and queues",
    "hooks": "Hooks, signals and base classes",
    "canvas": "Chains, groups and chords",
    "schedules": "Schedules",
    "workers": "Workers",
    "monitoring": "Monitoring and remote control",
    "tests": "Tests",
}
"""Headings of the guide, in the order of the report."""
ABOUT = {
    "tasks": "failed tasks are retried, and runs whose worker died are repeated, by default",
    "canvas": "callbacks of groups, and on_end, run after failures, too",
    "monitoring": "what watches Celery sees no jobs: read what shows the same here",
}
"""What is true of all lines of a section."""
STARTS = ("delay", "apply_async", "delay_on_commit", "apply_async_on_commit")
ON_COMMIT = "a job is part of the transaction, so it needs no on_commit()"


class Entry(NamedTuple):
    """The section that a name belongs to, where its meaning differs, and what it is."""

    section: str
    warning: str = ""
    what: str = ""


# [table], and then lines "section: names what = warning". Names in the first two tables are
# patterns of full names, and of settings in lower case without CELERY_: the first that is found
# counts. `what` an attribute is: "->@result" makes a result when it is called.
_TEXT = rf"""
[names]
hooks: ^celery\.signals\.task_(failure|retry) = this signal has no exception here
hooks: ^celery\.(signals|Task\b|app\.task|task\.Task) ^celery\.contrib\.django\.task ^celery_once
schedules: \bsolar\b = solar schedules are missing
schedules: ^celery\.(schedules|beat) ^django_celery_beat
limits: ^celery\.exceptions\.\w*TimeLimit ^kombu\.(Queue|Exchange|common)
tasks: ^celery\.exceptions\.(Ignore|Reject|\w*Retr)
results: ^celery\.(result|states|exceptions\.(Timeout|TaskRevoked)) ^django_celery_results
canvas: ^celery\.(canvas\.)?_?chord\b = the callback runs after failed jobs, too, without results
canvas: ^celery\.(canvas\.)?_?chain\b = a result is passed on only where Placeholder asks for it
canvas: ^celery\.(canvas|group|signature|subtask|maybe_signature|chunks|x\w*map)\b
tests: ^celery\.contrib\.(testing|pytest)
monitoring: ^celery\.(worker\.control|events|app\.control)
workers: ^celery\.(worker|bin|concurrency)
tasks: ^celery\.(app\.)?(shared_task|task|current_task)
monitoring: ^(sentry_sdk|raven|opentelemetry|elasticapm|ddtrace|newrelic|rollbar|bugsnag|scout)
monitoring: ^(flower|celery_exporter|prometheus|django_prometheus|health_check|django_structlog)
app: .
[settings]
calls: priority = a lower number runs first, 240 is the default
calls: serializer accept_content = arguments and results are JSON
tests: eager
schedules: beat schedul
tasks: acks reject_on = a run whose worker dies is repeated while attempts are left
limits: (?<!soft_)time_limit = a run that is killed is repeated while attempts are left
limits: rate_limit = a rate counts all workers
limits: soft_time_limit annotations route queue exchange routing_key
results: expires = a result stays until retention removes its job
results: result track_started
monitoring: send_.*event flower monitor
workers: worker concurrency prefetch pool
app: .
[options]
tasks: acks_late reject_on_worker_lost = a run whose worker dies is repeated while attempts are left
tasks: max_retries retry_kwargs = max_attempts counts the first run, max_retries does not
tasks: default_retry_delay = the wait grows with each attempt, up to backoff_max
tasks: retry_backoff = the wait is 1, 2, 4, … s ± 20 %, and not a random time up to it
tasks: dont_autoretry_for retry_jitter = missing here
tasks: autoretry_for retry_backoff_max bind name shared throws track_started typing trail abstract
calls: priority = another scale: a lower number runs first, 240 is the default
calls: serializer = arguments and results are JSON
calls: compression connection exchange headers producer retry retry_policy shadow = missing here
calls: args kwargs countdown eta expires
results: ignore_result = a job keeps its result
results: task_id = an id is a number that PostgreSQL gives
limits: time_limit = a run that is killed is repeated while attempts are left
limits: soft_time_limit = it does not interrupt a call into C
limits: rate_limit = a rate counts all workers
limits: queue routing_key
hooks: base before_start on_success on_retry on_failure after_return
canvas: link
canvas: link_error = on_end runs after a success, too
[options of retry]
tasks: args kwargs = the next attempt has the arguments of this one
tasks: exc = the stored error says that the task asked for a retry
tasks: max_retries = it belongs to the task, and max_attempts counts the first run
tasks: throw countdown eta
[@task]
calls: delay apply_async ->@result
calls: delay_on_commit apply_async_on_commit ->@result = {ON_COMMIT}
calls: apply ->@result = it runs here and now
app: app @app
tasks: request @request
tasks: retry
tasks: max_retries = max_attempts counts the first run, max_retries does not
results: AsyncResult ->@result
results: update_state
canvas: s si signature subtask ->@canvas
canvas: chunks map starmap replace ->@canvas = missing here
[@canvas]
calls: delay apply_async apply ->@result
canvas: clone link set ->@canvas
canvas: link_error on_error ->@canvas = on_end runs after a success, too
[@result]
results: children collect date_done failed forget info maybe_throw parent ready results successful
results: get wait join join_native = wait() does not raise what the task raised
results: id task_id = an id is a number
results: state status = the states have other names
results: result = it is None after an error
monitoring: revoke
[@result_class]
results: restore ->@result
[@app]
calls: send_task ->@result = a job is enqueued by its task, which must be importable
tasks: task @decorator
tasks: register_task ->@task
tasks: tasks
results: AsyncResult GroupResult ->@result
hooks: Task @task_class
canvas: signature ->@canvas
schedules: add_periodic_task on_after_configure on_after_finalize
monitoring: control @control
app: conf @conf
app: *
[@control]
monitoring: inspect ->@control
monitoring: *
[@request]
tasks: id root_id parent_id = an id is a number
tasks: retries = attempt counts the first run, retries does not
tasks: called_directly = current_job() raises LookupError where no job runs
tasks: *
[roles]
@task_class: Task DjangoTask
@app_class: Celery
@result_class: AsyncResult GroupResult EagerResult
@decorator: shared_task task periodic_task
@app: current_app
@task: current_task
->@canvas: chain chord group signature subtask Signature maybe_signature chunks xmap
"""
TABLES: dict[str, dict[str, Entry]] = {}
for _line in _TEXT.strip().splitlines():
    if _line.startswith("["):
        _table = TABLES.setdefault(_line.strip("[]"), {})
    else:
        _section, _, _rest = _line.partition(": ")
        _names, _, _warning = _rest.partition(" = ")
        _words = _names.split()
        _what = _words.pop() if _words[-1].startswith(("@", "->")) else ""
        _table.update(dict.fromkeys(_words, Entry(_section, _warning, _what)))
MADE_BY = {"@task_class": "@task", "@app_class": "@app", "@result_class": "@result"}
"""What a class makes."""


def section_of(name: str, table: str) -> Entry:
    """Return the entry of the first pattern that is in the name."""
    return next(found for pattern, found in TABLES[table].items() if re.search(pattern, name))


def anchor(section: str) -> str:
    """Return the address of a section of the guide."""
    return f"{PAGE}#{re.sub(r'[^a-z -]', '', SECTIONS[section].lower()).replace(' ', '-')}"
