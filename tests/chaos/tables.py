"""The run's own tables: what was enqueued, and what the task bodies did."""

SCHEMA = """
    CREATE TABLE chaos_job (
        job_id bigint PRIMARY KEY,
        portion integer NOT NULL,
        kind text NOT NULL
    );
    CREATE INDEX chaos_job_portion ON chaos_job (portion);

    -- Two rows for each run of a body: when it begins, and when it ends.
    CREATE TABLE chaos_mark (
        run uuid NOT NULL,
        ends boolean NOT NULL,
        at timestamptz NOT NULL,
        job_id bigint NOT NULL,
        claim_seq integer NOT NULL,
        process text NOT NULL,
        claimed_at timestamptz,
        PRIMARY KEY (run, ends)
    );

    CREATE TABLE chaos_effect (job_id bigint NOT NULL);
"""

MARK = """
    INSERT INTO chaos_mark (run, ends, at, job_id, claim_seq, process, claimed_at)
    VALUES (
        %(run)s, %(ends)s, %(at)s, %(job)s, %(claim_seq)s, %(process)s,
        (
            SELECT j.queued_at
            FROM tenantqueue_job_hot j
            WHERE j.id = %(job)s AND j.claim_seq = %(claim_seq)s
        )
    )
    ON CONFLICT DO NOTHING
"""
"""Write one of the two. It may be sent again when the answer was lost."""

EFFECT = "INSERT INTO chaos_effect (job_id) VALUES (%s)"
NOTE_JOBS = (
    "INSERT INTO chaos_job (job_id, portion, kind) SELECT unnest(%s::bigint[]), %s::integer, %s"
)
IS_ENQUEUED = "SELECT EXISTS (SELECT FROM chaos_job WHERE portion = %s)"
