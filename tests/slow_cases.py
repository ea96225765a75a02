"""Cases of a test that ``make test`` leaves out and ``make test-all`` runs."""

import pytest


def slow(*cases):
    """These values of a parameter, marked as slow."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]
