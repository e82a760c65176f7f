"""A job is enqueued again from its page, with other arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from django_tenantqueue import Serial, Unique, task
from django_tenantqueue.admin.job_again import _restored
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from django_tenantqueue.status.masking import MASK
from tests.factories import made_changes, make_job, make_queue
from tests.operations.monitors import start
from tests.sample_tasks import Colour, keeps_all_secret, signs_in
from tests.testapp.models import Report
from tests.testapp.tasks import add, echo, noop

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
ROW = {"__tenantqueue__": "model", "model": "testapp.report", "value": 7}
ROWS = (
    ROW,
    {**ROW, "using": "nowhere"},
    [{"deeper": ROW}],
    {"__tenantqueue__": "date", "value": ROW},
)
"""Ways to ask whether there is a row, as arguments."""


def page_of(job: Job) -> str:
    return url_of("job", "again", job.pk)


def values(**edits: Any) -> dict[str, Any]:
    """Return what the form posts."""
    return {
        "args": "[]",
        "kwargs": "{}",
        "queue": "default",
        "priority": "240",
        "run_at": "",
        **{
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in edits.items()
        },
    }


def again(client: Client, job: Job, **edits: Any) -> Job:
    """Enqueue a job again; return the new job."""
    newest = Job.objects.order_by("-pk").values_list("pk", flat=True)[0]
    response = client.post(page_of(job), values(**edits))
    assert response.status_code == 302, text_of(response)
    new = Job.objects.filter(pk__gt=newest).get()
    assert response["Location"] == url_of("job", "change", new.pk)
    return new


def refused(client: Client, job: Job, **edits: Any) -> str:
    """Return what the form says to values that it rejects."""
    count, changes = Job.objects.count(), Change.objects.count()
    response = client.post(page_of(job), values(**edits))
    assert response.status_code == 200
    assert (Job.objects.count(), Change.objects.count()) == (count, changes)
    return text_of(response)


def columns(job: Job) -> dict[str, Any]:
    return Job.objects.filter(pk=job.pk).values().get()


def test_form_shows_the_arguments_as_json(admin_client: Client) -> None:
    job = make_job(
        make_queue("acme", "mail"), args={"args": [1], "kwargs": {"second": [2]}}, priority=120
    )

    response = admin_client.get(page_of(job))

    content = response.content.decode()
    for part in ("[\n  1\n]", escape('{\n  "second": [\n    2\n  ]\n}'), 'value="mail"', '"120"'):
        assert part in content, part


def test_new_job_has_the_edited_values_and_the_old_one_stays(admin_client: Client) -> None:
    make_queue("acme", "mail")
    old = add.using(tenant="acme").delay(1, second=2)
    control.cancel([old.pk])
    before = columns(old)
    later = (timezone.now() + timedelta(days=1)).replace(microsecond=0)

    new = again(
        admin_client,
        old,
        args=[1],
        kwargs={"second": 5},
        queue="mail",
        priority=100,
        run_at=later.strftime("%Y-%m-%dT%H:%M:%S"),
    )

    assert columns(old) == before
    assert new.args == {"args": [1], "kwargs": {"second": 5}}
    assert (str(new.queue), new.priority, new.run_at) == ("acme / mail", 100, later)
    assert (new.state, new.attempt) == ("scheduled", 0)
    change = Change.objects.get(action="enqueue_again")
    assert change.object_ids == [old.pk, new.pk]
    assert change.before == {"job": old.pk, "priority": 240, "queue": "acme / default"}
    assert change.after["job"] == new.pk
    assert change.after["arguments"] == ["second"]
    assert (change.actor, change.source, change.tenant) == ("admin", "admin", "acme")


def test_everything_else_is_kept(admin_client: Client) -> None:
    expires = timezone.now() + timedelta(days=1)
    old = noop.using(
        tenant="ac/me",
        queue="default",
        max_attempts=7,
        timeout=11,
        hard_timeout=22,
        labels=["a", "b"],
        created_by="17",
        session=Serial("led/ger", on_wait="skip", on_failure="halt"),
        limit_user="ada",
        expires_at=expires,
    ).delay()

    new = again(admin_client, old)

    kept = (
        "queue_id",
        "task",
        "source_type",
        "source_method",
        "max_attempts",
        "timeout_seconds",
        "hard_timeout_seconds",
        "labels",
        "created_by",
        "session_key",
        "session_skip",
        "session_halt",
        "limit_user",
        "expires_at",
        "args",
        "context",
    )
    old_columns, new_columns = columns(old), columns(new)
    assert {name: new_columns[name] for name in kept} == {name: old_columns[name] for name in kept}


def test_past_expiry_is_that_of_the_task_or_none(admin_client: Client) -> None:
    expiring = task(name="tests.expiring", expires_at=timedelta(hours=1))(lambda: None)
    past = timezone.now() - timedelta(hours=1)
    ours = {"task": expiring.name, "source_method": expiring.name, "expires_at": past}

    own = again(admin_client, make_job(make_queue("acme"), **ours))
    none = again(admin_client, make_job(make_queue("beta"), expires_at=past))

    assert own.expires_at is not None
    assert own.expires_at > timezone.now()
    assert none.expires_at is None


def test_what_the_job_carries_is_kept_and_not_that_of_the_operator(admin_client: Client) -> None:
    Colour.value = "green"
    carried = make_job(make_queue("acme"), context={"colour": "red", "language": "de"})
    empty = make_job(make_queue("beta"))

    assert again(admin_client, carried).context == {"colour": "red", "language": "de"}
    assert again(admin_client, empty).context is None
    Colour.value = None


def test_detail_of_a_monitor_becomes_a_job_of_its_own(admin_client: Client) -> None:
    monitor = start([noop.call()])
    detail = Job.objects.filter(task=noop.name).order_by("pk")[0]

    page = text_of(admin_client.get(page_of(detail)))
    new = again(admin_client, detail)

    assert f"It is no detail of monitor #{monitor.pk}." in page
    assert new.monitor_id is None
    assert new.state == State.READY


def test_method_of_an_object_is_enqueued_again(admin_client: Client) -> None:
    report = Report.objects.create(title="Sales")
    old = report.delay(tenant="acme").execute("pdf")

    new = again(admin_client, old, args=["html"])

    assert (new.source_type, new.source_id, new.args) == (
        "testapp.report",
        str(report.pk),
        {"args": ["html"]},
    )
    assert "got an unexpected keyword argument" in refused(
        admin_client, old, kwargs={"colour": "red"}
    )


def test_values_of_other_types_are_kept(admin_client: Client) -> None:
    report = Report.objects.create(title="Sales")
    given = [datetime(2026, 3, 1, tzinfo=UTC), Decimal("1.50"), report, timedelta(days=2)]
    old = echo.using(tenant="acme").delay(given)

    new = again(admin_client, old, args=Job.objects.get(pk=old.pk).args["args"])

    assert new.args == Job.objects.get(pk=old.pk).args


def test_no_other_row_can_be_entered_than_the_job_has(admin_client: Client) -> None:
    report, other = (Report.objects.create(title=title) for title in ("Sales", "Other"))
    old = echo.using(tenant="acme").delay([report])
    entry = Job.objects.get(pk=old.pk).args["args"][0][0]

    new = again(admin_client, old, args=[[1, entry]])
    text = refused(admin_client, old, args=[[{**entry, "value": other.pk}]])

    assert new.args == {"args": [[1, entry]]}
    assert "'model'} cannot be entered" in text.replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"args": "[1,"}, "This is not JSON: Expecting value: line 1 column 4"),
        ({"args": "{}"}, "Give a list:"),
        ({"kwargs": "[]"}, "Give an object:"),
        ({"args": "[NaN]"}, "NaN is not a JSON number"),
        *(({"args": "[" * n + "]" * n}, "It is nested too deeply.") for n in (2000, 90000)),
        ({"args": []}, "missing a required argument: 'first'"),
        ({"args": [1, 2, 3]}, "too many positional arguments"),
        ({"args": [1], "kwargs": {"third": 1}}, "got an unexpected keyword argument 'third'"),
        ({"args": ["\x00"]}, "argument 1 contains a NUL character"),
        ({"args": [{"__tenantqueue__": "date", "value": "soon"}]}, "'soon' is not a date."),
        ({"args": [{"__tenantqueue__": "date", "value": "2026-13-01"}]}, "month must be in"),
        ({"args": [{"__tenantqueue__": "date"}]}, "object with “__tenantqueue__” has no 'value'"),
        ({"args": [{"__tenantqueue__": "decimal", "value": "x"}]}, "ConversionSyntax"),
        ({"args": [{"__tenantqueue__": "star"}]}, "{'__tenantqueue__': 'star'} cannot be entered"),
        *(({"args": [value]}, "{'__tenantqueue__': 'model'} cannot be entered") for value in ROWS),
        ({"args": [1], "kwargs": {"__tenantqueue__": "tenant"}}, "the name is reserved"),
        ({"args": [1], "queue": "mial"}, "has no queue “mial”: add it first."),
        ({"args": [1], "priority": "40000"}, "less than or equal to 32767"),
        ({"args": [1], "run_at": "9999-01-01T00:00:00"}, "its year must be from 1900 to 8999"),
        ({"args": [MASK]}, "args[0]: “••••••” hides no value here."),
    ],
)  # fmt: skip
def test_form_says_what_is_wrong(admin_client: Client, edits: dict[str, Any], told: str) -> None:
    job = make_job(make_queue("acme"), source_method=add.name, args={"args": [1]})

    assert told in refused(admin_client, job, **edits).replace("&#x27;", "'")


def test_job_that_cannot_run_leads_back_with_a_reason(admin_client: Client) -> None:
    unknown = make_job(task="shop.gone", source_method="shop.gone")
    gone = make_job(source_type="testapp.report", source_id="7", source_method="execute")
    homeless = make_job()
    TenantQueue.objects.filter(pk=homeless.queue_id).delete()

    for job, told in (
        (unknown, "no task is named 'shop.gone' here"),
        (gone, "testapp.Report '7' does not exist any more"),
        (homeless, "Its queue was deleted"),
    ):
        response = admin_client.get(page_of(job), follow=True)
        assert response.redirect_chain[0][0] == url_of("job", "change", job.pk)
        assert told in text_of(response).replace("&#x27;", "'")


def test_queue_with_blanks_in_its_name_is_kept(admin_client: Client) -> None:
    queue = make_queue("acme", " mail ")

    new = again(admin_client, make_job(queue, task=noop.name), queue=" mail ")

    assert new.queue_id == queue.pk


def test_full_and_retired_queues_are_reported(admin_client: Client) -> None:
    queue = make_queue("acme", max_waiting=1)
    job = make_job(queue)

    assert "queue 'default' of tenant 'acme' is full" in refused(admin_client, job).replace(
        "&#x27;", "'"
    )
    TenantQueue.objects.filter(pk=queue.pk).update(retired=True)
    assert "is retired and takes no new jobs" in refused(admin_client, job)


@pytest.mark.parametrize("on_conflict", ["return", "raise"])
def test_duplicate_is_reported_in_words(admin_client: Client, on_conflict: str) -> None:
    unique = Unique("until_executed", on_conflict=on_conflict)
    once = task(name=f"tests.once_{on_conflict}", unique=unique)(lambda number: None)
    old = once.using(tenant="acme").delay(1)

    text = refused(admin_client, old, args=[1])
    assert f"Nothing was enqueued: #{old.pk} has the same unique key." in text
    new = again(admin_client, old, args=[2])

    assert new.unique_key
    assert new.unique_key != old.refresh().unique_key


def test_rejected_duplicate_says_that_it_is_cancelled(admin_client: Client) -> None:
    once = task(name="tests.once", unique=Unique("until_executed", on_conflict="reject"))(
        lambda: None
    )
    old = once.using(tenant="acme").delay()

    response = admin_client.post(page_of(old), values(), follow=True)

    assert "It was cancelled at once: another job has its unique key." in text_of(response)


def test_key_of_the_call_is_kept(admin_client: Client) -> None:
    old = noop.using(tenant="acme", unique=Unique("until_executed", key="daily")).delay()
    control.cancel([old.pk])

    assert again(admin_client, old).unique_key == "acme/daily"


def test_masked_values_are_kept_unless_they_are_typed_again(admin_client: Client) -> None:
    old = signs_in.using(tenant="acme").delay("ada", "hunter2", card="4111")

    content = admin_client.get(page_of(old)).content.decode()
    assert "hunter2" not in content
    assert "4111" not in content
    assert f"{MASK} stands for a hidden value." in content
    kept = again(admin_client, old, args=["bob", MASK], kwargs={"card": MASK})
    typed = again(admin_client, old, args=["ada", MASK], kwargs={"card": "42"})

    assert (kept.args["args"], kept.args["kwargs"]) == (["bob", "hunter2"], {"card": "4111"})
    assert kept.args["secret"] == [1, "card"]
    assert (typed.args["args"], typed.args["kwargs"]) == (["ada", "hunter2"], {"card": "42"})
    changes = [after["arguments"] for _, _, after in made_changes()]
    assert changes == [["#1"], ["card"]]
    assert "hunter2" not in str(made_changes())


@pytest.mark.parametrize("mark", [[1, "card"], True])
def test_values_stay_hidden_that_the_task_no_longer_declares_as_secret(
    admin_client: Client, mark: Any
) -> None:
    @task(name="tests.was_secret")
    def was_secret(user: str, password: str, **options: str) -> None:
        """Take arguments that were secret once."""

    call = {"args": ["ada", "hunter2"], "kwargs": {"card": "4111"}, "secret": mark}
    old = make_job(make_queue("acme"), source_method=was_secret.name, args=call)
    shown = [MASK, MASK] if mark is True else ["ada", MASK]

    new = again(admin_client, old, args=shown, kwargs={"card": MASK})
    page = admin_client.get(url_of("job", "change", new.pk)).content.decode()

    assert new.args["args"] == ["ada", "hunter2"]
    assert "hunter2" not in page
    assert "4111" not in page


def test_mask_in_another_place_is_refused(admin_client: Client) -> None:
    old = signs_in.using(tenant="acme").delay("ada", "hunter2")

    text = refused(admin_client, old, args=["ada"], kwargs={"password": MASK})

    assert "kwargs['password']: “••••••” hides no value here." in text.replace("&#x27;", "'")


def test_task_that_is_wholly_secret_is_enqueued_again(admin_client: Client) -> None:
    old = keeps_all_secret.using(tenant="acme").delay({"a": 1}, 2)

    new = again(admin_client, old, args=[MASK, MASK])

    assert new.args == Job.objects.get(pk=old.pk).args


@pytest.mark.parametrize(
    ("edited", "shown", "stored", "expected"),
    [
        ([MASK, 1], [MASK, 1], ["a", 1], ["a", 1]),
        ([1, MASK], [MASK, 1], ["a", 1], None),
        ([MASK], [MASK, MASK], ["a", "b"], None),
        ({"x": [{"y": MASK}]}, {"x": [{"y": MASK}]}, {"x": [{"y": "a"}]}, {"x": [{"y": "a"}]}),
        ({"x": MASK}, {"y": MASK}, {"y": "a"}, None),
        ({"x": {"y": MASK}}, {"x": MASK}, {"x": {"y": "a"}}, None),
        (MASK, MASK, {"all": 1}, {"all": 1}),
    ],
)
def test_masks_are_replaced_where_they_were_shown(
    edited: Any, shown: Any, stored: Any, expected: Any
) -> None:
    if expected is None:
        with pytest.raises(ValidationError):
            _restored("args", edited, shown, stored)
    else:
        assert _restored("args", edited, shown, stored) == expected


def test_arguments_that_are_too_long_are_kept(admin_client: Client) -> None:
    old = echo.using(tenant="acme").delay("x" * 300_000)

    page = text_of(admin_client.get(page_of(old)))
    new = again(admin_client, old, args=["y"])

    assert "Its arguments are too long to be edited here" in page
    assert new.args == Job.objects.get(pk=old.pk).args


def test_it_needs_the_permissions_to_add_and_to_change(operator: Callable[..., Client]) -> None:
    job = make_job(make_queue("acme"))
    page = url_of("job", "change", job.pk)

    for allowed in (("view_job",), ("view_job", "add_job"), ("view_job", "change_job")):
        client = operator(*allowed)
        assert "/again/" not in client.get(page).content.decode()
        assert client.get(page_of(job)).status_code == 403
        assert client.post(page_of(job), values()).status_code == 403
    assert operator("add_job").get(page_of(job)).status_code == 403
    client = operator("view_job", "add_job", "change_job")
    assert f'href="{page_of(job)}"' in client.get(page).content.decode()
    again(client, job)


@pytest.mark.parametrize(
    "columns",
    [{"source_type": "nothing", "source_method": "end"}, {"args": {"args": 5}}, {"args": "text"}],
)
def test_what_cannot_be_called_has_no_such_button(
    admin_client: Client, columns: dict[str, Any]
) -> None:
    job = make_job(**columns)

    assert "/again/" not in admin_client.get(url_of("job", "change", job.pk)).content.decode()
    assert admin_client.get(page_of(job)).status_code == 403


def test_both_timelines_link_the_other_job(admin_client: Client) -> None:
    old = make_job(make_queue("acme"), state=State.ERROR)
    new = again(admin_client, old)

    of_old = admin_client.get(url_of("job", "change", old.pk))
    of_new = admin_client.get(url_of("job", "change", new.pk))

    assert f"enqueued again by admin (admin) as #{new.pk}" in text_of(of_old)
    assert f"created enqueued again by admin (admin) from #{old.pk}" in text_of(of_new)
    assert f'href="{url_of("job", "change", new.pk)}">#{new.pk}</a>' in of_old.content.decode()
    assert f'href="{url_of("job", "change", old.pk)}">#{old.pk}</a>' in of_new.content.decode()


def test_hostile_names_are_escaped(admin_client: Client) -> None:
    evil = "</textarea><script>alert(1)</script>"
    job = make_job(
        make_queue(evil),
        task=evil,
        args={"args": [evil], "kwargs": {evil: evil}},
        session_key=evil,
    )

    pages = [
        admin_client.get(page_of(job)),
        admin_client.post(page_of(job), values(args=f"[{evil}", kwargs={evil: 1}, queue=evil)),
    ]

    for page in pages:
        assert "<script>alert" not in page.content.decode()
