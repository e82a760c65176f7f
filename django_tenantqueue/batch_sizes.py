"""How much one piece of work takes, and how much a process remembers."""

from __future__ import annotations

BATCH = 1000
"""Rows that one transaction of many changes, or one statement of a long read returns."""
SMALL_BATCH = 100
"""The same where each row costs more: a lock or statements of its own, or a large result."""
BATCH_BYTES = 4_000_000
"""JSON of one bulk INSERT, and of one page of jobs with their payloads, in bytes."""
REMEMBERED = 10_000
"""Entries of one kind that a process keeps in memory: tokens, routings, endpoints."""
REMEMBERED_SECONDS = 1.0
"""How long a process uses what it has read of routings, tokens and full queues."""
STAMP_SECONDS = 60.0
"""How often a timestamp is renewed that only people read, such as the last use of a token."""
