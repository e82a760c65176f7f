"""A run in which everything goes wrong at once, and the audit after it: `python -m tests.chaos`."""
