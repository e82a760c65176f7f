"""The application whose tasks the benchmarks run."""
