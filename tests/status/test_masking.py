"""Secret values are shown nowhere: which are secret, and each place that shows jobs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.http import StreamingHttpResponse
from django.test import Client, override_settings

from django_tenantqueue import Unique
from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.states import State
from django_tenantqueue.status.masking import MASK, mask_of, mask_of_job, masked, masked_columns
from tests.admin.conftest import url_of
from tests.factories import make_job
from tests.operations.monitors import start
from tests.sample_tasks import keeps_all_secret, signs_in
from tests.testapp.models import Report
from tests.testapp.tasks import noop

HIDDEN = "hunter2"


def shown(stored: Any, method: str = "tests.unknown", kind: str = "task") -> Any:
    return mask_of(kind, "", method, stored).call(stored)


# which values


def test_keys_are_masked_at_any_depth_whatever_their_case() -> None:
    value = {
        "list": [{"Password": 1, "user": "ada"}, "password"],
        "deep": {"X-API-Key": ["a"], "max_tokens": 5, "new_PASSWORD_2": {"a": "b"}},
    }

    assert masked(value) == {
        "list": [{"Password": MASK, "user": "ada"}, "password"],
        "deep": {"X-API-Key": MASK, "max_tokens": 5, "new_PASSWORD_2": MASK},
    }


@override_settings(TENANTQUEUE={"MASKED_ARGUMENTS": ["pin", "card*"]})
def test_setting_says_which_names_are_masked() -> None:
    assert masked({"pin": 1, "card_number": 2, "pins": 3, "password": 4}) == {
        "pin": MASK,
        "card_number": MASK,
        "pins": 3,
        "password": MASK,
    }


@override_settings(TENANTQUEUE={"MASKED_ARGUMENTS": ["iban", "!cookie"]})
def test_names_of_the_setting_come_on_top_of_the_default() -> None:
    assert masked({"iban": 1, "Authorization": 2, "cookie": 3, "api_key": 4}) == {
        "iban": MASK,
        "Authorization": MASK,
        "cookie": 3,
        "api_key": MASK,
    }


@override_settings(TENANTQUEUE={"MASKED_ARGUMENTS": ["!*"]})
def test_empty_setting_masks_what_tasks_declare_alone() -> None:
    stored = {"args": ["ada", "pw"], "kwargs": {"remember": {"password": "x"}}}

    assert shown(stored, signs_in.name) == {
        "args": ["ada", MASK],
        "kwargs": {"remember": {"password": "x"}},
    }


def test_value_that_is_nested_too_deeply_is_masked() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]

    assert masked(value) == MASK


def test_positional_arguments_are_found_by_the_signature() -> None:
    stored = {"args": ["ada", HIDDEN], "kwargs": {"card": "41", "remember": True}}

    assert shown(stored, signs_in.name) == {
        "args": ["ada", MASK],
        "kwargs": {"card": MASK, "remember": True},
    }


def test_setting_finds_positional_arguments_of_methods() -> None:
    stored = {"args": [HIDDEN]}

    with override_settings(TENANTQUEUE={"MASKED_ARGUMENTS": ["kind"]}):
        assert shown(stored, "execute", "testapp.report") == {"args": [MASK]}
        assert shown(stored, "execute", "testapp.gone") == {"args": [HIDDEN]}
        assert shown(stored, "tests.testapp.models:Report.execute", "callable") == stored


@pytest.mark.parametrize(
    ("mark", "args"),
    [([1, "card"], ["ada", MASK]), (True, [MASK, MASK]), ("?", [MASK, MASK]), ([], ["ada", "pw"])],
)
def test_row_says_what_is_secret_where_the_task_is_not_known(mark: Any, args: list[str]) -> None:
    stored = {"args": ["ada", "pw"], "secret": mark}

    assert shown(stored)["args"] == args
    assert "secret" not in shown(stored)


def test_registered_task_masks_jobs_of_a_time_before_its_declaration() -> None:
    assert shown({"args": [1, 2]}, keeps_all_secret.name) == {"args": [MASK, MASK]}


@pytest.mark.parametrize("stored", [5, "text", {"args": 5}, {"args": [], "kwargs": [1]}])
def test_arguments_of_another_form_are_shown_or_masked_as_a_whole(stored: Any) -> None:
    assert shown(stored) == stored
    assert shown(stored, keeps_all_secret.name) == MASK
    assert shown(stored, signs_in.name) == MASK


def test_keys_of_a_unique_job_are_masked_with_its_arguments() -> None:
    columns = {
        "source_type": "task",
        "source_id": "",
        "source_method": signs_in.name,
        "args": {"args": ["ada", HIDDEN]},
        "result_data": {"token": HIDDEN},
        "stats": {"api_key": HIDDEN},
        "context": {"secret": HIDDEN},
        "unique_key": f"acme/{HIDDEN}",
        "exclusive_key": None,
        "follow_ups": [{"on": "success", "task": "x", "args": {"args": [HIDDEN]}}],
    }

    found = masked_columns(columns)

    assert HIDDEN not in str(found)
    assert (found["unique_key"], found["exclusive_key"]) == (MASK, None)
    assert masked_columns({**columns, "args": {"args": ["ada"]}})["unique_key"] == "acme/hunter2"


# which places


@pytest.fixture
def secret_job(db: None) -> Job:
    """Return a finished job whose arguments, result and key have the secret."""
    unique = Unique("until_expired", ttl=600, key=lambda first, second: f"key of {second}")
    job = keeps_all_secret.using(unique=unique, tenant="acme").delay({"x": HIDDEN}, HIDDEN)
    control.cancel([job.pk])
    return Job.objects.get(pk=job.pk)


def everything(response: Any) -> str:
    if isinstance(response, StreamingHttpResponse):
        return b"".join(response.streaming_content).decode()
    return str(response.content.decode())


PAGES: dict[str, Callable[[Job], str]] = {
    "page": lambda job: url_of("job", "change", job.pk),
    "live": lambda job: url_of("job", "live", job.pk),
    "arguments": lambda job: url_of("job", "value", job.pk, "arguments"),
    "again": lambda job: url_of("job", "again", job.pk),
    "history": lambda job: url_of("job", "history", job.pk),
    "list": lambda job: url_of("job", "changelist"),
    "csv": lambda job: url_of("job", "export", "csv"),
    "jsonl": lambda job: url_of("job", "export", "jsonl"),
    "changes": lambda job: url_of("change", "changelist"),
    "changes as csv": lambda job: url_of("change", "export", "csv"),
    "first page": lambda job: "/admin/tenantqueue/",
}


@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_the_secret(admin_client: Client, secret_job: Job, name: str) -> None:
    enqueue_again(secret_job, (HIDDEN, HIDDEN), {})
    control.retry([secret_job.pk])

    response = admin_client.get(PAGES[name](secret_job))

    assert response.status_code == 200
    text = everything(response)
    assert HIDDEN not in text
    if name in ("page", "arguments", "again", "csv", "jsonl"):
        assert MASK in text


@pytest.mark.parametrize("action", ["cancel_selected", "move_selected", "change_priority_selected"])
def test_no_question_has_the_secret(admin_client: Client, secret_job: Job, action: str) -> None:
    control.retry([secret_job.pk])
    data = {"action": action, "_selected_action": secret_job.pk, "index": "0"}

    response = admin_client.post(url_of("job", "changelist"), data)

    assert "keeps_all_secret" in everything(response)
    assert HIDDEN not in everything(response)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_details_of_a_monitor_are_downloaded_masked(
    admin_client: Client, db: None, form: str
) -> None:
    monitor = start([signs_in.call("ada", HIDDEN), noop.call()])
    address = f"{url_of('concurrentjobmonitor', 'changelist')}{monitor.pk}/details/{form}/"

    text = everything(admin_client.get(address))

    assert MASK in text
    assert HIDDEN not in text
    assert HIDDEN not in everything(
        admin_client.get(url_of("concurrentjobmonitor", "change", monitor.pk))
    )


@pytest.mark.parametrize("options", [(), ("--format=json",)])
def test_explain_does_not_print_the_secret(secret_job: Job, options: tuple[str]) -> None:
    control.retry([secret_job.pk])
    out = io.StringIO()

    call_command("tenantqueue", "explain", str(secret_job.pk), *options, stdout=out)

    assert "keeps_all_secret" in out.getvalue()
    assert HIDDEN not in out.getvalue()


@pytest.mark.urls("tests.admin.office_urls")
def test_page_of_an_object_has_no_secret(admin_client: Client, db: None) -> None:
    report = Report.objects.create(title="Sales")
    report.delay.execute(kind=HIDDEN)

    with override_settings(TENANTQUEUE={"MASKED_ARGUMENTS": ["kind"]}):
        response = admin_client.get(f"/office/testapp/report/{report.pk}/change/")

    assert "testapp.Report.execute" in everything(response).replace("<wbr>", "")
    assert HIDDEN not in everything(response)


@pytest.mark.urls("tests.web.urls")
def test_status_has_no_result_of_a_task_that_is_secret(client: Client, db: None) -> None:
    names = {"task": keeps_all_secret.name, "source_method": keeps_all_secret.name}
    secret = make_job(state=State.SUCCESS, result={"token": HIDDEN}, **names)
    public = make_job(state=State.SUCCESS, result={"token": HIDDEN})

    assert client.get(secret.status_url).json()["result"] is None
    assert client.get(public.status_url).json()["result"] == {"token": HIDDEN}


def test_result_is_masked_on_the_page_and_in_its_download(admin_client: Client, db: None) -> None:
    value = {"user": "ada", "access_token": HIDDEN}
    job = make_job(state=State.SUCCESS, result=value, stats={"cookie": HIDDEN})

    page = admin_client.get(url_of("job", "change", job.pk))
    file = admin_client.get(url_of("job", "value", job.pk, "result"))

    assert HIDDEN not in everything(page)
    assert json.loads(file.content) == {"user": "ada", "access_token": MASK}


def test_what_is_stored_stays_as_it_is(admin_client: Client, secret_job: Job) -> None:
    admin_client.get(url_of("job", "change", secret_job.pk))

    stored = Job.objects.get(pk=secret_job.pk).args
    assert stored == {"args": [{"x": HIDDEN}, HIDDEN], "secret": True}
    assert mask_of_job(secret_job).whole
