"""What a feature adds to the erasure of a tenant, and to the list of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from django.db.models import Model
from django.test import Client

from django_tenantqueue import features
from django_tenantqueue.features import Feature
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.models.change import kind_of
from django_tenantqueue.operations.changes import Edit, record_rows
from django_tenantqueue.operations.erasure import close_tenant, erase_tenant, without_tenant
from tests.admin.conftest import text_of, url_of
from tests.factories import make_job, make_queue
from tests.testapp.models import Effect, Plain, Report

pytestmark = pytest.mark.django_db


class Notes(Feature):
    """An app with a table that has a tenant's rows, one that has none, and one with changes."""

    closed: tuple[str, str, bool] = ("", "", False)
    forgotten = ("", "")

    def audited(self) -> Mapping[str, type[Model]]:
        return {"report": Report}

    def tenant_tables(self) -> Mapping[type[Model], str]:
        return {Effect: "note"}

    def fleet_tables(self) -> Sequence[type[Model]]:
        return (Plain,)

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


def test_models_without_tenant_have_those_of_features(notes: Notes) -> None:
    assert without_tenant()[-1] is Plain


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
