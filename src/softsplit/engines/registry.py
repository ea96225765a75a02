"""Engines by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.support.messages import shown

EngineMaker = Callable[[Samples], RowEngine]

ENGINES: dict[str, EngineMaker] = {"memory": CompiledRows}
"""All engines that an estimator knows by name."""


def make_engine(engine: Any) -> EngineMaker:
    """The engine of that name, or the function that makes one of training rows."""
    if isinstance(engine, str) and engine in ENGINES:
        return ENGINES[engine]
    if callable(engine):
        maker: EngineMaker = engine
        return maker
    raise ValueError(
        f"engine must be {' or '.join(map(repr, ENGINES))}, or a function that makes an engine of "
        f"training rows, got {shown(engine)}."
    )
