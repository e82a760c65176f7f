        -- the job of the `given` id if it waits
        SELECT j.id
        FROM tenantqueue_job_hot j
        WHERE j.id = given.id AND j.state IN ('scheduled', 'held', 'ready')
