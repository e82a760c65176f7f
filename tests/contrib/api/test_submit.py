from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.core.cache.backends.base import BaseCache
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue import task
from django_tenantqueue.contrib.api import idempotency
from django_tenantqueue.contrib.api.models import IdempotencyKey
from django_tenantqueue.exceptions import TenantMoving
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import queues
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_queue
from tests.sample_tasks import takes_any
from tests.testapp.tasks import echo

from .conftest import ApiClient, api_settings

pytestmark = pytest.mark.django_db
ADD = "tests.testapp.tasks.add"
ECHO = "tests.testapp.tasks.echo"
ANYTHING = "tests.contrib.api.test_submit.anything"


@task
def anything(**named: object) -> None:
    """Take whatever there is."""


def only_job() -> Job:
    return Job.objects.select_related("queue").get()


def test_job_is_stored_with_its_options(api: ApiClient) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    response = api.post(
        "/jobs",
        {
            "task": ADD,
            "args": [1],
            "kwargs": {"second": 2},
            "queue": "reports",
            "priority": 7,
            "run_at": tomorrow.isoformat(),
            "expires_at": (tomorrow + timedelta(days=1)).isoformat(),
            "labels": ["a", "b"],
            "max_attempts": 2,
            "timeout_seconds": 5,
        },
    )

    job = only_job()
    assert response.status_code == 201
    assert response.json() == {"id": job.pk, "state": "scheduled", "duplicate": False}
    assert response["Location"] == f"/api/jobs/{job.pk}"
    assert (job.tenant, job.queue.name, job.priority) == ("acme", "reports", 7)
    assert (job.run_at, job.expires_at) == (tomorrow, tomorrow + timedelta(days=1))
    assert (job.labels, job.max_attempts, job.timeout_seconds) == (["a", "b"], 2, 5.0)
    assert job.created_by == "token client 0"
    assert job.args == {"args": [1], "kwargs": {"second": 2}}


def test_delay_counts_from_now(api: ApiClient) -> None:
    api.post("/jobs", {"task": ADD, "args": [1], "delay_seconds": 3600})

    assert timedelta(minutes=59) < only_job().run_at - timezone.now() <= timedelta(hours=1)


def test_integer_may_be_written_with_a_fraction_of_zero(api: ApiClient) -> None:
    body = {"task": ADD, "args": [1], "priority": 7.0, "max_attempts": 2.0}

    assert api.post("/jobs", body).status_code == 201
    assert (only_job().priority, only_job().max_attempts) == (7, 2)
    for wrong in (7.5, 1e300, True):
        assert api.post("/jobs", {**body, "priority": wrong}).status_code == 422


def test_session_and_user_are_those_of_the_tenant(api: ApiClient) -> None:
    api.post("/jobs", {"task": ADD, "args": [1], "session": "s", "limit_user": "u"})

    job = only_job()
    assert (job.session_key, job.limit_user) == ("acme/s", "acme/u")


def test_second_job_of_a_unique_key_is_the_first_one(api: ApiClient) -> None:
    unique = {"key": "k", "mode": "until_executed"}
    first = api.post("/jobs", {"task": ADD, "args": [1], "unique": unique})
    second = api.post("/jobs", {"task": ADD, "args": [1], "unique": unique})
    refused = api.post(
        "/jobs", {"task": ADD, "args": [1], "unique": {**unique, "on_conflict": "raise"}}
    )

    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {**first.json(), "duplicate": True}
    assert refused.status_code == 409
    assert refused.json()["job"] == first.json()["id"]


@pytest.mark.parametrize(
    ("job", "part"),
    [
        ({"task": "os.system", "args": ["id"]}, "['API']['TASKS']"),
        ({"task": "tests.testapp.tasks.unknown"}, "['API']['TASKS']"),
        ({"task": "django_tenantqueue.bulk.act"}, "['API']['TASKS']"),
        ({"task": ADD}, "missing a required argument"),
        ({"task": ADD, "args": [1, 2, 3]}, "too many positional"),
        ({"task": ADD, "args": [1], "kwargs": {"self": 1}}, "unexpected keyword"),
        ({"task": ADD, "args": [1], "delay_seconds": 1, "run_at": "2030-01-01T00:00:00Z"}, "both"),
        ({"task": ADD, "args": [1], "queue": "a\x00"}, "NUL"),
        ({"task": ECHO, "args": ["\x00"]}, "NUL"),
        ({"task": ECHO, "args": [{"__tenantqueue__": "model"}]}, "reserved"),
        ({"task": ECHO, "kwargs": {"value": [{"__tenantqueue__": "model"}]}}, "reserved"),
        ({"task": ANYTHING, "kwargs": {"__tenantqueue__": "float", "value": "x"}}, "reserved"),
        ({"task": ANYTHING, "kwargs": {"__tenantqueue__": "tenant"}}, "reserved"),
        ({"task": ADD, "args": [1], "unique": {"mode": "until_expired"}}, "ttl"),
    ],
)
def test_wrong_job_is_refused_and_nothing_is_stored(
    api: ApiClient, job: dict[str, Any], part: str
) -> None:
    response = api.post("/jobs", job)

    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    assert part in response.json()["detail"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("job", "at"),
    [
        ({"task": 1}, "task"),
        ({"task": ADD, "priority": "7"}, "priority"),
        ({"task": ADD, "tenant": "zebra"}, "tenant"),
        ({"task": ADD, "run_at": "2030-01-01T00:00:00"}, "run_at"),
        ({"task": ADD, "run_at": 5}, "run_at"),
        ({"task": ADD, "run_at": "20301231"}, "run_at"),  # a day, and no second of the year 1970
        ({"task": ADD, "expires_at": "-5"}, "expires_at"),
        ({"task": ADD, "args": {}}, "args"),
        ({"task": ADD, "unique": {"mode": "x"}}, "unique/mode"),
    ],
)
def test_problem_says_where_a_value_is_wrong(api: ApiClient, job: dict[str, Any], at: str) -> None:
    response = api.post("/jobs", job)

    assert response.status_code == 422
    assert [entry["at"] for entry in response.json()["errors"]] == [at]


@pytest.mark.parametrize("body", [b"{", b'{"task": NaN}', b"\xff", b"[" * 5000])
def test_body_that_is_no_json_is_refused(api: ApiClient, body: bytes) -> None:
    response = api.client.generic(
        "POST", "/api/jobs", body, content_type="application/json", headers=api.headers
    )

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


def test_body_that_is_too_large_is_refused(api: ApiClient) -> None:
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=100):
        response = api.post("/jobs", {"task": ECHO, "args": ["x" * 200]})

    assert response.status_code == 413
    assert response["Content-Type"] == "application/problem+json"


def test_no_task_is_offered_without_the_setting(api: ApiClient) -> None:
    with override_settings(TENANTQUEUE={}):
        assert api.post("/jobs", {"task": ADD, "args": [1]}).status_code == 422


def test_pattern_of_all_tasks_offers_none_of_the_package_itself(api: ApiClient) -> None:
    job = make_job(make_queue("zebra"))
    everything = {"filters": {}, "values": {}, "user_id": None, "actor": ["", "api"]}

    with override_settings(TENANTQUEUE=api_settings(TASKS=["*"])):
        answers = [
            api.post("/jobs", {"task": "django_tenantqueue.bulk.cancel", "kwargs": everything}),
            api.post("/jobs/batch", {"jobs": [{"task": "django_tenantqueue.alerts.deliver"}]}),
        ]
        names = [task["name"] for task in api.get("/tasks").json()["items"]]

    assert [answer.status_code for answer in answers] == [422, 422]
    own = [name for name in names if name.startswith("django_tenantqueue.")]
    assert own in ([], ["django_tenantqueue.http.http_job"])  # by the scope http
    run_pending()
    assert job.refresh().state == "success"


def test_full_and_retired_queues_are_conflicts(api: ApiClient) -> None:
    api.post("/jobs", {"task": ADD, "args": [1]})
    api.patch("/queues/default", {"max_waiting": 1})
    full = api.post("/jobs", {"task": ADD, "args": [1]})
    TenantQueue.objects.create(tenant="acme", name="old", retired=True)
    retired = api.post("/jobs", {"task": ADD, "args": [1], "queue": "old"})

    assert (full.status_code, retired.status_code) == (409, 409)
    assert "max_waiting" in full.json()["detail"]
    assert "retired" in retired.json()["detail"]
    assert Job.objects.count() == 1


def test_request_for_a_tenant_that_moves_is_to_be_repeated(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_queue(using: str, tenant: str) -> None:
        raise TenantMoving(tenant)

    monkeypatch.setattr(queues, "check_queue", check_queue)
    answer = api.post("/jobs", {"task": ADD, "args": [1]})

    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert not Job.objects.exists()


def test_submitted_job_runs(api: ApiClient) -> None:
    job_id = api.post("/jobs", {"task": ADD, "args": [1, 2]}).json()["id"]

    run_pending()

    job = api.get(f"/jobs/{job_id}").json()
    assert (job["state"], job["final"], job["result"]) == ("success", True, 3)


def test_batch_is_stored_in_its_order(api: ApiClient) -> None:
    jobs = [
        {"task": ADD, "args": [1]},
        {"task": ADD, "args": [2]},
        {"task": ADD, "args": [3], "queue": "other"},
        {"task": ECHO, "kwargs": {"value": 4}},
        {"task": ADD, "args": [5], "kwargs": {"second": 6}},
    ]
    response = api.post("/jobs/batch", {"jobs": jobs})

    assert response.status_code == 201
    ids = response.json()["ids"]
    assert ids == sorted(ids)
    stored = {job.pk: job for job in Job.objects.select_related("queue")}
    assert [stored[i].task for i in ids] == [job["task"] for job in jobs]
    assert [stored[i].args.get("args") for i in ids] == [[1], [2], [3], [], [5]]
    assert [stored[i].queue.name for i in ids] == ["default", "default", "other", *["default"] * 2]
    assert {job.tenant for job in stored.values()} == {"acme"}


def test_neighbours_of_a_batch_are_one_statement(
    api: ApiClient, django_assert_max_num_queries: Any
) -> None:
    api.post("/jobs", {"task": ADD, "args": [1]})

    with django_assert_max_num_queries(4):  # with a savepoint and its release
        api.post("/jobs/batch", {"jobs": [{"task": ADD, "args": [n]} for n in range(1000)]})

    assert Job.objects.count() == 1001


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "nope"},
        {"task": ADD},
        {"task": ADD, "args": ["\x00"]},
        {"task": ADD, "args": [1], "queue": "a\x00"},
        {"task": ADD, "args": [1], "queue": "full"},
    ],
)
def test_batch_with_a_wrong_job_stores_nothing_and_names_it(
    api: ApiClient, wrong: dict[str, Any]
) -> None:
    TenantQueue.objects.create(tenant="acme", name="full", retired=True)
    jobs = [{"task": ADD, "args": [n]} for n in range(3)]
    response = api.post("/jobs/batch", {"jobs": [*jobs, wrong, *jobs]})

    assert response.status_code in (409, 422)
    assert response.json()["index"] == 3
    assert not Job.objects.exists()


def test_batch_says_which_value_is_wrong(api: ApiClient) -> None:
    response = api.post("/jobs/batch", {"jobs": [{"task": ADD}, {"task": ADD, "priority": "x"}]})

    assert response.status_code == 422
    assert response.json()["errors"][0]["at"] == "jobs/1/priority"


def test_same_key_and_body_are_done_once(api: ApiClient) -> None:
    job = {"task": ADD, "args": [1]}
    first = api.post("/jobs", job, Idempotency_Key="k1")
    run_pending()
    second = api.post("/jobs", job, Idempotency_Key="k1")
    other = api.post("/jobs", job, Idempotency_Key="k2")

    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second["Location"] == first["Location"]
    assert other.json()["id"] != first.json()["id"]
    assert Job.objects.count() == 2


def test_same_key_with_another_body_is_refused(api: ApiClient) -> None:
    api.post("/jobs", {"task": ADD, "args": [1]}, Idempotency_Key="k")

    response = api.post("/jobs", {"task": ADD, "args": [2]}, Idempotency_Key="k")

    assert response.status_code == 422
    assert "Idempotency-Key" in response.json()["detail"]
    assert Job.objects.count() == 1


def test_batch_with_a_key_is_done_once(api: ApiClient) -> None:
    batch = {"jobs": [{"task": ADD, "args": [n]} for n in range(3)]}
    first = api.post("/jobs/batch", batch, Idempotency_Key="k")

    assert api.post("/jobs/batch", batch, Idempotency_Key="k").json() == first.json()
    assert Job.objects.count() == 3


def test_keys_are_those_of_a_token(api_of: Callable[..., ApiClient]) -> None:
    job = {"task": ADD, "args": [1]}
    for client in (api_of("acme"), api_of("acme"), api_of("zebra")):
        assert client.post("/jobs", job, Idempotency_Key="k").status_code == 201

    assert Job.objects.count() == 3


def test_key_of_a_refused_request_can_be_used_again(api: ApiClient) -> None:
    assert api.post("/jobs", {"task": ADD}, Idempotency_Key="k").status_code == 422

    assert api.post("/jobs", {"task": ADD, "args": [1]}, Idempotency_Key="k").status_code == 201


def test_key_is_free_again_after_a_day(api: ApiClient) -> None:
    job = {"task": ADD, "args": [1]}
    api.post("/jobs", job, Idempotency_Key="k")
    past = timezone.now() - timedelta(seconds=idempotency.KEEP_SECONDS + 1)
    IdempotencyKey.objects.update(created_at=past)
    api.post("/jobs", job, Idempotency_Key="k")
    assert Job.objects.count() == 2

    assert idempotency.prune_idempotency_keys("default") == 0
    IdempotencyKey.objects.update(created_at=past)
    assert idempotency.prune_idempotency_keys("default") == 1


@pytest.mark.parametrize("key", ["", '""', "x" * 256, f'"{"x" * 254}"', "a b", "é", 'a"b'])
def test_impossible_key_is_refused(api: ApiClient, key: str) -> None:
    response = api.post("/jobs", {"task": ADD, "args": [1]}, Idempotency_Key=key)

    assert response.status_code == 422


def test_token_that_asks_too_often_waits(api_of: Callable[..., ApiClient]) -> None:
    client, other = api_of("acme", requests_per_minute=2), api_of("acme")
    cache.clear()
    answers = [client.get("/tasks") for _ in range(8)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) >= 4  # a new minute may begin meanwhile
    assert 1 <= int(refused[0]["Retry-After"]) <= 61
    assert refused[0]["Content-Type"] == "application/problem+json"
    assert other.get("/tasks").status_code == 200


class DeadCache(BaseCache):
    """A cache whose server does not answer."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        raise ConnectionError("the cache does not answer")


def test_nobody_waits_while_the_cache_fails(api_of: Callable[..., ApiClient], caplog: Any) -> None:
    client = api_of("acme", requests_per_minute=1)
    with override_settings(CACHES={"default": {"BACKEND": f"{__name__}.DeadCache"}}):
        codes = [client.get("/tasks").status_code for _ in range(3)]

    assert codes == [200] * 3
    assert "counting a request of API token " in caplog.text


def test_setting_limits_tokens_that_have_no_limit_of_their_own(api: ApiClient) -> None:
    with override_settings(TENANTQUEUE=api_settings(REQUESTS_PER_MINUTE=1)):
        codes = {api.get("/tasks").status_code for _ in range(4)}

    assert codes == {200, 429}


def test_tasks_that_may_be_submitted_are_listed(api_of: Callable[..., ApiClient]) -> None:
    tasks = {task["name"]: task for task in api_of("acme", "read").get("/tasks").json()["items"]}

    assert tasks[ADD]["signature"] == "(first: 'int', second: 'int' = 0) -> 'int'"
    assert tasks[ADD]["description"] == "Return the sum."
    assert not [name for name in tasks if name.startswith("django_tenantqueue.")]


@pytest.mark.parametrize("name", ["a\x00", "\ud800"])
def test_name_of_an_argument_that_cannot_be_stored_is_refused(api: ApiClient, name: str) -> None:
    body = {"task": takes_any.name, "args": ["a"], "kwargs": {name: "b"}}

    answers = [api.post("/jobs", body), api.post("/jobs/batch", {"jobs": [body]})]

    assert [answer.status_code for answer in answers] == [422, 422]


@pytest.mark.parametrize("levels", [101, 500, 900])
def test_arguments_that_are_nested_too_deeply_are_refused(api: ApiClient, levels: int) -> None:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]

    answer = api.post("/jobs", {"task": echo.name, "args": [value]})

    assert answer.status_code == 422
    assert "nested more than 100 levels deep" in answer.json()["detail"]
