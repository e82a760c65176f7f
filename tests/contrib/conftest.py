"""What the tests of apps share with those of the core."""

from tests.admin.conftest import operator
from tests.browser.conftest import browser, open_page
from tests.concurrency.conftest import open_connection, threads
from tests.execution.conftest import claimed_job
from tests.process.conftest import gate, workers, zygote

__all__ = [
    "browser",
    "claimed_job",
    "gate",
    "open_connection",
    "open_page",
    "operator",
    "threads",
    "workers",
    "zygote",
]
