"""Defaults on fifty ordinary problems: a tree that is no worse than a guess, and no noise."""

from __future__ import annotations

import pytest

from ordinary_problems import complaint, ordinary_problems, shared_names
from slow_cases import slow

BLOCK = 5
SLOW_TO_READ = "covertype"


@pytest.mark.parametrize(
    "numbers",
    [range(1), *slow(range(1, BLOCK), *(range(n, n + BLOCK) for n in range(10, 100, 2 * BLOCK)))],
    ids=lambda numbers: f"{numbers[0]} to {numbers[-1]}",
)
def test_defaults_serve_ordinary_problems(numbers):
    names = [name for name in shared_names() if name != SLOW_TO_READ]
    problems = ordinary_problems(numbers, names=names, most_rows=150, most_columns=20)
    found = [(problem.story, complaint(problem)) for problem in problems]
    assert [pair for pair in found if pair[1] is not None] == []
