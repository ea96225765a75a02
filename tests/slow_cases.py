"""Cases of a test that ``make test`` leaves out and ``make test-all`` runs."""

import os

import pytest
from hypothesis import settings

EXAMPLES, FEW_EXAMPLES = 40, 15
"""Examples of a test that says nothing else: in ``make test-all``, and in ``make test``."""

TIMES = int(os.environ.get("SOFTSPLIT_TIMES", "1"))
"""How often each fault of a run is tried, at other moments."""


def slow(*cases):
    """These values of a parameter, marked as slow."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def examples(number: int) -> settings:
    """So many examples in ``make test-all``, and in ``make test`` fewer."""
    share = settings.default.max_examples / EXAMPLES
    return settings(max_examples=max(1, round(share * number)))
