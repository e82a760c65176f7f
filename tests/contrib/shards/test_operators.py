"""Commands, metrics, checks and the admin where jobs are in several databases."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import Client, RequestFactory, override_settings
from django.urls import resolve, reverse

from django_tenantqueue import checks
from django_tenantqueue.conf import chosen_database, database
from django_tenantqueue.contrib.shards.checks import check_set_up, check_shards
from django_tenantqueue.contrib.shards.control import list_pins, pin_tenant
from django_tenantqueue.contrib.shards.middleware import KEY, REFRESH, ShardMiddleware
from django_tenantqueue.contrib.shards.models import Shard, ShardPin
from django_tenantqueue.contrib.shards.routes import forget_pins
from django_tenantqueue.exceptions import Unsupported
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations.erasure import tables
from django_tenantqueue.testing import run_pending
from django_tenantqueue.worker.supervisor.supervisor import Supervisor
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.databases import SQLITE, other_database, settings_of
from tests.testapp.tasks import echo, noop

MIDDLEWARE = "django_tenantqueue.contrib.shards.middleware.ShardMiddleware"


def run(*args: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command("tenantqueue", *map(str, args), stdout=out, **options)
    return out.getvalue()


# commands


@pytest.mark.usefixtures("shards")
def test_status_is_that_of_each_database():
    noop.using(tenant=tenant_of("eu1")).delay()

    text = run("status")
    found = json.loads(run("status", "--format=json"))["databases"]

    assert [line for line in text.splitlines() if line.startswith("database ")] == [
        "database us0",
        "database eu1",
    ]
    assert [found[alias]["need"]["startable"] for alias in ALIASES] == [0, 1]
    assert json.loads(run("status", "--format=json", "--database=eu1"))["need"]["startable"] == 1


def test_status_skips_a_database_that_is_down_and_says_so(down: str):
    out = io.StringIO()

    with pytest.raises(CommandError, match="the jobs' database 'ap2' cannot be used"):
        call_command("tenantqueue", "status", stdout=out)
    assert "database eu1\n" in out.getvalue()
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("tenantqueue", "status", "--format=json", stdout=out)
    assert list(json.loads(out.getvalue())["databases"]) == [*ALIASES]
    assert run("shards", "list").splitlines()[2] == "2  ap2: cannot be used"


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("alias", ALIASES)
def test_commands_find_the_database_of_a_tenant_and_of_an_id(alias: str):
    tenant = tenant_of(alias)
    job = noop.using(tenant=tenant).delay()

    assert f"#{job.pk}" in run("explain", job.pk)
    assert run("pause", f"--tenant={tenant}") == f"{tenant} / default: paused\n"
    assert run("export", f"--tenant={tenant}").count("\n") == 1
    assert run("cancel", job.pk) == f"#{job.pk}: cancelled\n"
    run("bulk", "retry", f"--tenant={tenant}")
    assert Job.objects.using(alias).filter(task__startswith="django_tenantqueue").count() == 1
    assert Change.objects.using(alias).filter(source="command").exists()


@pytest.mark.usefixtures("shards")
def test_commands_about_every_tenant_need_a_database():
    for alias in ALIASES:
        noop.using(tenant=tenant_of(alias)).delay()

    for args in (["pause", "--queue=default"], ["bulk", "cancel", "--all"]):
        with pytest.raises(CommandError, match="us0, eu1: give --database"):
            run(*args)
    run("pause", "--queue=default", "--database=eu1")
    run("bulk", "cancel", "--all", "--database=eu1")
    with database("eu1"):
        run_pending()

    assert TenantQueue.objects.using("eu1").get(name="default").paused
    assert not TenantQueue.objects.using("us0").get(name="default").paused
    assert [Job.objects.using(alias).get(task=noop.name).state for alias in ALIASES] == [
        "ready",
        "cancelled",
    ]


@pytest.mark.usefixtures("shards")
def test_tenant_is_erased_in_every_database_with_its_pin():
    names = [tenant_of("us0"), tenant_of("us0", 1)]
    with override_settings(TENANTQUEUE={"DATABASE": "us0"}):
        noop.using(tenant=names[1]).delay()  # a process with old settings
    ShardPin.objects.using("eu1").create(tenant=names[1], shard=1)
    ShardPin.objects.using("us0").create(tenant=names[1], shard=1)
    for tenant in names:
        noop.using(tenant=tenant).delay()
    version = Shard.objects.using("us0").get().version
    assert run("export", f"--tenant={names[1]}").count("\n") == 2

    text = run("erase", f"--tenant={names[1]}", "--no-input")

    assert [Job.objects.using(alias).count() for alias in ALIASES] == [1, 0]
    assert "2  tenantqueue_job\n" in text
    assert not any(ShardPin.objects.using(alias).exists() for alias in ALIASES)
    assert Shard.objects.using("us0").get().version > version, "other processes read it"
    assert run("shards", "find", names[1]) == "us0\n"


def test_erasure_names_the_database_that_is_down(down: str):
    noop.using(tenant=tenant_of("us0")).delay()

    with pytest.raises(CommandError, match="the jobs' database 'ap2' cannot be used"):
        run("erase", f"--tenant={tenant_of('us0')}", "--no-input")


@pytest.mark.usefixtures("shards")
def test_erasure_of_one_database_leaves_the_others():
    tenant = tenant_of("eu1")
    noop.using(tenant=tenant).delay()

    run("erase", f"--tenant={tenant}", "--database=us0", "--no-input")

    assert Job.objects.using("eu1").exists()


@pytest.mark.usefixtures("schemas")
def test_shards_are_set_up_listed_found_pinned_and_unpinned():
    assert "eu1: shard 1, 0 pinned tenants" in run("shards", "setup")
    tenant = tenant_of("us0")

    assert run("shards", "find", tenant) == "us0\n"
    assert run("shards", "pin", tenant, "eu1") == f"tenant {tenant!r} was pinned to eu1\n"
    assert run("shards", "find", tenant) == "eu1\n"
    assert run("shards", "list").splitlines() == [
        "0  us0: 0 tenants",
        "1  eu1: 0 tenants",
        f"pinned: {tenant} → eu1",
    ]
    assert json.loads(run("shards", "list", "--format=json"))["pins"] == {tenant: "eu1"}
    assert run("shards", "unpin", tenant) == f"tenant {tenant!r} is no longer pinned\n"
    with pytest.raises(CommandError, match="is not pinned"):
        run("shards", "unpin", tenant)
    with pytest.raises(CommandError, match="'mars' is not in"):
        run("shards", "pin", tenant, "mars")
    assert list_pins() == {}


@pytest.mark.usefixtures("shards")
def test_worker_leaves_the_database_of_its_process_when_it_ends(monkeypatch: pytest.MonkeyPatch):
    seen: list[str | None] = []

    def run(supervisor: object) -> int:
        seen.append(chosen_database())
        return 0

    monkeypatch.setattr(Supervisor, "run", run)
    call_command("runworker", database="eu1", verbosity=0)

    assert [*seen, chosen_database()] == ["eu1", None]


@pytest.mark.parametrize("command", [["setup"], ["pin", "new", "us0"]])
def test_command_names_the_database_that_is_down(down: str, command: list[str]):
    with pytest.raises(CommandError, match="all databases are needed, and 'ap2' cannot be used"):
        run("shards", *command)


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("command", [["setup"], ["pin", "new", "us0"]])
def test_command_names_the_database_without_tables(command: list[str]):
    forget_pins()
    with connections["eu1"].cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_shard RENAME TO elsewhere")
    try:
        with pytest.raises(CommandError, match=r"'eu1' lacks tables: run .*--database eu1"):
            run("shards", *command)
        with pytest.raises(Unsupported, match=r"'eu1' lacks tables"):
            noop.using(tenant=tenant_of("eu1")).delay()
    finally:
        with connections["eu1"].cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO tenantqueue_shard")


@pytest.mark.usefixtures("shards")
def test_pins_are_listed_while_the_first_database_is_down(monkeypatch: pytest.MonkeyPatch):
    pin_tenant(tenant_of("us0"), "eu1")
    refused = settings_of("postgres://127.0.0.1:1/nowhere")
    with other_database("gone", refused), override_settings(TENANTQUEUE=sharded("gone", "eu1")):
        found = json.loads(run("shards", "list", "--format=json"))

    assert found["pins"] == {tenant_of("us0"): "eu1"}


@pytest.mark.usefixtures("shards")
def test_worker_refuses_a_database_that_is_no_shard():
    with pytest.raises(CommandError, match="--database='default' is not"):
        call_command("runworker", database="default", until_empty=True)


# checks


@pytest.fixture
def outside_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mail, "outbox")


@pytest.mark.usefixtures("shards", "outside_of_tests")
def test_checks_find_nothing_when_all_is_right():
    assert check_shards() == checks.check_routers() == check_set_up(databases=ALIASES) == []


@pytest.mark.parametrize(
    ("aliases", "changes", "said"),
    [
        (["us0", "eu1"], {"DATABASE": "default"}, "begins with 'us0', but DATABASE is 'default'"),
        (["us0", "mars"], {}, "has 'mars', which is not in DATABASES"),
        (["us0", "lite"], {}, "has 'lite', which is SQLite"),
    ],
)
@pytest.mark.usefixtures("shards")
def test_shards_that_cannot_be_used_are_named(aliases: list[str], changes: Any, said: str):
    with (
        other_database("lite", SQLITE),
        override_settings(TENANTQUEUE={**sharded(*aliases), **changes}),
    ):
        (found,) = check_shards()
        assert check_set_up(databases=ALIASES) == []

    assert (found.id, said in found.msg) == ("tenantqueue.E020", True)


@pytest.mark.usefixtures("shards")
@override_settings(DATABASE_ROUTERS=[])
def test_router_is_needed():
    assert "needs TenantQueueRouter" in check_shards()[0].msg


@pytest.mark.usefixtures("schemas")
def test_database_of_a_test_may_be_set_up_later():
    assert check_set_up(databases=["us0", "eu1"]) == []


@pytest.mark.usefixtures("shards", "outside_of_tests")
def test_database_of_several_is_named_where_settings_have_one():
    with override_settings(TENANTQUEUE={"DATABASE": "us0", "SHARDS": {"DATABASES": ["us0"]}}):
        (found,) = check_set_up(databases=["us0"])
        with pytest.raises(CommandError, match="'us0' is one of several shards"):
            call_command("runworker", until_empty=True)

    assert found.id == "tenantqueue.E021"


@pytest.mark.usefixtures("shards")
def test_worker_refuses_a_database_with_another_number():
    with override_settings(TENANTQUEUE=sharded(*reversed(ALIASES))):
        forget_pins()
        with pytest.raises(CommandError, match="keep the order of the aliases"):
            call_command("runworker", database="eu1", until_empty=True)


@pytest.mark.usefixtures("schemas", "outside_of_tests")
def test_database_that_is_not_set_up_is_named():
    found = check_set_up(databases=["eu1"])

    assert [message.id for message in found] == ["tenantqueue.E021"]
    assert "'eu1' is not set up as a shard: run `manage.py tenantqueue" in found[0].msg


@pytest.mark.usefixtures("shards")
def test_database_with_other_migrations_is_named():
    forget_pins()
    with connections["eu1"].cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_worker RENAME COLUMN name TO title")
    try:
        found = check_set_up(databases=ALIASES)
    finally:
        with connections["eu1"].cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_worker RENAME COLUMN title TO name")

    assert [message.id for message in found] == ["tenantqueue.E018"]
    assert "The tables of 'eu1'" in found[0].msg


def test_database_that_is_down_is_a_warning(down: str):
    assert [message.id for message in check_set_up(databases=[down])] == ["tenantqueue.W006"]


def test_tables_of_the_app_are_not_those_of_one_tenant():
    assert Shard not in tables()


# admin


@pytest.fixture
def chosen(shards: None) -> Iterator[None]:
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        yield


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_admin_shows_the_chosen_database_until_another_is_chosen(admin_client: Client):
    jobs = [echo.using(tenant=tenant_of(alias)).delay(alias) for alias in ALIASES]
    page = reverse("admin:tenantqueue_job_changelist")

    first = admin_client.get(page, follow=True).content.decode()
    other = admin_client.get(page, {"shard": "eu1"}).content.decode()
    again = admin_client.get(page, follow=True).content.decode()
    back = admin_client.get(page, {"shard": "us0"}).content.decode()

    assert [f"job/{jobs[0].pk}/" in text for text in (first, other, again, back)] == [
        *(True, False, False, True),
    ]
    assert [f"job/{jobs[1].pk}/" in text for text in (first, other, again, back)] == [
        *(False, True, True, False),
    ]
    assert "Django administration – eu1" in again
    assert '<a href="?shard=eu1" aria-current="true">eu1</a>' in again
    assert '<a href="?shard=us0">us0</a>' in again
    users = admin_client.get(reverse("admin:auth_user_changelist")).content.decode()
    assert "eu1" not in users, "users are in no shard"


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_every_page_of_the_admin_is_that_of_the_chosen_database(admin_client: Client):
    tenant = tenant_of("eu1")
    job = echo.using(tenant=tenant, session="s").delay("x")
    with database("eu1"):
        run_pending()
    queue = TenantQueue.objects.using("eu1").get(tenant=tenant)
    admin_client.get(reverse("admin:index"), {"shard": "eu1"})

    pages = [
        reverse("admin:index"),
        reverse("admin:tenantqueue_job_change", args=[job.pk]),
        reverse("admin:tenantqueue_tenantqueue_change", args=[queue.pk]),
        reverse("admin:tenantqueue_session_changelist"),
        reverse("admin:tenantqueue_worker_changelist"),
        reverse("admin:tenantqueue_change_changelist"),
    ]
    answers = {page: admin_client.get(page, follow=True).status_code for page in pages}
    export = admin_client.get(reverse("admin:tenantqueue_job_export", args=["csv"]), follow=True)

    assert set(answers.values()) == {200}, answers
    assert str(job.pk) in b"".join(export.streaming_content).decode()


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_queue_is_added_in_the_database_of_its_tenant_alone(admin_client: Client):
    page = reverse("admin:tenantqueue_tenantqueue_add")
    values = {"tenant": tenant_of("eu1"), "name": "mail", "num_slots": 2, "weight": 1}

    wrong = admin_client.post(f"{page}?shard=us0", values)
    right = admin_client.post(f"{page}?shard=eu1", values)

    assert "are in the database “eu1”" in wrong.content.decode()
    assert right.status_code == 302
    assert [TenantQueue.objects.using(alias).count() for alias in ALIASES] == [0, 1]


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_bulk_action_of_the_admin_runs_in_the_chosen_database(admin_client: Client):
    job = echo.using(tenant=tenant_of("eu1")).delay("x")

    admin_client.post(
        f"{reverse('admin:tenantqueue_job_changelist')}?shard=eu1",
        {"action": "cancel_selected", "_selected_action": [job.pk], "_apply": "1"},
    )

    assert job.refresh().state == "cancelled"


@pytest.mark.urls("tests.contrib.shards.urls")
def test_admin_links_to_the_other_databases_while_the_chosen_one_is_down(
    down: str, admin_client: Client
):
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        answer = admin_client.get(reverse("admin:tenantqueue_job_changelist"), {"shard": down})
        back = admin_client.get(reverse("admin:tenantqueue_job_changelist"), {"shard": "us0"})
        page = reverse("admin:tenantqueue_job_change", args=[2**40 + 2])
        job = admin_client.get(page, {"shard": down})

    assert (answer.status_code, back.status_code, job.status_code) == (503, 200, 503)
    assert '<a href="?shard=us0">us0</a>' in answer.content.decode()
    assert "The database “ap2” is down" in answer.content.decode()
    assert "<strong>admin</strong>" in answer.content.decode(), "with the header of the admin"
    home = reverse("admin:app_list", args=["tenantqueue"])
    assert f'<a href="{home}?shard=us0">us0</a>' in job.content.decode(), "the id names ap2"


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_pages_outside_of_the_admin_are_not_changed(admin_client: Client):
    admin_client.get(reverse("admin:index"), {"shard": "eu1"})
    job = noop.using(tenant=tenant_of("us0")).delay()

    assert admin_client.get(job.status_url, {"shard": "eu1"}).json()["state"] == "ready"
    assert admin_client.get("/nowhere").status_code == 404


def sees_its_tenant(user: Any) -> list[str]:
    return [user.first_name]


@pytest.fixture
def limited_client(chosen: None, client: Client) -> Iterator[Client]:
    """Log in a user that sees one tenant of eu1 and may not change other rows."""
    user = User.objects.create_user("ann", first_name=tenant_of("eu1"), is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="tenantqueue"))
    client.force_login(user)
    visible = f"{__name__}.{sees_its_tenant.__name__}"
    with override_settings(TENANTQUEUE={**sharded(*ALIASES), "VISIBLE_TENANTS": visible}):
        yield client


def queues_of_one_id() -> list[TenantQueue]:
    """Return a queue of each database. Both have the same id."""
    made = []
    for alias in ALIASES:
        echo.using(tenant=tenant_of(alias)).delay("x")
        queue = TenantQueue.objects.using(alias).get(tenant=tenant_of(alias))
        TenantQueue.objects.using(alias).filter(pk=queue.pk).update(num_slots=9)
        made.append(queue)
    assert made[0].pk == made[1].pk
    return made


def slots(queues: list[TenantQueue]) -> list[int | None]:
    for queue in queues:
        queue.refresh_from_db()
    return [queue.num_slots for queue in queues]


def form_of(page: Any, **changes: Any) -> dict[str, Any]:
    form = page.context["adminform"].form
    shown = {f"initial-{name}": form[name].initial for name in form.fields}
    values = {name: form[name].value() for name in form.fields}
    found = {**shown, **values, **changes}
    return {name: value for name, value in found.items() if value not in (None, False)}


@pytest.mark.urls("tests.contrib.shards.urls")
def test_address_of_a_page_gets_its_database_and_keeps_the_rest(limited_client: Client):
    page = reverse("admin:tenantqueue_job_changelist")

    first = limited_client.get(page, {"state": "error", "q": "a b"})
    limited_client.get(page, {"shard": "eu1"})
    other = limited_client.get(page, {"shard": "mars", "state": "error"})
    posted = limited_client.post(page, {"x": 1}, headers={"Referer": f"http://x{page}?shard=us0"})

    assert (first.status_code, first["Location"]) == (302, f"{page}?state=error&q=a+b&shard=us0")
    assert (other.status_code, other["Location"]) == (302, f"{page}?state=error&shard=eu1")
    assert (posted.status_code, posted["Location"]) == (307, f"{page}?shard=us0")


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_list_in_one_tab_refreshes_itself_from_its_database_and_chooses_none(
    admin_client: Client,
):
    jobs = [echo.using(tenant=tenant_of(alias)).delay(alias) for alias in ALIASES]
    page = reverse("admin:tenantqueue_job_changelist")
    first = admin_client.get(page, {"shard": "us0"})
    admin_client.get(page, {"shard": "eu1"})

    url = f"{page}?shard=us0"
    assert f'data-url="{url}"' in first.content.decode()
    again = admin_client.get(url, headers={REFRESH: "1"}).content.decode()

    assert [f"job/{job.pk}/" in again for job in jobs] == [True, False]
    assert admin_client.session[KEY] == "eu1"


@pytest.mark.urls("tests.contrib.shards.urls")
def test_form_in_one_tab_is_saved_in_its_database(limited_client: Client):
    queues = queues_of_one_id()
    page = reverse("admin:tenantqueue_tenantqueue_change", args=[queues[1].pk])
    shown = limited_client.get(page, {"shard": "eu1"})
    hidden = limited_client.get(page, {"shard": "us0"})

    saved = limited_client.post(f"{page}?shard=eu1", form_of(shown, num_slots=4))
    refused = limited_client.post(f"{page}?shard=us0", form_of(shown, num_slots=5))

    assert (shown.status_code, hidden.status_code) == (200, 302), "of another tenant"
    assert (saved.status_code, refused.status_code) == (302, 302)
    assert slots(queues) == [9, 4]


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_action_in_one_tab_changes_jobs_of_its_database_alone(admin_client: Client):
    jobs = [echo.using(tenant=tenant_of(alias)).delay(alias) for alias in ALIASES]
    page = reverse("admin:tenantqueue_job_changelist")
    admin_client.get(page, {"shard": "us0"})
    admin_client.get(page, {"shard": "eu1"})

    ids = [job.pk for job in jobs]
    values = {"action": "cancel_selected", "_selected_action": ids, "_apply": "1"}
    admin_client.post(f"{page}?shard=us0", values)

    assert [job.refresh().state for job in jobs] == ["cancelled", "ready"]


@pytest.mark.urls("tests.contrib.shards.urls")
def test_dashboard_in_one_tab_saves_and_refreshes_in_its_database(limited_client: Client):
    queues = queues_of_one_id()
    home = reverse("admin:app_list", args=["tenantqueue"])
    url = reverse("admin:tenantqueue_overview") + "?hours=1"
    limited_client.get(home, {"shard": "eu1"})
    limited_client.get(home, {"shard": "us0"})
    values = {
        "queue": queues[1].pk,
        "num_slots": 4,
        "weight": 1,
        "initial-num_slots": 9,
        "initial-weight": 1,
        "initial-paused": "False",
    }
    page = {"Referer": f"http://testserver{home}?shard=eu1"}

    fresh = limited_client.get(url, headers={**page, REFRESH: "1"})
    limited_client.post(url, values, headers=page, follow=True)

    assert (fresh.status_code, tenant_of("eu1") in fresh.content.decode()) == (200, True)
    assert slots(queues) == [9, 4]


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
@pytest.mark.parametrize("referer", ["", "http://[", "http://x/?shard=mars", "http://x/"])
def test_page_without_a_database_is_not_saved_or_refreshed(admin_client: Client, referer: str):
    queues = queues_of_one_id()
    url = reverse("admin:tenantqueue_overview")
    page = reverse("admin:tenantqueue_tenantqueue_change", args=[queues[0].pk])
    values = form_of(admin_client.get(page, {"shard": "us0"}), num_slots=4)

    answers = [
        admin_client.post(page, values, headers={"Referer": referer}),
        admin_client.post(url, {"queue": queues[0].pk}, headers={"Referer": referer}),
        admin_client.get(url, headers={"Referer": referer, REFRESH: "1"}),
    ]

    assert [answer.status_code for answer in answers] == [409] * 3
    home = reverse("admin:app_list", args=["tenantqueue"])
    text = answers[0].content.decode()
    assert "It is unknown which database this page showed" in text
    assert f'<a href="{home}?shard=eu1">eu1</a>' in text
    assert slots(queues) == [9, 9]


@pytest.mark.urls("tests.contrib.shards.urls")
def test_job_is_found_by_its_id_whatever_was_shown_last(limited_client: Client):
    job, other = (echo.using(tenant=tenant_of(alias)).delay("x") for alias in ("eu1", "us0"))
    page, hidden = (reverse("admin:tenantqueue_job_change", args=[row.pk]) for row in (job, other))
    live = reverse("admin:tenantqueue_job_live", args=[job.pk])
    home = reverse("admin:app_list", args=["tenantqueue"])
    limited_client.get(home, {"shard": "us0"})
    from_us0 = {"Referer": f"http://testserver{home}?shard=us0"}

    assert limited_client.get(page, headers=from_us0)["Location"] == f"{page}?shard=eu1"
    assert limited_client.get(page, {"shard": "us0"})["Location"] == f"{page}?shard=eu1"
    assert limited_client.get(page, follow=True).status_code == 200
    assert limited_client.get(live, headers={REFRESH: "1"}).status_code == 200
    assert limited_client.get(hidden)["Location"] == f"{hidden}?shard=us0"
    assert limited_client.get(f"{hidden}?shard=us0").status_code == 302, "of another tenant"


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
@pytest.mark.parametrize("text", [str(2**40 + 31), "9" * 30, "x"])
def test_page_of_an_id_of_no_database_is_that_of_the_last_one(admin_client: Client, text: str):
    page = reverse("admin:tenantqueue_concurrentjobmonitor_change", args=[text])

    assert admin_client.get(page)["Location"] == f"{page}?shard=us0"


@pytest.mark.usefixtures("chosen")
@pytest.mark.urls("tests.contrib.shards.urls")
def test_visitor_who_is_not_logged_in_learns_no_alias(client: Client):
    page = reverse("admin:tenantqueue_job_changelist")

    assert client.get(page)["Location"] == f"{reverse('admin:login')}?next={page}"
    client.get(page, {"shard": "eu1"})
    assert KEY not in client.session


def failing(alias: str, work: Any) -> Any:
    """Return the answer of the middleware to what an admin page of a database raises."""
    request = RequestFactory().get(reverse("admin:tenantqueue_job_changelist"))
    request.resolver_match = resolve(request.path)
    request.user = AnonymousUser()
    request.tenantqueue_shard = alias  # type: ignore[attr-defined]
    try:
        work()
    except Exception as error:  # noqa: BLE001
        return ShardMiddleware(lambda request: None).process_exception(request, error)  # type: ignore[arg-type,return-value]
    raise AssertionError("nothing was raised")


def time_out() -> None:
    with connections["us0"].cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '1ms'")
        cursor.execute("SELECT pg_sleep(10)")


def break_connection() -> None:
    connections["us0"].ensure_connection()
    connections["us0"].connection.close()
    Job.objects.using("us0").exists()


def test_error_is_a_database_that_is_down_only_if_it_cannot_be_reached(
    down: str, caplog: pytest.LogCaptureFixture
):
    def connect() -> None:
        connections[down].ensure_connection()

    def refuse() -> None:
        raise Unsupported("no")

    assert failing(down, connect).status_code == 503
    assert caplog.records[-1].exc_info is not None
    with transaction.atomic(using="us0"):
        assert failing("us0", time_out) is None, "the transaction is broken, not the connection"
        transaction.set_rollback(True, using="us0")
    assert failing("us0", refuse) is None
    assert failing("us0", connect) is None, "another database is down"
    connections["us0"].close()
    assert failing("us0", connect) is None, "another database is down"
    assert failing("us0", break_connection).status_code == 503
    connections["us0"].close()
