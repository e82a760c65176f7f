"""One run of a job: what it is given, does, and comes to."""
