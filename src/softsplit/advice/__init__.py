"""Advice from a fitted tree: explanations, changes of class, checks and comparisons."""
