"""Jobs for browsers and other clients."""
