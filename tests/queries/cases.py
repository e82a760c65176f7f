"""What each statement is tried with, the indexes it must use and the pages it may touch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from django_tenantqueue.contrib.api.idempotency import prune_idempotency_keys
from django_tenantqueue.contrib.fireworq import lists as fireworq
from django_tenantqueue.contrib.retention.pruning import AVOIDED
from django_tenantqueue.operations.maintain import FIGURES_KEPT
from django_tenantqueue.queries import lists
from django_tenantqueue.queries.base import array
from django_tenantqueue.queries.claim import start_params
from django_tenantqueue.queries.survey import first_taken_params, survey_params
from django_tenantqueue.states import ACTIVE, UNFINISHED, State
from django_tenantqueue.status import changes, held, queue_loads
from tests.queries.case import Call, Case, both
from tests.queries.filled import OUR_WORKER, RARE, SCALE
from tests.queries.params import (
    changes_of,
    claims,
    ended,
    failed,
    failed_group,
    failed_jobs,
    failures,
    figures,
    finished,
    gated,
    gates,
    ids,
    known,
    listed,
    locks,
    monitors,
    new_job,
    of_kind,
    of_queue,
    of_sources,
    rescued,
    swept,
    taken,
    task_release,
    thinned,
    unique_jobs,
)

FIGURES = ("tenantqueue_figure_pkey",)
KEYS = ("tenantqueue_uniquekey_pkey",)
HOT_KEY = ("tenantqueue_job_hot_pkey",)
TASK_LINE = ("tenantqueue_job_task_line",)
TASK_INSIDE = ("tenantqueue_job_task_inside",)
SESSION_GATES = tuple(
    f"tenantqueue_job_{kind}_{part}"
    for kind in ("session", "limit_user")
    for part in ("line", "inside")
)
BLOCKING = {"session": ("tenantqueue_job_session_block",), "limit_user": (), "exclusive": ()}
READY = ("tenantqueue_job_ready",)
SLOTS = ("tenantqueue_job_slots",)
DUE = ("tenantqueue_job_due",)
FAILED = ("tenantqueue_history_failed",)
OF_SOURCES = ("tenantqueue_job_source", "tenantqueue_history_source")
OF_USER = ("tenantqueue_job_creator", "tenantqueue_history_creator")
LINE = ("tenantqueue_job_monitor_line",)
LINES = tuple(
    f"tenantqueue_job_{kind}_line"
    for kind in ("monitor", "session", "limit_user", "exclusive", "task")
)
HELD = ("tenantqueue_job_held",)
INSIDE = ("tenantqueue_job_monitor_inside",)
ASIDE = ("tenantqueue_job_monitor_aside",)
SESSION_KEY = ("tenantqueue_session_unique",)
DETAIL_ENDS = ("tenantqueue_history_monitor",)
RATE = ("tenantqueue_queuerate_pkey",)
BUSY = {"listed": 20, "visits": 2000, "active": 10_000, "startable": 1000, "blocked": 0}
WITHOUT_SCANS = dict.fromkeys(changes.AVOIDED, "off")
BITMAPS = {**dict.fromkeys(lists._AVOIDED, "off"), **lists.BITMAPS}
ORDERED = dict.fromkeys(lists._AVOIDED, "off")
TASK = "tests.testapp.tasks.noop"
OLD = 400_000
"""The id below which a page begins that is deep in the history."""
DEAD_ROWS = 45_000 * SCALE
"""Pages touched by the first walk that meets all dead rows; the next one is spared."""
SLOT_INDEX = 30_000 * SCALE
"""Pages touched to read the slot index whole, dead entries and all."""
WORKERS_READ = 400
"""Pages touched when the table of workers, without statistics, is read whole with its dead rows."""
CATALOGS = 400
"""Pages of the catalogs that a connection reads at its first use of a statement."""
TOMORROW = datetime.now(UTC) + timedelta(days=1)

CASES: dict[str, list[Case]] = {
    "read_ended": [
        Case(
            ended(first="(20,0)", until="(84,0)", before=TOMORROW, queues=queues, whole=True),
            buffers=1000,
            settings=dict.fromkeys(AVOIDED, "off"),
        )
        for queues in (None, "{1,2,3}")
    ],
    "delete_ended": [
        Case(ended("failed", latest=TOMORROW), ("tenantqueue_history_pkey",), 8000),
    ],
    "thin_ended": [
        Case(
            ended("failed", "arguments", "results", "errors", latest=TOMORROW),
            ("tenantqueue_history_pkey",),
            25_000,
        ),
    ],
    "measure_leaf": [
        Case(lambda _: {"leaf": "tenantqueue_job_history_default"}, first_walk=CATALOGS)
    ],
    "list_changes_of": [
        Case(
            changes_of("queue", 7, "tenant-7 / default"),
            ("tenantqueue_change_ids", "tenantqueue_change_label"),
            500,
            settings=WITHOUT_SCANS,
        ),
        Case(changes_of("job", 7, None), ("tenantqueue_change_ids",), 500, settings=WITHOUT_SCANS),
    ],
    "touch_token": [
        Case(lambda _: {"id": 7, "every_seconds": 60.0}, ("tenantqueue_apitoken_pkey",), 200)
    ],
    "take_idempotency_key": [
        Case(
            lambda filled: {
                "token_id": filled.token_id,
                "key": "key-7",
                "tenant": "acme",
                "digest": "d",
                "keep_seconds": 86_400.0,
            },
            buffers=200,
        )
    ],
    "wait_at_turnstile": [Case(lambda _: {"key": 1}, worker=True)],
    "read_clock": [Case(lambda _: {})],
    "list_routings": [Case(lambda _: {}, buffers=100)],
    "read_move": [Case(lambda _: {"tenant": "tenant-7"}, buffers=20)],
    "read_last_id": [Case(lambda _: {})],
    "raise_ids": [Case(lambda _: {"last": 1, "next": 33})],
    "list_open_transactions": [Case(lambda _: {}, buffers=200)],
    "lock_moving_jobs": [
        Case(
            lambda filled: {"queues": array(filled.open_queues[:5])},
            scans=True,
            buffers=20_000 * SCALE,
        )
    ],
    "list_move_blockers": [
        Case(
            lambda filled: {"queues": array(filled.open_queues[:5])},
            SLOTS,
            scans=True,
            buffers=20_000 * SCALE,
        )
    ],
    "read_pins": [Case(lambda _: {"known_version": -1}, buffers=100)],
    "take_lead": [
        Case(lambda _: {"key": 7}, worker=True),
    ],
    "fail_jobs": [Case(failed_jobs, HOT_KEY, 4000)],
    "cancel_waiting_jobs": [Case(ids("ready", error=None, halts=True), HOT_KEY, 4000)],
    "claim_jobs": [
        Case(
            claims(),
            (*SLOTS, *READY, *RATE, *HOT_KEY),
            20_000,
            worker=True,
            before="lock_queues",
        ),
        Case(
            lambda filled: claims(
                left_tasks=[f"tests.gone_{n}" for n in range(200)],
                left_jobs=filled.ready[:200],
            )(filled),
            (*SLOTS, *READY, *RATE, *HOT_KEY),
            60_000,
            worker=True,
            before="lock_queues",
        ),
        Case(
            lambda filled: claims(by_ids=True, taken=taken(filled))(filled),
            (*SLOTS, *READY),
            20_000,
            worker=True,
            before="lock_queues",
        ),
    ],
    "connection_budget": [Case(lambda _: {}, scans=True, buffers=400)],
    "count_details": [
        Case(lambda _: {"ids": "{7,8}"}, (*LINE, *INSIDE, *ASIDE, *DETAIL_ENDS), 4000),
    ],
    "count_jobs_before": [
        Case(
            lambda filled: {
                "id": filled.ready[-1],
                "lane": 240,
                "queue_id": filled.open_queues[0],
                "priority": 240,
                "most": 1000,
            },
            READY,
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "list_taken_slots": [
        Case(
            lambda filled: {"queue_id": filled.open_queues[0], "most": 5},
            SLOTS,
            SLOT_INDEX,
            settings=ORDERED,
        )
    ],
    "list_gate_jobs": [
        Case(
            lambda _, kind=kind: {"kind": kind, "key": "tenant/7", "most": 5},
            (f"tenantqueue_job_{kind}_inside",),
            4000,
            settings=ORDERED,
        )
        for kind in ("session", "limit_user", "exclusive")
    ],
    "read_monitor_gate": [
        Case(
            lambda _: {"monitor_id": 7},
            (*INSIDE, *DETAIL_ENDS, *HOT_KEY),
            4000,
            settings=ORDERED,
        )
    ],
    "group_details": [
        Case(
            lambda _: {"monitor_id": 7, "most": 1000, "groups": 50},
            (*INSIDE, *ASIDE),
            2000,
            settings=ORDERED,
        )
    ],
    "group_failures": [
        Case(lambda _: {"monitor_id": 8, "most": 1000, "groups": 20}, DETAIL_ENDS, 3000)
    ],
    "read_monitor_of_job": [
        Case(lambda filled: {"job_id": filled.ready[0]}, ("tenantqueue_job_hot_pkey",))
    ],
    "sum_up_monitor": [
        Case(lambda _: {"monitor_id": 7}, (*LINE, *INSIDE, *ASIDE, *DETAIL_ENDS), 4000)
    ],
    "find_monitors_ahead": [Case(lambda _: {"ids": "{7,8}"}, (*INSIDE, *READY), 500)],
    "count_jobs": [
        Case(
            lambda _: {"most": 10_000},
            (*READY, *DUE, *SLOTS, *LINES),
            2 * DEAD_ROWS + SLOT_INDEX,
            first_walk=DEAD_ROWS,
            settings=ORDERED,
        )
    ],
    "add_figures": [
        Case(
            lambda _: {
                "queue_ids": "{0,0,1}",
                "tasks": '{"",task-1,task-1}',
                "errors": '{"","",""}',
                **dict.fromkeys(
                    ("started", "succeeded", "failed", "retried", "cancelled"), "{1,1,1}"
                ),
                "wait_seconds": "{0.1,0.1,0.1}",
                "run_seconds": "{0.2,0.2,0.2}",
                "waits": '{"{1}","{1}","{1}"}',
                "runs": '{"{0,1}","{0,1}","{0,1}"}',
                "last_job_ids": "{NULL,NULL,NULL}",
            },
            worker=True,
        )
    ],
    "list_busy_queues": [
        Case(
            lambda _: BUSY,
            (*READY, *SLOTS, *RATE, "tenantqueue_tenantqueue_pkey"),
            DEAD_ROWS + SLOT_INDEX,
            first_walk=DEAD_ROWS,
            settings=ORDERED,
        ),
        # of a scrape
        Case(
            lambda _: {**BUSY, "visits": 20_000, "blocked": 10_000},
            (*READY, *SLOTS, *RATE, "tenantqueue_tenantqueue_pkey"),
            2 * DEAD_ROWS + SLOT_INDEX,
            first_walk=DEAD_ROWS,
            settings=ORDERED,
        ),
        # the slots of each queue are counted, since there are more active jobs than `active`
        Case(
            lambda _: {**BUSY, "active": 10, "blocked": 10_000},
            (*READY, *SLOTS, *RATE, "tenantqueue_tenantqueue_pkey"),
            2 * DEAD_ROWS + SLOT_INDEX,
            first_walk=DEAD_ROWS,
            settings=ORDERED,
        ),
    ],
    "list_failures": [
        Case(failures(), ("tenantqueue_figure_errors",), 6000, settings=ORDERED),
        Case(
            failures(queues="{1,2,3}", task="task-1"),
            ("tenantqueue_figure_errors",),
            3000,
            settings=ORDERED,
        ),
    ],
    "list_failing_queues": [
        Case(
            lambda _: {
                "tasks": [f"task-{n}" for n in range(10)],
                "errors": ["ValueError"] * 10,
                "since": datetime.now(UTC) - timedelta(days=7),
                "listed": 5,
                "most": 500,
            },
            ("tenantqueue_figure_groups",),
            6000,
            settings=ORDERED,
        )
    ],
    "list_failing_tasks": [
        Case(
            lambda _: {
                "since": datetime.now(UTC) - timedelta(hours=1),
                "least": 10,
                "share": 0.1,
                "most": 5,
            },
            FIGURES,
            2500,
        )
    ],
    **{
        f"list_{order}ready_of_queue": [
            Case(
                of_queue(first=bool(order)),
                READY,
                4000,
                first_walk=DEAD_ROWS,
                settings=ORDERED,
            )
        ]
        for order in ("", "first_")
    },
    "count_push": [Case(lambda _: {"queue_id": 1})],
    "list_failed_jobs": [
        Case(failed_group(), ("tenantqueue_history_errors",), 2500, settings=ORDERED),
        Case(
            failed_group(error="KeyError"), ("tenantqueue_history_errors",), 100, settings=ORDERED
        ),
    ],
    "list_jobs_to_retry": [
        Case(
            lambda _: {
                "task": "tests.testapp.tasks.noop",
                "error": "ValueError",
                "before": 2**63 - 1,
                "most": 1000,
            },
            ("tenantqueue_job_errors",),
            2500,
            settings=ORDERED,
        )
    ],
    "list_figures": [
        Case(figures, FIGURES, 300),
    ],
    "list_figures_of_queues": [
        Case(lambda filled: {**figures(filled), "queue_ids": "{1,2,3,4,5}"}, FIGURES, 400)
    ],
    "list_figures_of_task": [
        Case(
            lambda _, queues=queues: {
                "queue_ids": queues,
                "since": datetime.now(UTC) - timedelta(days=7),
                "task": "task-7",
            },
            FIGURES,
            buffers,
        )
        for queues, buffers in (("{0}", 1000), ("{7,37,67,97,127}", 4000))
    ],
    "list_task_figures": [Case(lambda filled: {**figures(filled), "most": 20}, FIGURES, 4000)],
    "sum_failures_by_queue": [
        Case(
            lambda _: {"since": datetime.now(UTC) - timedelta(hours=1), "visits": 1000},
            ("tenantqueue_figure_errors",),
            6000,
            settings=ORDERED,
        )
    ],
    "sum_of_queues": [
        Case(  # since ever, as clients of Fireworq ask
            lambda _: {"since": datetime(2000, 1, 1, tzinfo=UTC), "queue_ids": "{1}"},
            FIGURES,
            2000,
        ),
        Case(
            lambda _: {
                "since": datetime.now(UTC) - timedelta(hours=1),
                "queue_ids": "{1,2,3,4,5}",
            },
            FIGURES,
            400,
        ),
    ],
    "thin_figures": [
        Case(thinned(*kept), ("tenantqueue_figure_age", *FIGURES), 60_000) for kept in FIGURES_KEPT
    ],
    "add_to_totals": [
        Case(
            lambda _: {
                "now": None,
                "settle": 600.0,
                "most": 50,
                "silent": 7 * 86400.0,
            },
            FIGURES,
            6000,
        )
    ],
    "read_totals": [Case(lambda _: {}, FIGURES, 2500)],
    "list_last_full": [
        Case(
            lambda filled: {"ids": array(filled.open_queues[:20]), "most": 50},
            ("tenantqueue_history_queue", *SLOTS, "tenantqueue_tenantqueue_pkey"),
            10_000,
            first_walk=SLOT_INDEX,
            settings=ORDERED,
        ),
    ],
    "count_claims_of_workers": [
        Case(
            lambda _: {"workers": array([OUR_WORKER, OUR_WORKER + 1])},
            SLOTS,
            SLOT_INDEX,
            settings=ORDERED,
        )
    ],
    "count_queues": [
        Case(
            lambda filled: {
                "ids": array(filled.open_queues),
                "running": 1000,
                "waiting": 1000,
            },
            (*SLOTS, *READY),
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "count_waiting": [
        Case(
            lambda filled: {"queue_id": filled.limited_queue},
            (*READY, "tenantqueue_tenantqueue_pkey"),
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "create_queues": [
        Case(
            lambda _: {
                "tenants": ["tenant-7", "new"],
                "names": ["default", "default"],
                "num_slots": [5, None],
                "executors": [None, None],
            },
            first_walk=2 * CATALOGS,  # and those of the trigger of shards
        ),
    ],
    "delete_jobs": [Case(ids("failed"), ("tenantqueue_history_pkey",), 8000)],
    "delete_worker": [
        Case(lambda _: {"worker": OUR_WORKER}, worker=True, buffers=SLOT_INDEX),
        Case(lambda _: {"worker": 300}, worker=True, buffers=SLOT_INDEX),
    ],
    "free_keys": [
        Case(
            lambda filled: {
                "keys": [f"acme/{i}" for i in filled.ready] + ["gone/1"],
                "ids": array([*filled.ready, 1000000001]),
            },
            (*KEYS, *HOT_KEY),
            3000,
            worker=True,
        )
    ],
    "find_rejected": [
        Case(
            lambda _: {"keys": ["tenant/7", "tenant/8", "tenant/none"]},
            ("tenantqueue_job_exclusive_reject", "tenantqueue_job_exclusive_inside"),
            400,
        )
    ],
    "insert_rejected_jobs": [Case(unique_jobs(), (), 5000)],
    "insert_unique_jobs": [
        Case(unique_jobs(), (*KEYS, *HOT_KEY), 2000),
        Case(unique_jobs(made=300, excludes=True), (*KEYS, *HOT_KEY), 40_000),
    ],
    "lock_existing_jobs": [
        Case(
            lambda filled: {"ids": json.dumps(filled.ready), "patience_seconds": 5.0}, HOT_KEY, 4000
        )
    ],
    "prune_expired_keys": [
        Case(lambda _: {"most": 500}, ("tenantqueue_uniquekey_due", *KEYS), 8000)
    ],
    "prune_stale_keys": [
        Case(lambda _: {"after": "gone/", "most": 500}, (*KEYS, *HOT_KEY), 10_000),
        Case(lambda _: {"after": "acme/", "most": 500}, (*KEYS, *HOT_KEY), 10_000),
    ],
    "retake_keys": [Case(ids("ready", passed_over="{}"), (*HOT_KEY, *KEYS), 4000)],
    "end_monitors": [
        Case(monitors(), (*LINE, *INSIDE, *HOT_KEY), 300, worker=True),
        Case(monitors(), (*LINE, *INSIDE, *HOT_KEY), 300),
    ],
    "end_lease": [Case(lambda _: {"lock_class": 1, "worker": OUR_WORKER}, worker=True)],
    "find_claims": [
        Case(lambda _: {"worker": OUR_WORKER}, SLOTS, SLOT_INDEX, worker=True),
        Case(lambda _: {"worker": OUR_WORKER}, SLOTS, SLOT_INDEX),
    ],
    "find_dead_workers": both(
        lambda _: {
            "lock_class": 1,
            "settle_seconds": 0.0,
            "lease_seconds": 60.0,
        },
        SLOTS,
        SLOT_INDEX,
    ),
    "has_details_of_unfinished": [
        Case(ended(), (*HOT_KEY, *DETAIL_ENDS), 3000),
        Case(  # none
            lambda _: {"start": TOMORROW, "end": TOMORROW + timedelta(days=1)}, HOT_KEY, 3000
        ),
    ],
    "find_open_monitors": both(
        lambda _: {"after": 0, "most": 500, "by_tenant": False},
        (*LINE, *INSIDE, *DETAIL_ENDS),
        3000,
    ),
    "find_queues": [
        Case(
            lambda _: {"tenants": ["tenant-7", "new"], "names": ["default", "default"]},
            ("tenantqueue_queue_unique",),
            20,
        )
    ],
    "find_grown_tables": [
        Case(
            lambda _: {"tables": ["tenantqueue_job_hot"], "least_pages": 64, "growth": 4},
            (),
            300,
        )
    ],
    "find_queue_names": [
        Case(
            lambda filled: {"queue_id": filled.open_queues[0]},
            ("tenantqueue_tenantqueue_pkey",),
            10,
            worker=True,
        )
    ],
    "find_open_gates": [
        case
        for kind in ("session", "limit_user", "exclusive")
        for case in both(
            of_kind(swept, kind),
            (f"tenantqueue_job_{kind}_line", f"tenantqueue_job_{kind}_inside", *BLOCKING[kind]),
            4000,
        )
    ],
    "release_gates": [
        Case(
            of_kind(gates, kind),
            (
                *(f"tenantqueue_job_{kind}_line", f"tenantqueue_job_{kind}_inside"),
                *(*BLOCKING[kind], *HOT_KEY),
            ),
            4000,
            worker=True,
        )
        for kind in ("session", "limit_user", "exclusive")
    ],
    "halt_sessions": [
        Case(
            lambda _: {"keys": ["tenant/7"], "jobs": "{1}", "wanted": "{t}"},
            ("tenantqueue_session_unique",),
            worker=True,
        )
    ],
    "lock_gates": [Case(lambda _: {"lock_class": 1, "keys": ["a", "b"]}, worker=True)],
    "count_sessions": [
        Case(lambda _: {"ids": array(range(1, 101)), "most": 1000}, SESSION_GATES, 9000)
    ],
    "prune_sessions": [
        Case(
            lambda _: {"after": 0, "most": 100, "keep_seconds": 0.0},
            (*SESSION_GATES, "tenantqueue_session_pkey"),
            4000,
        )
    ],
    "count_tasks": [
        Case(
            lambda _: {"ids": array(range(1, 101)), "most": 1000},
            (*TASK_LINE, *TASK_INSIDE),
            4000,
            settings=ORDERED,
        )
    ],
    "find_open_start": [
        Case(
            lambda filled: {
                **start_params(dict.fromkeys(((240, q) for q in filled.open_queues), (240, 0))),
                "most_read": 1000,
                "most_moved": 20,
            },
            READY,
            DEAD_ROWS,
            worker=True,
        )
    ],
    "list_ready_tasks": [
        Case(
            lambda filled: {"ids": array(filled.open_queues[:20]), "most": 1000},
            READY,
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "list_task_line": [
        Case(lambda _: {"task": "task-2", "most": 1000}, TASK_LINE, 4000, settings=ORDERED)
    ],
    "find_task_lines": both(lambda _: {"most": 1000}, TASK_LINE, 10_000 * SCALE),
    "mark_task_jobs": both(lambda _: {}, SLOTS, SLOT_INDEX + 16_000 * SCALE),
    "open_task_lines": [
        Case(
            lambda _: {"tasks": ["task-2", "task-7"], "most": 1000},
            (*TASK_LINE, *HOT_KEY),
            4000,
        )
    ],
    "release_task": [Case(task_release, (*TASK_LINE, *TASK_INSIDE, *HOT_KEY), 6000, worker=True)],
    "take_task_slots": [
        Case(
            lambda filled: {
                "worker": OUR_WORKER,
                "ids": array(filled.held),
                "seqs": array(1 for _ in filled.held),
                "locked": True,
            },
            (*HOT_KEY, *TASK_INSIDE, *TASK_LINE),
            4000,
            worker=True,
        )
    ],
    "read_previous_results": [
        Case(
            lambda filled: {"ids": array(filled.held)},
            (*HOT_KEY, "tenantqueue_history_pkey"),
            4000,
            worker=True,
        )
    ],
    "finish_jobs": [Case(finished, HOT_KEY, 4000, worker=True), Case(finished, HOT_KEY, 4000)],
    "heartbeat_worker": [
        Case(
            lambda _: {
                "worker": OUR_WORKER,
                "jobs_running": 3,
                "rss_bytes": 50_000_000,
                "claims_per_second": 10.0,
                "jobs_per_second": 90.0,
                "clock_ahead": 0.0,
                "error": None,
            },
            buffers=200,
            worker=True,
        )
    ],
    "has_followed": [Case(lambda _: {}, worker=True)],
    "hold_lease": [Case(lambda _: {"lock_class": 1, "worker": OUR_WORKER}, worker=True)],
    "queue_range": [Case(lambda _: {}, ("tenantqueue_tenantqueue_pkey",), 50, worker=True)],
    "insert_details": [
        Case(
            lambda filled: {
                "shared": json.dumps(
                    {
                        "monitor_id": 7,
                        "held_by": "monitor",
                        "lane": 240,
                        "priority": 240,
                        "session_skip": False,
                        "session_halt": False,
                    }
                ),
                "details": json.dumps(
                    [
                        {
                            "queue_id": filled.open_queues[0],
                            "is_async": False,
                            "max_attempts": 5,
                            "task": "noop",
                            "source_type": "task",
                            "source_id": "",
                            "source_method": "noop",
                            "args": {"args": []},
                        }
                    ]
                    * 1000
                ),
            },
            (),
            30000,
        )
    ],
    "insert_job": [
        Case(
            new_job(),
            ("tenantqueue_tenantqueue_pkey", "tenantqueue_worker_sleeping"),
            WORKERS_READ,
            first_walk=CATALOGS,
        ),
        Case(new_job(unseen=True), (), WORKERS_READ, first_walk=CATALOGS),
        Case(
            lambda filled: new_job(queue_id=filled.limited_queue)(filled),
            (),
            WORKERS_READ,
            first_walk=CATALOGS,
        ),
    ],
    "insert_jobs": [
        Case(gated(args='[{"args": [1]}, {"args": [2]}]'), buffers=600),
        Case(gated(args=f"[{','.join(['{}'] * 1000)}]"), (), 30000),
    ],
    "insert_worker": [
        Case(
            lambda _: {
                "name": "worker",
                "host": "here",
                "pid": 1,
                "supervisor_pid": 1,
                "version": "0",
                "queues": [],
                "exclude_queues": [],
                "tenants": [],
                "threads": 8,
                "async_slots": 100,
                "leased": False,
                "role": "worker",
                "executor": "",
            },
            worker=True,
        )
    ],
    "list_claims": [
        Case(lambda _: {"worker": None, "most": 5}, SLOTS, SLOT_INDEX, settings=ORDERED),
        Case(lambda _: {"worker": OUR_WORKER, "most": 100}, SLOTS, SLOT_INDEX, settings=ORDERED),
    ],
    "list_detail_ends": [
        Case(lambda _: {"ids": "{7,8}", "most": 500, "since_seconds": 3600.0}, DETAIL_ENDS, 3000),
    ],
    "list_unfinished_details": [
        Case(lambda _: {"monitor_id": 7, "most": 1000, "after": 0}, (*LINE, *INSIDE, *ASIDE), 1700)
    ],
    "list_ended_details": [
        Case(
            lambda _: {
                "monitor_id": 7,
                "state": "success",
                "before_at": "infinity",
                "before": 2**40,
                "most": 1000,
            },
            DETAIL_ENDS,
            3000,
        )
    ],
    "list_jobs_by_id": [
        *(
            Case(listed(*UNFINISHED, **more), HOT_KEY, DEAD_ROWS, settings=ORDERED)
            for more in ({}, {"task": "unknown"}, {"text": "unknown"}, {"text": TASK})
        ),
        *(
            Case(listed(**more), ("tenantqueue_history_pkey",), 3000, settings=ORDERED)
            for more in (
                {},
                {"before": OLD},
                {"queues": True},
                {"text": "unknown"},
                {"text": RARE, "queues": True},
                {"after": OLD, "created_from": TOMORROW},
                {"label": "unknown", "worker": 1, "priority": 240},
            )
        ),
    ],
    "list_jobs_by_state": [
        Case(listed(*ACTIVE), SLOTS, SLOT_INDEX, settings=ORDERED),
        Case(listed(*ACTIVE, queues=True, task=TASK), SLOTS, SLOT_INDEX, settings=ORDERED),
        Case(listed("scheduled"), DUE, 3000, settings=ORDERED),
        Case(listed("error"), FAILED, 3000, settings=ORDERED),
        Case(listed("error", "cancelled", before=OLD), FAILED, 3000, settings=ORDERED),
    ],
    "list_jobs_of_queues": [
        Case(listed("ready", queues=True), READY, 3000, first_walk=DEAD_ROWS, settings=ORDERED),
        *(
            Case(
                listed(queues=True, **more),
                ("tenantqueue_history_queue",),
                4000,
                settings=ORDERED,
            )
            for more in (
                *({}, {"before": OLD}, {"text": "unknown"}),
                {"before": OLD, "after": OLD - 50_000, "session": "unknown"},
            )
        ),
    ],
    "list_history_of_task": [
        Case(listed(task=RARE), ("tenantqueue_history_task",), 3000, settings=ORDERED),
        Case(listed(task=RARE, before=OLD), ("tenantqueue_history_task",), 3000, settings=ORDERED),
        Case(listed(task="unknown"), ("tenantqueue_history_task",), 100, settings=ORDERED),
    ],
    "list_jobs_of_owner": [
        *(
            Case(
                listed(*State, source_types=[kind], source_id="7"),
                OF_SOURCES,
                most,
                settings=ORDERED,
            )
            for kind, most in (("shop.report", 1000), ("unknown", 100))
        ),
        Case(listed(*State, created_by="7"), OF_USER, 300, settings=ORDERED),
        Case(listed(*State, created_by="7", queues=True), OF_USER, 300, settings=ORDERED),
        Case(listed(*State, created_by="unknown"), OF_USER, settings=ORDERED),
    ],
    "list_jobs_of_key": [
        *(
            Case(
                listed(*chosen, **{name: value, f"key_{name}": value}),
                (f"tenantqueue_{leaf}_{index}",),
                most,
                settings=BITMAPS,
            )
            for chosen, leaf in ((("scheduled", "ready"), "job"), ((), "history"))
            for name, value, index, most in (
                ("label", "label-7", "labels", 1500),
                ("label", "all", "labels", 3000),
                ("label", "unknown", "labels", 100),
                ("argument", "invoice=7", "search", 1500),
            )
        ),
        Case(
            listed(*UNFINISHED, session="labelled/1", key_session="labelled/1"),
            ("tenantqueue_job_session_line", "tenantqueue_job_session_inside"),
            4000,
            settings=BITMAPS,
        ),
        Case(
            listed(*UNFINISHED, error="Lost", error_end="%.Lost", key_error="Lost"),
            ("tenantqueue_job_errors", "tenantqueue_job_slots"),
            SLOT_INDEX,
            settings=BITMAPS,
        ),
    ],
    "find_first_created": [
        Case(
            lambda _, days=days: {"moment": datetime.now(UTC) + timedelta(days=days)},
            (*HOT_KEY, "tenantqueue_history_pkey"),
            1500,
            settings=ORDERED,
        )
        for days in (-30, 0, 1)
    ],
    "list_jobs_of_sources": [
        Case(of_sources("shop.report"), OF_SOURCES, 2000, settings=ORDERED),
        Case(
            of_sources("shop.report", "shop.report@other", most=1),
            OF_SOURCES,
            300,
            settings=ORDERED,
        ),
        Case(of_sources("unknown"), OF_SOURCES, 300, settings=ORDERED),
    ],
    "list_stuck_lines": [
        Case(
            lambda _: {"most": 500},
            (
                *(line for line in LINES if "exclusive" not in line),
                *DETAIL_ENDS,
                "tenantqueue_session_stopped",
            ),
            DEAD_ROWS + 10_000,
            settings=ORDERED,
        )
    ],
    "list_held": [
        Case(
            lambda _: {"listed": 5, "visits": 2000, "most": 1000},
            (*HELD, "tenantqueue_tenantqueue_pkey"),
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "list_held_of_queues": [
        Case(
            lambda filled: {"ids": array(filled.open_queues[:100]), "most": 1000},
            (*HELD, "tenantqueue_tenantqueue_pkey"),
            DEAD_ROWS + 20_000,
            settings=ORDERED,
        )
    ],
    "list_unknown_tasks": [
        Case(lambda _: {"most": 2000, "error_class": "Unknown"}, DUE, 4000, settings=ORDERED)
    ],
    "lock_claims": [Case(lambda _: {"worker": OUR_WORKER}, SLOTS, SLOT_INDEX)],
    "lock_queues": [
        Case(
            locks(),
            (*READY, *SLOTS, *RATE),
            25_000,
            worker=True,
        ),
        Case(
            locks(cursor=(240, 1000, 240), most_steps=16, skip_queues=list(range(400))),
            READY,
            20_000,
            worker=True,
        ),
        Case(
            lambda filled: locks(**known(filled))(filled),
            (*READY, *SLOTS, *RATE, *HOT_KEY),
            20_000,
            worker=True,
        ),
    ],
    "find_first_taken": [
        Case(
            lambda filled: first_taken_params(taken(filled)),
            SLOTS,
            20_000,
            worker=True,
            before="lock_queues",
        )
    ],
    "survey_ready": [Case(lambda _: survey_params(2000), READY, DEAD_ROWS, worker=True)],
    "next_due": both(lambda _: {}, DUE, 3000),
    "find_expired": both(lambda _: {"most": 1000}, ("tenantqueue_job_expiry",), 3000),
    "promote_jobs": [
        Case(lambda _: {"most": 1000, "now": None}, DUE, 2000),
        Case(lambda _: {"most": 1000, "now": datetime(2000, 1, 1, tzinfo=UTC)}, DUE, 10),
    ],
    "read_orders": [
        Case(lambda _: {"ids": "{1,2,3}"}, ("tenantqueue_worker_pkey",), 30, worker=True)
    ],
    "renew_leases": [
        Case(lambda _: {"ids": "{1,2,3}"}, ("tenantqueue_worker_pkey",), 30, worker=True)
    ],
    "record_duty": [
        Case(
            lambda _: {
                "name": "promote",
                "worker": "worker",
                "duration_seconds": 0.1,
                "outcome": "5 jobs",
                "runs": 1,
                "error": "",
            }
        )
    ],
    "record_runs": [
        Case(
            lambda filled: {
                "worker": OUR_WORKER,
                "ids": array(filled.held),
                "seqs": array(1 for _ in filled.held),
                "ages": array(0.5 for _ in filled.held),
                "extras": array("NULL" for _ in filled.held),
            },
            HOT_KEY,
            4000,
            worker=True,
        )
    ],
    "relane_jobs": [
        Case(lambda _: {"by_tenant": True, "most": 100}, scans=True, buffers=20_000 * SCALE)
    ],
    "request_cancel": [Case(ids("held"), HOT_KEY, 4000)],
    "release_monitors": [
        Case(monitors(), (*LINE, *INSIDE, *DETAIL_ENDS, *HOT_KEY), 1000, worker=True),
        Case(monitors(), (*LINE, *INSIDE, *DETAIL_ENDS, *HOT_KEY), 1000),
    ],
    "rescue_jobs": [Case(rescued, HOT_KEY, 4000)],
    "reschedule_jobs": [Case(failed, HOT_KEY, 4000, worker=True)],
    "retry_jobs": [Case(ids("failed", by_tenant=False), ("tenantqueue_history_pkey",), 8000)],
    "return_jobs": [
        Case(
            lambda filled: {
                "worker": OUR_WORKER,
                "ids": array(filled.held),
                "seqs": array(1 for _ in filled.held),
                "delay_seconds": 0.0,
                "errors": array("NULL" for _ in filled.held),
                "max_errors": 10,
                "ending_class": "tests.Unknown",
                "most_seconds": 60.0,
            },
            HOT_KEY,
            4000,
            worker=True,
        )
    ],
    "share_unknown_tasks": [
        Case(
            lambda _: {
                "worker": OUR_WORKER,
                "names": ["tests.gone", "tests.moved"],
                "silent_seconds": 30.0,
            },
            scans=True,
            buffers=600,
            worker=True,
        )
    ],
    "hurry_unknown": [
        Case(
            lambda _: {
                "names": ["tests.noop"],
                "error_class": "tests.Unknown",
                "seconds": 15.0,
                "most": 10_000,
            },
            ("tenantqueue_job_due", *HOT_KEY),
            12_000,
            worker=True,
        )
    ],
    "clear_sleep": [Case(lambda _: {"worker": OUR_WORKER}, worker=True)],
    "set_priority": [Case(ids("ready", priority=100, lane=100), HOT_KEY, 4000)],
    "set_queue": [
        Case(
            lambda filled: {"ids": array(filled.ready), "queue_id": filled.open_queues[5]},
            HOT_KEY,
            4000,
        )
    ],
    "set_run_at": [
        Case(ids("ready", run_at=TOMORROW), HOT_KEY, 4000),
        Case(ids("scheduled", run_at=None), HOT_KEY, 4000),
    ],
    "share_addition": [Case(lambda _: {"lock_class": 1, "key": "7"})],
    "sign_on_worker": [Case(lambda _: {"worker": OUR_WORKER, "pid": 2}, worker=True)],
    "sleep_worker": [
        Case(
            lambda _: {
                "worker": OUR_WORKER,
                "seconds": 10.0,
                "renew": False,
            },
            worker=True,
        )
    ],
    "try_gates": [Case(lambda _: {"lock_class": 1, "keys": ["7"]}, worker=True)],
    "wake_any_workers": [
        Case(
            lambda _: {"most": 2, "worker": OUR_WORKER, "is_alone": True},
            ("tenantqueue_worker_sleeping",),
            WORKERS_READ,
            worker=True,
        )
    ],
    "wake_workers": [
        Case(
            lambda _: {"tenants": ["tenant-7"], "queues": ["default"], "most": 1, "is_alone": True},
            ("tenantqueue_worker_sleeping",),
            WORKERS_READ,
        )
    ],
    "take_over": [
        Case(
            lambda filled: {
                "worker": OUR_WORKER,
                "ids": array(filled.held),
                "workers": array([OUR_WORKER] * len(filled.held)),
                "seqs": array([1] * len(filled.held)),
            },
            HOT_KEY,
            3000,
            worker=True,
        )
    ],
    "watch_jobs": [
        Case(
            lambda filled: {"worker": OUR_WORKER, "ids": array(filled.held)},
            HOT_KEY,
            2000,
            worker=True,
        )
    ],
    # the last ones: the versions of rows that they leave are in the way of others
    "set_aside": [
        *(
            Case(
                lambda _, kind=kind, keys=keys: {
                    "kind": kind,
                    "keys": keys,
                    "lanes": "{}",
                    "queues": "{}",
                    "most": 50,
                },
                (*line, *HOT_KEY),
                6000,
                worker=worker,
            )
            for kind, keys, line in (
                ("monitor", ["7", "8"], LINE),
                ("limit_user", ["tenant/1", "tenant/2"], ("tenantqueue_job_limit_user_line",)),
                ("exclusive", ["tenant/1", "tenant/2"], ("tenantqueue_job_exclusive_line",)),
            )
            for worker in (True, False)
        ),
        Case(
            lambda filled: {
                "kind": "ready",
                "keys": [],
                "lanes": array(240 for _ in filled.open_queues),
                "queues": array(filled.open_queues),
                "most": 20,
            },
            (*READY, *HOT_KEY),
            DEAD_ROWS,
            worker=True,
        ),
    ],
}

CALLS: dict[str, Call] = {
    "users_at_limit": Call(
        lambda filled: held.users_at_limit("default", filled.open_queues[:100]),
        HELD,
        DEAD_ROWS + 20_000,
    ),
    "count_taken": Call(
        lambda filled: queue_loads.count_taken("default", filled.open_queues[:100]),
        SLOTS,
        SLOT_INDEX,
    ),
    "prune_idempotency_keys": Call(
        lambda _: prune_idempotency_keys("default"), ("tenantqueue_idempotency_due",), 8000
    ),
    **{
        f"fireworq_{what}_{'first' if up else 'last'}": Call(
            lambda filled, what=what, up=up: fireworq.read_page(
                "default", filled.open_queues[0], what, up=up, limit=100
            ),
            (index,),
            buffers,
            first_walk=DEAD_ROWS,
        )
        for what, up, index, buffers in (
            ("deferred", False, "tenantqueue_job_deferred", 300),
            ("deferred", True, "tenantqueue_job_deferred", 300),
            ("grabbed", False, "tenantqueue_job_slots", 300),
            ("grabbed", True, "tenantqueue_job_slots", 300),
            ("failed", False, "tenantqueue_history_ended", 2000),
            ("created", False, "tenantqueue_history_pushed", 2000),
        )
    },
    "fireworq_find": Call(
        lambda filled: fireworq.find_of_queue("default", 1, filled.ready[0], failed=False), HOT_KEY
    ),
    "fireworq_find_failed": Call(
        lambda filled: fireworq.find_of_queue("default", 1, filled.failed[0], failed=True),
        ("tenantqueue_history_pushed",),
    ),
}
