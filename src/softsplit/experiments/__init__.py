"""The paper's experiments, and the reader's own: a spec in, rows in a store, tables and figures."""

from importlib.util import find_spec

if find_spec("pydantic") is None:
    raise ImportError(
        "experiments need pydantic; install it with: pip install 'softsplit[experiments]'."
    )
