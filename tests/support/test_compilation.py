"""The cache of compiled code: its stamp covers every source file that compiles something."""

from __future__ import annotations

import importlib.util
import pkgutil
import shutil
from pathlib import Path

import pytest

import softsplit
from softsplit.support.compiling import Compiled, source_stamp

PACKAGE = Path(softsplit.__file__).parent


def dispatchers():
    """Every compiled function of the package, by module and name."""
    found = {}
    for module in pkgutil.walk_packages([str(PACKAGE)], "softsplit."):
        try:
            made = importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name in ("torch", "triton")  # softsplit[gpu] is not installed
            continue
        for name, value in vars(made).items():
            if isinstance(value, Compiled):
                found[f"{value.py_func.__module__}.{name}"] = value
    return found


def sources_that_compile():
    return sorted({Path(found.py_func.__code__.co_filename) for found in dispatchers().values()})


@pytest.fixture
def copied(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "softsplit", ignore=ignore)


def test_every_compiled_function_has_the_stamp_of_the_package():
    found = dispatchers()
    assert len(found) > 20
    stamps = {name: one.dispatcher._cache._cache_file.stamp for name, one in found.items()}
    assert {name for name, stamp in stamps.items() if stamp != source_stamp()} == set()


def test_a_change_in_any_file_that_compiles_changes_the_stamp(copied, monkeypatch):
    """In one interpreter, as a start for each file would take long."""
    spec = importlib.util.spec_from_file_location("copied", copied / "support" / "compiling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stamp = module.source_stamp.__wrapped__
    before = stamp()
    files = [copied / path.relative_to(PACKAGE) for path in sources_that_compile()]
    assert len(files) >= 5
    for path in files:
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert stamp() != before, path.name
        path.write_text(text)
        assert stamp() == before
