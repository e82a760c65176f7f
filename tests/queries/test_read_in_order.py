"""The planner's settings while a page reads indexes in their order."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from django_tenantqueue.queries.lists import read_in_order


def sorts() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_sort")
        (value,) = cursor.fetchone()
    return str(value)


@pytest.mark.django_db(transaction=True)
def test_settings_are_back_after_a_read_of_its_own():
    with read_in_order("default"):
        assert sorts() == "off"

    assert sorts() == "on"


@pytest.mark.django_db(transaction=True)
def test_settings_are_back_in_the_rest_of_the_callers_transaction():
    with transaction.atomic():
        with read_in_order("default"):
            assert sorts() == "off"

        assert sorts() == "on"


@pytest.mark.django_db(transaction=True)
def test_settings_are_back_where_the_caller_commits_by_hand():
    transaction.set_autocommit(False)
    try:
        with read_in_order("default"):
            assert sorts() == "off"

        assert sorts() == "on"
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
