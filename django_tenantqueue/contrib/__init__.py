"""Bridges to other packages. Each needs the extra of its name; nothing outside imports them."""
