"""What a call is before it is a row of the table of jobs."""
