"""Whole points in place of weights: every question becomes a small table that a person adds up."""
