"""How the test suite's servers differ from those of the demo, the benchmark and the chaos run."""

SETTINGS = {"fsync": "off", "autovacuum": "off"}
"""No test tries a power cut, which is all that fsync protects from; a disk that stalls for seconds
made tests fail that wait for hundreds of commits. Nor does one wait for autovacuum, whose locks and
fresh statistics came in between at any moment."""
