"""Pictures, one module each. They need matplotlib: ``pip install 'softsplit[plots]'``.

Every function takes ``ax=`` and returns the axes it drew on.
"""

from __future__ import annotations

from softsplit.plots.decomposition import decomposition_trace

__all__ = ["decomposition_trace"]
