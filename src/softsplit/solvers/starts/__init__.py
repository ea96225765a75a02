"""Trees to start from."""
