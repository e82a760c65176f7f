"""Jobs that gates hold open an alert."""

from __future__ import annotations

import pytest

from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert
from tests.status.test_held import CAUSES, LATE
from tests.status.test_held import gate as gate

pytestmark = pytest.mark.django_db


def test_rule_opens_an_alert_of_held_jobs(gate: str) -> None:
    make_alert_rule("held", "jobs_held", threshold=600, log=True)
    make_alert_rule("elsewhere", "jobs_held", tenant="globex", threshold=600, log=True)
    make_alert_rule("later", "jobs_held", threshold=2 * 3600, log=True)

    check_rules("default")

    found = [(alert.label, alert.text) for alert in Alert.objects.all()]
    said = f"Jobs are held by {CAUSES[gate]}. The first one has waited for 1 h 1 min."
    label = f"acme / reports: {CAUSES[gate].split(' ')[0]}"
    if gate == "exclusive":
        label = "acme / reports: unique key"
    if gate == "limit_user":
        label = "acme / reports: user limit"
    assert found == ([(label, said)] if gate in LATE else [])
