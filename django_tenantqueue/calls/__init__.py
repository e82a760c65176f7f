"""A call before it becomes a row of the table of jobs."""
