"""A muted rule records its alerts and sends no message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from django_tenantqueue import control
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Change, Job
from django_tenantqueue.status.display_limits import PAGE
from tests.admin.conftest import operator, text_of, url_of
from tests.factories import make_jobs, make_queue

from .test_check import HOUR, MINUTE, look, objects_of, rule_on, told

__all__ = ["operator"]
NEEDS = "alerts"
pytestmark = pytest.mark.django_db
HOME = "/admin/tenantqueue/"


def muted_rule(**columns: Any) -> AlertRule:
    rule = rule_on("queue_backlog", threshold=5, **columns)
    control.mute(rule, until=HOUR, reason="known")
    rule.refresh_from_db()
    return rule


def backlog() -> list[int]:
    return make_jobs(make_queue("acme", "mail"), 6)


def end_of(rule: AlertRule) -> None:
    AlertRule.objects.filter(pk=rule.pk).update(muted_until=timezone.now() - MINUTE)


def test_alert_is_recorded_and_sent_after_the_mute_while_it_is_open() -> None:
    rule = muted_rule()
    backlog()

    look()
    assert objects_of(rule) == ["acme / mail"]
    assert told() == []

    end_of(rule)
    look()
    assert told() == [([("open", "acme / mail")], 0, 0)]


def test_alert_that_is_resolved_while_muted_is_never_sent() -> None:
    rule = muted_rule()
    ids = backlog()
    look()
    Job.objects.filter(pk__in=ids)._raw_delete("default")

    look()
    assert Alert.objects.get().resolved_at is not None
    end_of(rule)
    look()

    assert told() == []
    assert not AlertRule.objects.get(pk=rule.pk).left_out


def test_recipients_of_an_alert_are_notified_after_the_mute_that_it_is_resolved() -> None:
    rule = rule_on("queue_backlog", threshold=5)
    ids = backlog()
    look()
    control.mute(rule, until=HOUR, reason="known")
    Job.objects.filter(pk__in=ids)._raw_delete("default")
    look()
    assert len(told()) == 1

    end_of(rule)
    look()

    assert told()[1:] == [([("resolved", "acme / mail")], 0, 0)]


def test_unmuted_rule_sends_at_the_next_check() -> None:
    rule = muted_rule()
    backlog()
    look()

    assert control.unmute(rule).changed == [rule.pk]
    assert control.unmute(rule).unchanged == [rule.pk]
    look()

    assert len(told()) == 1


def test_audit_log_has_the_mute_of_a_rule() -> None:
    rule = muted_rule()
    control.unmute(rule)

    unmuted, muted = Change.objects.filter(action__in=("mute", "unmute"))
    assert muted.object_label == str(rule)
    assert muted.after["mute_reason"] == "known"
    assert unmuted.action == "unmute"


@pytest.mark.parametrize("until", [datetime.max.replace(tzinfo=UTC), -HOUR])
def test_rule_is_not_muted_until_a_time_that_no_page_could_show(until: Any) -> None:
    rule = rule_on("queue_backlog")

    with pytest.raises(InvalidOption, match="until="):
        control.mute(rule, until=until, reason="known")

    rule.refresh_from_db()
    assert rule.muted_until is None


def test_alerts_of_a_muted_rule_take_no_room_from_those_of_others(admin_client: Client) -> None:
    rule = muted_rule(tenant="acme")
    other = rule_on("queue_backlog", threshold=5, tenant="zebra")
    now = timezone.now()
    keys = [(rule, "acme", str(number)) for number in range(PAGE + 1)]
    for owner, tenant, key in (*keys, (other, "zebra", "mail")):
        row = {"tenant": tenant, "key": key, "label": key}
        Alert.objects.create(rule=owner, **row, opened_at=now, seen_at=now)

    counted, folded = admin_client.get(HOME).content.decode().split("<details", 1)

    assert f"Open alerts: 1, of the rules {other}" in counted
    assert f"Open alerts: {PAGE}+" in folded


def test_commands_mute_and_unmute_a_rule() -> None:
    rule = rule_on("queue_backlog")

    def run(*arguments: str) -> str:
        out = StringIO()
        call_command("tenantqueue", "alerts", *arguments, stdout=out)
        return out.getvalue()

    said = run("mute", rule.name, "--for=1h", "--reason=known")
    rule.refresh_from_db()
    assert said.startswith(f"{rule}: muted until {timezone.localtime(rule.muted_until):%Y-%m-%d}")
    assert rule.mute_reason == "known"
    assert run("unmute", str(rule.pk)) == f"{rule}: unmuted\n"
    assert run("unmute", rule.name) == f"{rule}: was not muted\n"


def test_open_alerts_of_a_muted_rule_are_folded_on_the_dashboard(admin_client: Client) -> None:
    rule = muted_rule()
    other = rule_on("queue_backlog", threshold=5)
    backlog()
    look()

    counted, folded = admin_client.get(HOME).content.decode().split("<details", 1)

    assert f"Open alerts: 1, of the rules * / {other.name}" in counted
    assert f"Open alerts: 1, of the rules * / {rule.name}" in folded
    assert "known" in folded


def test_rule_is_muted_in_its_list_and_unmuted_on_its_page(admin_client: Client) -> None:
    rule = rule_on("queue_backlog")
    url = url_of("alertrule", "changelist")
    chosen = {"action": "mute_selected", "_selected_action": str(rule.pk)}
    assert "Alerts that are open when the time is over are sent then." in text_of(
        admin_client.post(url, chosen)
    )
    answer = {"_apply": "1", "how_long": "hour", "reason": "known"}
    response = admin_client.post(url, {**chosen, **answer}, follow=True)

    rule.refresh_from_db()
    assert rule.muted_by == "admin"
    assert "known" in text_of(response)
    page = url_of("alertrule", "change", rule.pk)
    assert "by admin: known" in text_of(admin_client.get(page))
    admin_client.post(page, {"_unmute": "1"})
    rule.refresh_from_db()
    assert (rule.muted_until, rule.mute_reason, rule.muted_by) == (None, "", "")


def sees_acme(user: Any) -> list[str] | None:
    return None if user.is_superuser else ["acme"]


def test_user_of_a_tenant_does_not_see_why_a_rule_of_all_tenants_is_muted(
    operator: Callable[..., Client], settings: Any
) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.contrib.alerts.test_mute.sees_acme"}
    muted_rule()
    own = muted_rule(tenant="acme")
    control.mute(own, until=2 * HOUR + timedelta(minutes=1), reason="ours")
    backlog()
    look()

    folded = operator("view_tenantqueue", "view_alert").get(HOME).content.decode()

    assert "ours" in folded
    assert "known" not in folded
