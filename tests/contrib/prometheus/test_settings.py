"""Settings of the metrics."""

from __future__ import annotations

import pytest

from django_tenantqueue.conf import read_settings
from django_tenantqueue.exceptions import InvalidOption


@pytest.mark.parametrize("token", ["short", "with a space in it", "ümlaute-und-anderes", ""])
def test_token_of_the_metrics_is_rejected_when_it_is_weak(token: str) -> None:
    with pytest.raises(InvalidOption, match=r"\['METRICS'\]\['ACCESS'\]") as error:
        read_settings({"METRICS": {"ACCESS": token}})

    assert not token or token not in str(error.value)
