"""Solvers of the training problem."""
