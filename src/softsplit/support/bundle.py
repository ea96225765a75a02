"""A named tuple of arrays behind one pointer, as compiled functions take it.

Numba hands over a named tuple as all of its arrays, one by one: calls from Python take longer, and
functions that pass it on take twice as long to compile.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.experimental import structref

from softsplit.support.compiling import compiled
from softsplit.support.interruption import is_interruption


@structref.register
class BundleType(types.StructRef):
    """Compiled type of a ``Bundle``."""


class Bundle(structref.StructRefProxy):
    """Compiled functions read the named tuple as ``content``; Python only hands a bundle on."""


structref.define_proxy(Bundle, BundleType, ["content"])


@compiled
def _bundled(content):  # type: ignore[no-untyped-def]
    return Bundle(content)


def bundled(content: tuple[Any, ...]) -> Bundle:
    """Return a named tuple as a bundle; the arrays are shared.

    Numba runs some Python to unpack the tuple. Ctrl-C in there becomes a ``SystemError``, which is
    turned back.
    """
    try:
        bundle: Bundle = _bundled(content)
    except SystemError as error:
        if is_interruption(error):
            raise KeyboardInterrupt from None
        raise
    return bundle
