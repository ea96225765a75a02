"""Budgets: Ctrl-C stops them, and is raised on only while there is nothing to keep."""

from __future__ import annotations

import pytest

from softsplit.solvers import Budget, Status


def test_ctrl_c_ends_the_block_and_stops_the_budget():
    budget, kept = Budget(), [1]
    with budget.interruptible(kept):
        raise KeyboardInterrupt
    assert budget.stopped and budget.exhausted and budget.verdict is Status.INTERRUPTED


def test_ctrl_c_is_raised_on_while_nothing_is_kept():
    budget = Budget()
    with pytest.raises(KeyboardInterrupt), budget.interruptible([]):
        raise KeyboardInterrupt
    assert budget.stopped


def test_what_numba_makes_of_ctrl_c_counts_too():
    budget = Budget()
    with budget.interruptible():
        raise SystemError("in a callback") from KeyboardInterrupt()
    assert budget.stopped


@pytest.mark.parametrize("error", [SystemError("of another kind"), ValueError("bad")])
def test_other_errors_pass(error):
    budget = Budget()
    with pytest.raises(type(error)), budget.interruptible([1]):
        raise error
    assert not budget.stopped
