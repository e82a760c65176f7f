"""A fleet that is larger than the machine: the real statements, and workers that run no code."""
