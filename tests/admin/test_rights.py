"""Each way into the admin, tried by each kind of user: docs/explanation/security.md in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_tenantqueue.admin.base import TenantQueueModelAdmin
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.models import Duty, TaskControl, Worker
from tests.admin.test_visible_tenants import THEIRS, fill
from tests.factories import make_duty, make_worker

from .conftest import url_of

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db

NOBODY = frozenset({"nobody"})
VIEW, ADD, CHANGE, DELETE = (frozenset({name}) for name in ("view", "add", "change", "delete"))
LOOK = {"changelist": VIEW, "export": VIEW, "history": VIEW, "change": VIEW}
READ_ONLY = {**LOOK, "add": NOBODY, "save": NOBODY, "delete": NOBODY}
TUNED = {**READ_ONLY, "save": CHANGE}
PAUSED = {**TUNED, "action:pause_selected": CHANGE, "action:resume_selected": CHANGE}
SWITCHED = {
    **TUNED,
    "add": ADD,
    "delete": DELETE,
    "action:enable_selected": CHANGE,
    "action:disable_selected": CHANGE,
    "action:delete_selected": DELETE,
}
EDITED = {**TUNED, "add": ADD, "delete": DELETE, "action:delete_selected": DELETE}
TABLE: dict[str, dict[str, frozenset[str]]] = {
    "alert": READ_ONLY,
    "alertrule": {**SWITCHED, "button:_send_test": CHANGE},
    "apitoken": {
        **TUNED,
        "add": ADD,
        "action:revoke_selected": CHANGE,
        "button:_revoke": CHANGE,
    },
    "change": READ_ONLY,
    "concurrentjobmonitor": {
        **PAUSED,
        "live": VIEW,
        "details": frozenset({"view", "view_job"}),
        "action:retry_selected": CHANGE,
        "action:cancel_selected": CHANGE,
        "button:_retry_failed": CHANGE,
    },
    "duty": READ_ONLY,
    "job": {
        **TUNED,
        "failures": VIEW,
        "failure_group": VIEW,
        "task": VIEW,
        "live": VIEW,
        "value": VIEW,
        "again": ADD | CHANGE,
        "action:retry_selected": CHANGE,
        "action:cancel_selected": CHANGE,
        "action:run_now_selected": CHANGE,
        "action:change_priority_selected": CHANGE,
        "action:move_selected": CHANGE,
        "action:delete_finished_selected": CHANGE | DELETE,
        "button:_retry": CHANGE,
        "button:_run_now": CHANGE,
        "button:_cancel": CHANGE,
    },
    "retentionrule": EDITED,
    "routing": EDITED,
    "schedule": {
        **SWITCHED,
        "preview": VIEW,
        "action:run_selected": CHANGE,
        "button:_run_now": CHANGE,
    },
    "session": PAUSED,
    "taskcontrol": {**PAUSED, "add": ADD, "delete": DELETE, "action:delete_selected": DELETE},
    "tenantqueue": {
        **PAUSED,
        "add": ADD,
        "overview": VIEW,
        "tenant": VIEW,
        "button:_pause": CHANGE,
        "button:_resume": CHANGE,
        "action:retire_selected": CHANGE,
        "action:unretire_selected": CHANGE,
    },
    "userlimit": {**PAUSED, "add": ADD},
    "worker": {
        **TUNED,
        "action:drain_selected": CHANGE,
        "action:stop_selected": CHANGE,
        "button:_drain": CHANGE,
        "button:_stop": CHANGE,
    },
}
"""What each way into the pages of a model needs: the permissions for this model, all of them.

`save` is a POST of the row's page. `nobody`: not even a superuser.
"""
OF_THE_FLEET = {"duty", "retentionrule", "taskcontrol", "worker"}
"""Users who see some tenants only see nothing of these."""
WITHOUT_ROW = {"changelist", "export", "add", "failures", "failure_group", "preview", "overview"}
KINDS: dict[str, tuple[str, ...] | None] = {
    "anonymous": None,
    "staff": (),
    "viewer": ("view",),
    "changer": ("view", "change"),
    "limited": ("view", "add", "change", "delete"),
    "superuser": ("view", "add", "change", "delete", "view_job"),
}
"""Kinds of users, and their permissions for every model. A limited user sees no row of THEIRS."""


def sees_nothing_of_theirs(user: User) -> list[str] | None:
    return ["acme"] if user.username == "limited" else None


ADMINS = {
    model._meta.model_name: site
    for model, site in admin.site._registry.items()
    if model._meta.app_label.startswith("tenantqueue")
}


def ways_of(site: Any) -> set[str]:
    names = [pattern.name or "" for pattern in site.get_urls()]
    label = f"{site.opts.app_label}_"
    prefix = f"{label}{site.opts.model_name}_"
    ways = {name.removeprefix(prefix).removeprefix(label) for name in names} - {""}
    ways.add("save")
    actions = {getattr(action, "name", None) or action[1] for action in site._get_base_actions()}
    if site.delete is None:
        actions -= {"delete_selected"}  # of the whole site; nobody has the permission
    ways |= {f"action:{name}" for name in actions}
    return ways | {f"button:{name}" for name in site.buttons}


def test_every_way_in_is_in_the_table() -> None:
    found = {name: ways_of(site) for name, site in ADMINS.items()}

    assert found == {name: set(ways) for name, ways in TABLE.items()}


def test_every_model_of_the_admin_has_the_base_that_decides() -> None:
    others = {n for n, site in ADMINS.items() if not isinstance(site, TenantQueueModelAdmin)}

    assert not others


Called = list[tuple[str, str, list[int]]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Return a list of the actions that were let through: model, name, rows. They do nothing."""
    calls: Called = []

    def record(model: str, cls: type, name: str) -> None:
        @wraps(getattr(cls, name))
        def action(self: Any, request: Any, queryset: Any) -> None:
            if self.opts.model_name == model:
                calls.append((model, name, [row.pk for row in queryset]))

        monkeypatch.setattr(cls, name, action)

    for model, site in ADMINS.items():
        for name in {*site.actions, *site.buttons.values()}:
            record(model, type(site), name)
        if site.delete is not None:
            record(model, type(site), "delete_queryset")
    return calls


@pytest.fixture
def rows(db: None) -> dict[str, int]:
    """Return the id of a row of each model of the admin, of one tenant or of all."""
    found = dict(fill(THEIRS).pages)
    make_duty()
    make_worker()
    others: list[type[Model]] = [Duty, Worker]
    found |= {str(model._meta.model_name): model._default_manager.get().pk for model in others}
    found["retentionrule"] = RetentionRule.objects.create(tenant=THEIRS, keep_days=9).pk
    found["taskcontrol"] = TaskControl.objects.create(task="app.task").pk
    found["change"] = ADMINS["change"].model.objects.filter(tenant=THEIRS)[0].pk
    return found


def log_in(kind: str) -> Client:
    client, names = Client(), KINDS[kind]
    if names is None:
        return client
    user = User.objects.create_user(kind, is_staff=True, is_superuser=kind == "superuser")
    ours = Permission.objects.filter(content_type__app_label__startswith="tenantqueue")
    for name in names:
        user.user_permissions.add(*ours.filter(codename__startswith=f"{name}_"))
    client.force_login(user)
    return client


def address_of(model: str, way: str, pk: int) -> str:
    if way in ("failures", "failure_group", "overview"):
        return reverse(f"admin:tenantqueue_{way}", query={"task": "t", "error": "e"})
    if way in ("task", "tenant"):
        return reverse(f"admin:tenantqueue_{way}", query={"task": "t", "tenant": THEIRS})
    if way == "export":
        return url_of(model, way, "csv")
    if way == "details":
        return url_of(model, way, pk, "csv")
    if way == "value":
        return url_of(model, way, pk, "arguments")
    return url_of(model, way, *([] if way in WITHOUT_ROW else [pk]))


def attempt(client: Client, model: str, way: str, pk: int, called: Called) -> str:
    """Try a way in; return what came of it."""
    kind, _, name = way.partition(":")
    del called[:]
    listed, page = url_of(model, "changelist"), url_of(model, "change", pk)
    if kind == "action":
        answer = client.post(listed, {"action": name, "_selected_action": pk, "index": "0"})
        answer = _confirmed(client, listed, name, pk, answer)
        name = "delete_queryset" if name == "delete_selected" else name
        return "allowed" if any(pk in ids for _, _, ids in called) else _refusal(answer)
    if kind == "button":
        answer = client.post(page, {name: "1"})
        return "allowed" if any(pk in ids for _, _, ids in called) else _refusal(answer)
    if way == "save":
        return _outcome(client.post(page, {"priority": "not a JSON number"}))
    if way == "delete":
        answer = client.post(url_of(model, "delete", pk), {"post": "yes"})
        return "allowed" if any(pk in ids for _, _, ids in called) else _refusal(answer)
    answer = client.get(address_of(model, way, pk))
    outcome = _outcome(answer)
    if way == "changelist" and outcome == "allowed":
        shown = [row.pk for row in answer.context["cl"].result_list]
        return "allowed" if pk in shown else "hidden"
    return outcome


def _confirmed(client: Client, listed: str, name: str, pk: int, answer: HttpResponse) -> Any:
    """Answer the question of Django's own action, which deletes."""
    if name != "delete_selected" or answer.status_code != 200:
        return answer
    data = {"action": name, "_selected_action": pk, "post": "yes"}
    return client.post(listed, data)


def _outcome(answer: HttpResponse) -> str:
    where = answer.headers.get("Location", "")
    if where.startswith("/admin/login/"):
        return "login"
    if answer.status_code == 403:
        return "refused"
    if answer.status_code == 404 or where in ("/admin/", "/admin/tenantqueue/"):
        return "hidden"
    return "allowed" if answer.status_code in (200, 302) else f"status {answer.status_code}"


def _refusal(answer: HttpResponse) -> str:
    """Return what came of a POST that changed nothing: a page that was shown again is a refusal."""
    outcome = _outcome(answer)
    return "refused" if outcome == "allowed" else outcome


def expected(kind: str, model: str, way: str) -> str:
    """Return what the table says of a way in. What a limited user does not see is refused."""
    names, needs = KINDS[kind], TABLE[model][way]
    if names is None:
        return "login"
    if not needs <= {*names, *(f"{name}_job" for name in names)}:
        return "refused"
    if kind != "limited":
        return "allowed"
    is_about_rows = way == "changelist" or way not in WITHOUT_ROW
    return "refused" if is_about_rows or model in OF_THE_FLEET else "allowed"


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    visible = "tests.admin.test_rights.sees_nothing_of_theirs"
    with override_settings(TENANTQUEUE={"VISIBLE_TENANTS": visible}):
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_each_way_in_needs_what_the_table_says(
    kind: str, rows: dict[str, int], called: Called
) -> None:
    client = log_in(kind)
    found, wanted = {}, {}
    for model, ways in TABLE.items():
        for way in ways:
            with transaction.atomic():
                came = attempt(client, model, way, rows[model], called)
                transaction.set_rollback(True)
            found[model, way] = "refused" if came == "hidden" else came
            wanted[model, way] = expected(kind, model, way)

    different = {key: (found[key], wanted[key]) for key in found if found[key] != wanted[key]}
    assert not different, "way in: (what came of it, what the table says)"


ADMIN_PAGES: dict[str, Callable[[], str]] = {
    "index": lambda: reverse("admin:index"),
    "app": lambda: reverse("admin:app_list", args=["tenantqueue"]),
}


@pytest.mark.parametrize("page", ADMIN_PAGES)
def test_first_pages_tell_staff_without_permissions_nothing(
    page: str, rows: dict[str, int]
) -> None:
    staff = log_in("staff").get(ADMIN_PAGES[page]())
    anonymous = Client().get(ADMIN_PAGES[page]())

    assert THEIRS not in staff.content.decode()
    assert _outcome(anonymous) == "login"


PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"
WORDS = {
    "nobody": "–",
    "view": "*view*",
    "add": "*add*",
    "change": "*change*",
    "delete": "*delete*",
    "view_job": "*view* for jobs",
}


def words_of(needs: frozenset[str]) -> str:
    """Return what a way in needs, as the documentation has it."""
    return " and ".join(text for name, text in WORDS.items() if name in needs)


def row_of(model: str) -> str:
    ways = TABLE[model]
    own: dict[str, list[str]] = {}
    for way in sorted(set(ways) - set(READ_ONLY)):
        own.setdefault(words_of(ways[way]), []).append(f"`{way.rpartition(':')[2]}`")
    needs = [words_of(ways[way]) for way in ("changelist", "add", "save", "delete")]
    others = "; ".join(f"{', '.join(names)}: {said}" for said, names in own.items())
    return f"| `{model}` | {' | '.join(needs)} | {others or '–'} |"


def test_the_documentation_has_the_table() -> None:
    text = PAGE.read_text()

    assert not [row for row in map(row_of, TABLE) if row not in text]
