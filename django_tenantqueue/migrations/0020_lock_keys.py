"""The trigger that waits for claims takes the lock of its own schema's installation."""

from django.db import migrations

from ._base import PostgresMigration

# Claims share this lock of a queue without limit, see sql/parts/lock_class.sql; TG_RELID is the oid
# of tenantqueue_tenantqueue.
WAIT_FOR_CLAIMS = """
    CREATE OR REPLACE FUNCTION tenantqueue_wait_for_claims() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtext(concat_ws(' ', 1953591669, TG_RELID)), NEW.id);
        RETURN NEW;
    END $$
"""
WAIT_BEFORE = """
    CREATE OR REPLACE FUNCTION tenantqueue_wait_for_claims() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(1953591669, NEW.id);
        RETURN NEW;
    END $$
"""


class Migration(PostgresMigration):
    dependencies = [("tenantqueue", "0019_token_limits")]

    operations = [migrations.RunSQL(WAIT_FOR_CLAIMS, WAIT_BEFORE)]
