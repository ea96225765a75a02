"""Choosing among trees by cross-validation."""
