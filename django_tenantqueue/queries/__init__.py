"""The only modules that open a cursor for sql/: one typed function for each statement."""
