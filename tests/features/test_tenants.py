"""What a feature adds to the erasure of a tenant, and to the list of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from django_tenantqueue import features
from django_tenantqueue.checks import check_routers
from django_tenantqueue.features import Feature
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.models.change import kind_of
from django_tenantqueue.operations.changes import Edit, record_rows
from django_tenantqueue.operations.erasure import close_tenant, erase_tenant
from tests.admin.conftest import text_of, url_of
from tests.databases import other_database
from tests.factories import make_job, make_queue
from tests.testapp.models import Effect, Report

pytestmark = pytest.mark.django_db
ELSEWHERE = f"{__name__}.JobsElsewhere"


class Notes(Feature):
    """An app with a table that has a tenant's rows, and one with changes."""

    closed: tuple[str, str, bool] = ("", "", False)
    forgotten = ("", "")

    def audited(self) -> Mapping[str, type[Model]]:
        return {"report": Report}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {Effect: "note"}

    def close_tenant(self, using: str, tenant: str) -> None:
        self.closed = using, tenant, TenantQueue.objects.get(tenant=tenant).paused

    def forget_tenant(self, using: str, tenant: str) -> None:
        self.forgotten = using, tenant


@pytest.fixture
def notes(install: Callable[[Feature], None]) -> Notes:
    feature = Notes()
    install(feature)
    return feature


def test_rows_of_a_feature_go_before_jobs_when_a_tenant_is_erased(notes: Notes) -> None:
    make_job(make_queue("acme"))
    for tenant in ("acme", "globex"):
        Effect.objects.create(job_id=1, note=tenant)
    steps: list[str] = []

    report = erase_tenant("acme", using="default", tell=lambda table, rows: steps.append(table))

    assert steps[:2] == [Effect._meta.db_table, Job._meta.db_table]
    assert report[Effect._meta.db_table] == 1
    assert [effect.note for effect in Effect.objects.all()] == ["globex"]


def test_feature_closes_and_forgets_a_tenant_that_is_erased(notes: Notes) -> None:
    make_queue("acme")

    close_tenant("default", "acme")
    assert notes.closed == ("default", "acme", True)
    assert notes.forgotten == ("", "")

    erase_tenant("acme", using="default")
    assert notes.forgotten == ("default", "acme")


def test_nothing_is_closed_when_a_feature_fails(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(using: str, tenant: str) -> None:
        raise RuntimeError

    monkeypatch.setattr(notes, "close_tenant", fail)
    make_queue("acme")
    features._bound.cache_clear()

    with pytest.raises(RuntimeError):
        close_tenant("default", "acme")

    assert not TenantQueue.objects.get().paused


def test_changes_of_a_feature_are_recorded_and_shown(notes: Notes, admin_client: Client) -> None:
    reports = [Report.objects.create(title=title, rows=2) for title in "ab"]
    assert kind_of(reports[0]) == "report"

    record_rows("default", Change.Action.TUNE, reports, Edit({"rows": 1}, {"rows": 2}))

    assert Change.objects.get().object_kind == "report"
    text = text_of(admin_client.get(url_of("change", "changelist")))
    assert "2 reports a, b rows 1 → 2" in text


def test_kind_of_a_row_is_none_when_no_feature_records_it() -> None:
    assert kind_of(Report()) is None


class JobsElsewhere:
    """Has the jobs in a database of their own, and nothing else."""

    def db_for_read(self, model: type[Model], **hints: object) -> str | None:
        return "jobs" if model._meta.app_label == "tenantqueue" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool | None:
        return db == "jobs" if app_label == "tenantqueue" else None


@pytest.mark.parametrize("path", ["django_tenantqueue.routers.TenantQueueRouter", ELSEWHERE])
def test_check_names_an_app_whose_rows_no_erasure_would_find(
    path: str, notes: Notes, settings: Any
) -> None:
    settings.TENANTQUEUE, settings.DATABASE_ROUTERS = {"DATABASE": "jobs"}, [path]
    with other_database("jobs", {"ENGINE": "django.db.backends.postgresql"}):
        said = [message.msg for message in check_routers()]

    wrong = "use the database 'default', and TENANTQUEUE['DATABASE'] is 'jobs'."
    assert f"The models of tests.testapp {wrong}" in said
    assert not [text for text in said if "of django_tenantqueue use" in text]
