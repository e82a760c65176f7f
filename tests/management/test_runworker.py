"""What `manage.py runworker` refuses before it starts anything."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings


@override_settings(TENANTQUEUE={"DATABASE": "jobs"})
def test_worker_does_not_start_when_the_setting_names_another_database() -> None:
    with pytest.raises(CommandError) as refused:
        call_command("runworker", "--database=default")

    message = str(refused.value)
    assert "--database='default' is not the jobs' database 'jobs'" in message
    assert "leave --database out, or set TENANTQUEUE['DATABASE'] = 'default' " in message
