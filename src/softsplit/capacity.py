"""VC bounds and what follows from them: the public name of ``softsplit.tree.capacity``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softsplit.tree.capacity import *  # noqa: F403
from softsplit.tree.capacity import __all__, __dir__, __getattr__  # noqa: F401

__path__: list[str] = []  # old pickles name modules in it: see former_names.py
