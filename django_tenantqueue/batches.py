"""How much one piece of work takes, and how much a process remembers."""

from __future__ import annotations

BATCH = 1000
"""Rows that one transaction of maintenance or of an action on many jobs changes, and rows that one
statement of a long read returns. Halved: twice as many transactions, and the whole takes longer.
Doubled: locks are held for twice as long, and a supervisor looks after its children later."""
SMALL_BATCH = 100
"""The same where each row costs more: a lock or statements of its own, or memory for a result of
MAX_RESULT_BYTES. Halved: twice as many transactions or statements. Doubled: others wait for longer,
or a process needs twice the memory."""
BATCH_BYTES = 4_000_000
"""JSON of one bulk INSERT, and of one page of jobs with their payloads. PostgreSQL limits an array
of it. Halved: twice as many statements or pages. Doubled: a process needs twice the memory."""
REMEMBERED = 10_000
"""Entries of one kind that a process keeps in memory, such as tokens, routings and endpoints.
Halved: a process that serves more of them asks the database for the others more often. Doubled: it
needs a few megabytes more."""
REMEMBERED_SECONDS = 1.0
"""How long a process uses what it remembers of the database before it looks again: routings,
tokens, how full a queue is. Halved: twice the reads, of some 0.2 ms. Doubled: an edit or a
revocation takes twice the time to act."""
STAMP_SECONDS = 60.0
"""How often a timestamp is renewed that only people read: the last use of a token, the last sight
of an open alert. Halved: twice as many updates. Doubled: it is less exact."""
