"""Arguments and results on the page of a job, and their downloads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from django_tenantqueue.states import State
from tests.factories import make_job
from tests.testapp.tasks import add

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db


def value_of(client: Client, job: Any, part: str) -> Any:
    return client.get(url_of("job", "value", job.pk, part))


def test_arguments_have_the_names_of_their_parameters(admin_client: Client) -> None:
    job = make_job(source_method=add.name, args={"args": [{"a": [1]}], "kwargs": {"second": 2}})

    text = text_of(admin_client.get(url_of("job", "change", job.pk)))

    assert "1 first { &quot;a&quot;: [ 1 ] } second 2" in text


def test_long_values_are_cut_and_lead_to_a_download(admin_client: Client) -> None:
    long = {"args": ["x" * 6_000, "y" * 6_000, "z"], "kwargs": {"last": "w"}}
    job = make_job(state=State.SUCCESS, args=long, result=["r" * 20_000])

    response = admin_client.get(url_of("job", "change", job.pk))

    content = response.content.decode()
    assert "10000 of 12010 characters" in text_of(response)
    assert "10000 of 20008 characters" in text_of(response)
    assert len(content) < 40_000
    for part, value in (("arguments", long), ("result", ["r" * 20_000])):
        assert f'href="{url_of("job", "value", job.pk, part)}"' in content
        file = value_of(admin_client, job, part)
        assert json.loads(file.content) == value
        assert file["Content-Type"] == "application/json"
        assert file["Content-Disposition"] == f'attachment; filename="job-{job.pk}-{part}.json"'


def test_short_values_have_no_link(admin_client: Client) -> None:
    job = make_job(state=State.SUCCESS, args={"args": [1]}, result=2)

    content = admin_client.get(url_of("job", "change", job.pk)).content.decode()

    assert "arguments.json" not in content
    assert "result.json" not in content


def test_result_in_a_cache_is_downloaded(admin_client: Client) -> None:
    cache.set("kept", {"token": "a", "n": 1})
    kept = make_job(state=State.SUCCESS, result_ref="default:kept")
    lost = make_job(state=State.SUCCESS, result_ref="default:lost")

    assert json.loads(value_of(admin_client, kept, "result").content)["n"] == 1
    assert value_of(admin_client, lost, "result").status_code == 404


def test_there_is_no_other_part_and_no_result_of_an_unfinished_job(admin_client: Client) -> None:
    job = make_job(state=State.READY)

    assert value_of(admin_client, job, "result").status_code == 404
    assert value_of(admin_client, job, "errors").status_code == 404
    missing = admin_client.get(url_of("job", "value", 4711, "arguments"))
    assert missing.status_code == 404


def test_downloads_need_the_permission_to_view(operator: Callable[..., Client]) -> None:
    job = make_job(state=State.SUCCESS, result=1)

    for part in ("arguments", "result"):
        assert value_of(operator(), job, part).status_code == 403
        assert value_of(operator("view_job"), job, part).status_code == 200


def test_arguments_that_raw_sql_has_written_are_shown(admin_client: Client) -> None:
    for args in ("text", 5, {"args": 5}, [1, 2], {"kwargs": ["a"]}):
        job = make_job(args=args)
        assert admin_client.get(url_of("job", "change", job.pk)).status_code == 200
        assert value_of(admin_client, job, "arguments").status_code == 200


def test_hostile_names_and_values_are_escaped(admin_client: Client) -> None:
    evil = "<script>alert(1)</script>"
    job = make_job(
        state=State.SUCCESS,
        args={"args": [evil], "kwargs": {evil: {evil: evil}}},
        result={evil: evil},
        stats={evil: evil},
        context={evil: evil},
        unique_key=evil,
        source_type=evil,
        source_id=evil,
    )

    content = admin_client.get(url_of("job", "change", job.pk)).content.decode()

    assert "<script>alert" not in content
    assert "&lt;script&gt;alert" in content
