"""Surveys of what is ready, while the server cannot clean up: see operations/recall.py."""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg

from ..operations.recall import MOST_SPOTS, Recall
from ..queries.recall import survey_ready

logger = logging.getLogger("django_tenantqueue")


def survey(connection: psycopg.Connection[Any], recall: Recall) -> None:
    """Let a worker know where jobs are ready; raise the error of a survey that failed."""
    before, began = recall.is_active, time.monotonic()
    try:
        found = survey_ready(connection, most=MOST_SPOTS, seconds=recall.survey_timeout)
    except psycopg.Error:
        recall.failed()
        raise
    recall.surveyed(found, seconds=time.monotonic() - began)
    if recall.is_active and not before:
        logger.info(
            "a transaction that is held open keeps the server from cleaning up: from now on claims "
            "pass over %d index entries of jobs that have gone",
            found.walked - len(found.floors),
        )
    elif before and not recall.is_active:
        logger.info("claims walk over the queues again")
