"""The HTTP API: other programs submit jobs, follow them, and tune what a tenant has."""
