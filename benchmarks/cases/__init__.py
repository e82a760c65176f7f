"""The cases: each module has a `run(bench)` that yields the rows of the report."""

NAMES = (
    "durable",
    "enqueue",
    "unique",
    "latency",
    "noop",
    "caps",
    "monitors",
    "sessions",
    "fair",
    "backlog",
    "queues",
    "blocked",
    "paused",
    "memory",
    "rescue",
    "idle",
    "pages",
    "bulk",
    "fleet",
    "held",
)
