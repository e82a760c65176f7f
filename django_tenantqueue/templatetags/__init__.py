"""Template tags of the package."""
