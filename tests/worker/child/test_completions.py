"""Ends that wait to be stored, and which errors of the server are final for them."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.worker.child.completions import Completions, is_final


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_later_claim_is_stored_when_two_of_one_job_have_ended(numbers):
    completions = Completions(1)
    for number in numbers:
        completions.add(Finished(7, number, "success", 0.1))

    assert [end.claim_seq for end in completions.take()[0]] == [2]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO checked VALUES (0)", True),
        ("INSERT INTO checked VALUES (NULL)", True),
        ("INSERT INTO checked SELECT repeat('[', 50000)::jsonb::text::int", True),
        ("INSERT INTO in_leaves VALUES (1)", False),
        ("INSERT INTO checked VALUES (1 / 0)", True),
        ("INSERT INTO not_there VALUES (1)", False),
    ],
)
@pytest.mark.django_db
def test_end_is_given_up_when_the_server_refuses_what_it_says(statement, expected):
    """A leaf that is missing and a table that is not migrated are no fault of the row's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE checked (number int NOT NULL CHECK (number > 0)) ON COMMIT DROP;"
            "CREATE TEMP TABLE in_leaves (number int) PARTITION BY RANGE (number)"
        )
    with pytest.raises(psycopg.Error) as caught:
        psycopg.Cursor(connection.connection).execute(statement)

    assert is_final(caught.value) is expected
