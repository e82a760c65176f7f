"""Metrics of what gates hold."""

from __future__ import annotations

import pytest

from django_tenantqueue.contrib.prometheus.reads import read_metrics
from tests.status.test_held import gate as gate

pytestmark = pytest.mark.django_db


def test_metrics_have_the_oldest_of_each_gate(gate: str) -> None:
    read = read_metrics("default").held_wait_seconds

    assert read.pop(gate) == pytest.approx(61 * 60, abs=30)
    assert set(read.values()) == {0.0}
