"""HTTP jobs, and callbacks after the end of a job."""
