"""Workers connect as a role that does not own the tables, with the grants of the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import ProgrammingError, connection
from django.test import override_settings

from django_tenantqueue import checks
from django_tenantqueue.models import Duty, Job
from django_tenantqueue.operations import history
from tests.databases import other_database, settings_of
from tests.testapp.tasks import add

from .workers import Workers, wait_for_end, wait_until

PAGE = Path(__file__).parents[2] / "docs/howto/deployment.md"
ROLES = ("shop_site", "shop_worker")
POLICIES = ("acme", "everything")
MONTH = date(2099, 5, 1)


@pytest.fixture
def roles(transactional_db: None, database_url: str) -> Iterator[Callable[[str], str]]:
    """Make the roles with the grants of the page; yield a function to their URLs."""
    (grants,) = re.findall(r"^```sql\n(GRANT USAGE.*?)^```$", PAGE.read_text(), re.M | re.S)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (owner,) = cursor.fetchone()
        for role in ROLES:
            cursor.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
        cursor.execute(grants.replace("shop_owner", owner))

    def url_of(role: str) -> str:
        url = urlsplit(database_url)
        return url._replace(netloc=f"{role}:secret@{url.netloc.rpartition('@')[2]}").geturl()

    try:
        yield url_of
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {history.leaf_name(MONTH)}")
            for role in ROLES:
                cursor.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_role_of_a_worker_makes_partitions_for_the_owner(roles):
    with (
        other_database("limited", settings_of(roles("shop_worker"))),
        override_settings(TENANTQUEUE={"DATABASE": "limited"}),
    ):
        assert checks.check_database(databases=["limited"]) == []
        assert history.make_leaf("limited", MONTH)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_userbyid(relowner) = current_user, "
            "has_table_privilege('shop_site', oid, 'SELECT') "
            "FROM pg_class WHERE oid = %s::regclass",
            [history.leaf_name(MONTH)],
        )
        assert cursor.fetchone() == (True, True)


def test_role_that_cannot_make_partitions_is_found(roles):
    with (
        other_database("limited", settings_of(roles("shop_site"))),
        override_settings(TENANTQUEUE={"DATABASE": "limited"}),
    ):
        (message,) = checks.check_database(databases=["limited"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            history.make_leaf("limited", MONTH)

    assert message.id == "tenantqueue.W017"
    assert message.msg.startswith("The role 'shop_site' is not a member of ")


def test_worker_until_empty_ends_where_its_role_lacks_a_right(workers: Workers, roles) -> None:
    with connection.cursor() as cursor:
        cursor.execute("REVOKE INSERT ON tenantqueue_worker FROM shop_site")
    add.delay(1, 2)

    runner = workers.launch("--until-empty", database_url=roles("shop_site"))

    assert runner.end() == 1
    assert "permission denied for table tenantqueue_worker" in runner.output


@pytest.mark.parametrize(("role", "is_warned"), [("shop_worker", False), ("shop_site", True)])
def test_worker_of_a_limited_role_runs_jobs_and_does_the_maintenance(
    workers: Workers, roles, role: str, is_warned: bool
):
    runner = workers.start(database_url=roles(role))
    job = add.using(tenant="acme").delay(1, 2)

    wait_for_end([job.pk])

    assert job.refresh().result == 3
    wait_until(Duty.objects.filter(name="make_history").exists, what="partitions are made")
    wait_until(lambda: Duty.objects.count() >= 10, what="each duty was done")
    assert not Duty.objects.exclude(error="")
    assert ("tenantqueue.W017" in runner.output) == is_warned


def test_policy_on_the_root_limits_a_role_for_reports_alone(workers: Workers, roles) -> None:
    (sql,) = re.findall(r"^```sql\n(CREATE ROLE.*?)^```$", PAGE.read_text(), re.M | re.S)
    jobs = [add.using(tenant=tenant).delay(1, 2) for tenant in ("acme", "acme", "globex")]
    workers.run("--until-empty")
    with connection.cursor() as cursor:
        cursor.execute(sql)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET ROLE acme_reports")
            cursor.execute("SELECT id FROM tenantqueue_job ORDER BY id")
            assert [pk for (pk,) in cursor.fetchall()] == [job.pk for job in jobs[:2]]
            for leaf in ("tenantqueue_job_hot", "tenantqueue_job_history"):
                with pytest.raises(ProgrammingError, match=f"permission denied for table {leaf}"):
                    cursor.execute(f"SELECT id FROM {leaf}")
            cursor.execute("RESET ROLE; GRANT SELECT ON tenantqueue_job_history TO acme_reports")
            cursor.execute("SET ROLE acme_reports")
            cursor.execute("SELECT count(*) FROM tenantqueue_job_history")
            assert cursor.fetchone() == (3,)  # the policy is that of the root
            cursor.execute("RESET ROLE")
        with (
            other_database("limited", settings_of(roles("shop_site"))),
            override_settings(TENANTQUEUE={"DATABASE": "limited"}),
        ):
            assert Job.objects.using("limited").count() == 3
            job = add.using(tenant="acme").delay(1, 2)
            with connection.cursor() as cursor:
                cursor.execute("DROP POLICY everything ON tenantqueue_job")
            add.using(tenant="globex").delay(1, 2)
            assert Job.objects.using("limited").count() == 0
        workers.run("--until-empty", database_url=roles("shop_worker"))
        assert job.refresh().result == 3
        assert Job.objects.filter(state="success").count() == 5
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE; ALTER TABLE tenantqueue_job DISABLE ROW LEVEL SECURITY")
            for policy in POLICIES:
                cursor.execute(f"DROP POLICY IF EXISTS {policy} ON tenantqueue_job")
            cursor.execute("DROP OWNED BY acme_reports; DROP ROLE acme_reports")
