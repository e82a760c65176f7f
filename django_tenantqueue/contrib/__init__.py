"""Ties to other packages. Each needs the extra of its name."""
