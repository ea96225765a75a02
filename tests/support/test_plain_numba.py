"""With other internals of numba, compiled functions are those of plain ``njit(cache=True)``."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import caching, codegen, compiler, environment, options, typed_passes

import other_numba
from other_numba import RenamedFiles, fitted
from softsplit.support import compiling
from softsplit.support.compiling import CompileNotice, keep_on_disk, pipelines, place_on_disk
from softsplit.tree.routing import open_gates

FIT = """
import sys
sys.path.insert(0, sys.argv[1])
from other_numba import fitted, rename_internals
rename_internals()
from softsplit.support.compiling import pipelines, place_on_disk
from softsplit.tree.routing import open_gates
assert pipelines() == ({}, {}) and place_on_disk(open_gates) is None
print(*(value.hex() for value in fitted()))
"""


@pytest.mark.slow
def test_a_fit_gives_the_same_tree(tmp_path):
    """The fit of a new process that has none of the internals; it compiles all it needs."""
    done = subprocess.run(
        [sys.executable, "-c", FIT, os.path.dirname(other_numba.__file__)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [float.fromhex(value) for value in done.stdout.split()]
    np.testing.assert_allclose(found, fitted(), rtol=1e-9)
    assert list(tmp_path.rglob("*.nbi"))  # numba has kept what it compiled


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (codegen, "JITCodeLibrary"),
        (codegen.CPUCodeLibrary, "_finalize_dynamic_globals"),
        (compiler, "Compiler"),
        (environment, "lookup_environment"),
        (typed_passes, "NativeLowering"),
        (numba._dynfunc, "make_function"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_without_a_part_of_the_compiler_its_own_pipeline_is_used(owner, name, monkeypatch):
    monkeypatch.delattr(owner, name)
    assert pipelines.__wrapped__() == ({}, {})


@pytest.mark.parametrize("short", [(0, 59), (0, 69), (1, 0)])
def test_in_a_version_that_is_not_known_its_own_pipeline_is_used(short, monkeypatch):
    monkeypatch.setattr(numba, "version_info", SimpleNamespace(short=short))
    assert pipelines.__wrapped__() == ({}, {})


def test_options_that_are_not_known_are_left_out(monkeypatch):
    given = compiling.options(True)
    assert compiling._known(given) == given
    monkeypatch.delattr(options, "DefaultOptions")
    assert set(compiling._known(given)) == {"nogil", "error_model", "fastmath"}


def test_files_with_other_names_are_left_to_numba(tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "IndexDataCacheFile", RenamedFiles)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for hits in (0, 1):
        function = numba.njit(halved)
        keep_on_disk(function, ("sources", 0))
        assert isinstance(function._cache._cache_file, RenamedFiles)
        assert function(3.0) == 1.5 and sum(function.stats.cache_hits.values()) == hits


def halved(x):
    return x / 2


def test_without_statistics_nothing_is_compiled_ahead():
    assert place_on_disk(open_gates) is not None
    assert place_on_disk(SimpleNamespace(dispatcher=SimpleNamespace())) is None


def test_without_events_nothing_is_noticed(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.core.event", None)
    monkeypatch.setattr(compiling, "notice", CompileNotice())
    compiling._listen.__wrapped__()
