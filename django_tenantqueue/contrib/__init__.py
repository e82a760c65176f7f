"""Bridges to other packages. Nothing outside imports them."""
