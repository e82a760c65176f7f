"""The page of a tenant: what it shows, its pause and resume, and the erasure by its name."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from django.test import Client, override_settings
from django.urls import resolve

from django_tenantqueue.admin import tenant_page
from django_tenantqueue.admin.links import tenant_url
from django_tenantqueue.control import limit_user
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.queries.figures import Counts, add_figures, with_totals
from django_tenantqueue.states import State
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, say_yes
from tests.admin.test_visible_tenants import LIMITED, OURS, THEIRS, fill
from tests.factories import make_job, make_queue
from tests.testapp.tasks import noop

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
Operator = Callable[..., Client]
MOST_STATEMENTS = 30
ERASE = ("view_tenantqueue", "delete_tenantqueue", "view_job", "delete_job")
NAMES = ("", "a/b", "a//", "..", "a?b=c&d#e", "über 東京", "'\"<b>", "a%2Fb", " ", "x" * 200)


def test_page_shows_what_the_tenant_does_and_its_rows_of_all_lists(admin_client: Client) -> None:
    rows = fill(OURS)
    fill(THEIRS)

    response = admin_client.get(tenant_url(OURS))

    text, content = text_of(response), response.content.decode()
    assert "Ready jobs in paused queues, or in queues without slots: acme/halted" in text
    assert "7 ended in error" in text
    for name in ("acme-monitor", "acme-session", "acme-schedule", "acme-message"):
        assert name in text
    assert "Recent changes" in text
    assert THEIRS not in content
    assert f"{url_of('apitoken', 'changelist')}?tenant=acme" in content
    for model, pk in rows.pages.items():
        if model in ("concurrentjobmonitor", "session", "schedule", "alert", "tenantqueue"):
            assert url_of(model, "change", pk) in content


def test_idle_queues_of_the_tenant_are_listed_too(admin_client: Client) -> None:
    make_queue("acme", "busy")
    make_queue("other", "elsewhere")
    make_queue("acme", "idle", paused=True)
    make_job(TenantQueue.objects.get(name="busy"))

    text = text_of(admin_client.get(tenant_url("acme")))

    assert "acme / busy" in text
    assert "acme / idle paused" in text
    assert "elsewhere" not in text
    assert "idle" not in text_of(admin_client.get("/admin/tenantqueue/"))


def test_users_at_their_limit_are_those_whose_jobs_are_held(admin_client: Client) -> None:
    queue = make_queue("acme")
    for user in ("eve", "adam"):
        limit_user("acme", user, 1)
    make_job(queue, state=State.HELD, held_by="limit_user", limit_user="acme/eve")

    text = text_of(admin_client.get(tenant_url("acme")))

    assert "Users at their limit" in text
    assert "eve" in text
    assert "adam" not in text.split("Recent changes")[0]


@pytest.mark.parametrize("name", NAMES)
def test_page_takes_every_name_that_a_tenant_may_have(admin_client: Client, name: str) -> None:
    queue = make_queue(name, "own")
    make_job(queue)
    make_job(make_queue("another", "others"))

    url = tenant_url(name)
    response = admin_client.get(url)
    listed = admin_client.get(response.context["jobs_url"])

    assert response.status_code == 200
    assert url_of("tenantqueue", "change", queue.pk) in response.content.decode()
    assert "others" not in text_of(response)
    assert [job.queue_id for job in listed.context["cl"].result_list] == [queue.pk]
    assert url in admin_client.get("/admin/tenantqueue/").content.decode().replace("&amp;", "&")


@pytest.mark.parametrize("query", ["", "?tenant=%00", "?tenant=%ED%A0%80%00"])
def test_what_names_no_tenant_is_not_found(admin_client: Client, query: str) -> None:
    assert admin_client.get(tenant_url("").partition("?")[0] + query).status_code == 404


def test_page_of_an_unknown_tenant_says_that_it_has_no_queue(admin_client: Client) -> None:
    response = admin_client.get(tenant_url("nobody"))

    assert "This tenant has no queue." in text_of(response)
    assert "_erase" not in response.content.decode()


def test_all_queues_are_paused_after_a_yes_and_resumed(admin_client: Client) -> None:
    queues = [make_queue("acme", "one"), make_queue("acme", "two")]
    make_queue("other")

    question = admin_client.post(tenant_url("acme"), {"_pause": "1"})
    before = TenantQueue.objects.filter(paused=True).count()
    said = text_of(say_yes(admin_client, question))

    assert before == 0
    assert "2 tenant queues changed: paused no → yes." in said
    assert set(TenantQueue.objects.filter(paused=True)) == set(queues)
    change = Change.objects.latest("pk")
    assert (change.actor, change.source, change.action) == ("admin", "admin", "pause")

    admin_client.post(tenant_url("acme"), {"_resume": "1"})

    assert not TenantQueue.objects.filter(paused=True).exists()


def test_queue_is_tuned_on_the_page_which_is_shown_again(admin_client: Client) -> None:
    queue = make_queue("acme", num_slots=5)
    url = tenant_url("acme")
    form = form_values(admin_client.get(url), "queue")

    posted = {"num_slots": "7", "weight": "1", **form, "initial-num_slots": "5"}
    answer = admin_client.post(url, posted)

    assert answer.status_code == 302
    assert answer.headers["Location"] == url
    queue.refresh_from_db()
    assert queue.num_slots == 7


def test_tenant_is_erased_when_its_name_is_typed(operator: Operator) -> None:
    fill(OURS)
    theirs = fill(THEIRS)
    client = operator(*ERASE)
    question = client.post(tenant_url(OURS), {"_erase": "1"})
    form = form_values(question, "_apply")

    wrong = client.post(tenant_url(OURS), {**form, "name": "acm"})
    kept = TenantQueue.objects.filter(tenant=OURS, paused=False).count()
    done = client.post(tenant_url(OURS), {**form, "name": OURS}, follow=True)

    assert "This is not the name of the tenant." in text_of(wrong)
    assert kept == 3
    assert "The tenant was erased:" in text_of(done)
    assert not TenantQueue.objects.filter(tenant=OURS).exists()
    assert Job.objects.filter(pk=theirs.job.pk).exists()
    change = Change.objects.latest("pk")
    assert change.action == "erase"
    assert change.actor.startswith("operator-")


def test_erasure_that_takes_long_is_continued_by_the_next_request(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(OURS)
    client = operator(*ERASE)
    posted = {"_erase": "1", "_apply": "1", "name": OURS}
    monkeypatch.setattr(tenant_page, "ERASE_SECONDS", -tenant_page.STOP_SECONDS - 1)

    said = text_of(client.post(tenant_url(OURS), posted, follow=True))

    assert "There are more: erase the tenant again." in said
    assert TenantQueue.objects.filter(tenant=OURS, paused=True, retired=True).exists()
    assert Change.objects.filter(action="erase").exists()
    monkeypatch.undo()
    assert "was erased" in text_of(client.post(tenant_url(OURS), posted, follow=True))
    assert not TenantQueue.objects.filter(tenant=OURS).exists()


def test_erasure_commits_its_steps_also_where_requests_are_transactions() -> None:
    view = resolve(tenant_url("acme").partition("?")[0]).func

    assert view._non_atomic_requests == {"default"}


def test_refresh_reads_the_part_that_changes_alone(admin_client: Client) -> None:
    make_job(make_queue("acme", "own"))
    page = admin_client.get(tenant_url("acme"))

    part = admin_client.get(page.context["refresh_url"]).content.decode()

    assert part.strip().startswith('<div id="tq-home" data-live="home">')
    assert "own" in part


def test_nothing_is_erased_while_jobs_run(operator: Operator) -> None:
    queue = make_queue("acme")
    make_job(queue, state=State.RUNNING)
    posted = {"_erase": "1", "_apply": "1", "name": "acme"}

    said = text_of(operator(*ERASE).post(tenant_url("acme"), posted, follow=True))

    assert "Nothing was deleted: jobs of the tenant run" in said
    assert TenantQueue.objects.get().paused is False


@pytest.mark.parametrize("tenant", ["acme", ""])
@pytest.mark.parametrize("missing", [*ERASE[1:], None])
def test_erasure_needs_both_permissions_and_a_tenant(
    operator: Operator, tenant: str, missing: str | None
) -> None:
    make_queue(tenant)
    client = operator(*(name for name in ERASE if name != missing))

    page = client.get(tenant_url(tenant)).content.decode()
    answer = client.post(tenant_url(tenant), {"_erase": "1", "_apply": "1", "name": tenant})

    allowed = tenant == "acme" and missing in (None, "view_job")
    assert ("_erase" in page) is allowed
    assert answer.status_code == (302 if allowed else 403)
    assert TenantQueue.objects.exists() is not allowed


def test_who_may_only_look_cannot_change_anything(operator: Operator) -> None:
    queue = make_queue("acme")
    client = operator("view_tenantqueue")

    page = client.get(tenant_url("acme")).content.decode()
    answers = [
        client.post(tenant_url("acme"), posted).status_code
        for posted in ({"_pause": "1", "_apply": "1"}, {"_resume": "1"}, {"queue": queue.pk})
    ]

    assert "<form" not in page.partition('id="content-main"')[2].partition("</main>")[0]
    assert answers == [403, 403, 403]


def test_limited_staff_sees_and_changes_its_own_tenant_alone(operator: Operator) -> None:
    fill(OURS)
    fill(THEIRS)
    names = ("view_tenantqueue", "change_tenantqueue", "view_job", *ERASE[1:2], *ERASE[3:])
    with override_settings(TENANTQUEUE=LIMITED):
        client = operator(*names)
        own, other = client.get(tenant_url(OURS)), client.get(tenant_url(THEIRS))
        unknown = client.get(tenant_url("nobody"))
        posted = client.post(tenant_url(THEIRS), {"_pause": "1", "_apply": "3"})
        erased = client.post(tenant_url(OURS), {"_erase": "1", "_apply": "1", "name": OURS})

    assert "acme / acme-queue" in text_of(own)
    assert "_erase" not in own.content.decode()
    codes = [answer.status_code for answer in (other, unknown, posted, erased)]
    assert codes == [404, 404, 404, 403]
    assert not TenantQueue.objects.filter(paused=True).exists()


def test_page_takes_a_bounded_number_of_statements(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(OURS)
    for number in range(40):
        queue = make_queue(OURS, f"queue-{number}")
        make_job(queue, state=State.HELD, held_by="limit_user", limit_user=f"acme/{number}")
        make_job(queue, state=State.RUNNING)
        noop.using(tenant=OURS, limit_user=f"user-{number}").delay()
        counts = {(queue.pk, f"task-{number}", ""): Counts(succeeded=1)}
        add_figures("default", with_totals(counts))
    admin_client.get(tenant_url(OURS))
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def count(self: psycopg.Cursor, query: object, *args: object, **kwargs: object) -> object:
        sent.append(str(query))
        return execute(self, query, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg.Cursor, "execute", count)

    assert admin_client.get(tenant_url(OURS)).status_code == 200
    statements = [query for query in sent if "SAVEPOINT" not in query]
    assert 15 < len(statements) <= MOST_STATEMENTS
