"""Surveys of what is ready, while the server cannot clean up: see operations/surveys.py."""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg

from ..operations.surveys import MOST_PLACES, Surveys
from ..queries.survey import survey_ready

logger = logging.getLogger("django_tenantqueue")


def survey(connection: psycopg.Connection[Any], surveys: Surveys) -> None:
    """Let a worker know where jobs are ready; raise the error of a survey that failed."""
    before, began = surveys.is_active, time.monotonic()
    try:
        found = survey_ready(connection, most=MOST_PLACES, seconds=surveys.timeout)
    except psycopg.Error:
        surveys.failed()
        raise
    surveys.surveyed(found, seconds=time.monotonic() - began)
    if surveys.is_active and not before:
        logger.info(
            "a transaction that is held open keeps the server from cleaning up: from now on claims "
            "pass over %d index entries of jobs that have gone",
            found.entries - len(found.places),
        )
    elif before and not surveys.is_active:
        logger.info("claims look for jobs of all ids again")
