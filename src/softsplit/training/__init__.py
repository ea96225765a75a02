"""From validated rows to a trained tree."""

from typing import Any

from softsplit import former_names


def __getattr__(name: str) -> Any:
    """The strength path was here once; old pickles look for it."""
    return former_names.moved_name(__name__, name)
