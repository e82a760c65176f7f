"""The process that starts, watches and ends the children."""
