"""How the test suite's servers differ from those of the demo, the benchmark and the chaos run."""

SETTINGS = {"fsync": "off"}
"""No test tries a power cut, which is all that fsync protects from; a disk that stalls for seconds
made tests fail that wait for hundreds of commits."""
