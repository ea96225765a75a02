"""Each requirement where rows are elsewhere: it holds, or one sentence refuses it at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsplit import Parity, RateConstraint, SoftTreeClassifier, SoftTreeClassifierCV

NAMES = ["a", "b", "c", "d"]

IN_MEMORY_ONLY = "this process"
ON_DASK = "on Dask"

REQUIREMENTS = {
    "monotone": ({"monotone": {"a": "+"}}, False),
    "required": ({"required": ["d"]}, True),
    "forbidden_together": ({"forbidden_together": [["a", "b"]]}, True),
    "at_most_one": ({"at_most_one": [["a", "b", "c"]]}, True),
    "feature_costs": ({"feature_costs": {"a": 50.0, "b": 0.5}}, True),
    "fairness": ({"fairness": Parity("a", 0.1, cut=0.5)}, False),
    "constraints": ({"constraints": RateConstraint(("a", ">", 0.0), 1, at_least=0.3)}, False),
}
"""Parameters, and whether they work where rows are on a device or a cluster."""

SETTINGS = {"depth": 1, "n_starts": 1, "random_state": 0, "curves": False}


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=NAMES)
    return X, (X.a + X.b + 0.5 * X.c + rng.logistic(size=400) > 0).to_numpy(int)


def assert_kept(name: str, tree) -> None:
    """Whether the fitted tree keeps the requirement."""
    used = {NAMES[j] for j in tree.selected_features_}
    assert used
    if name == "required":
        assert "d" in used
    elif name == "forbidden_together":
        assert len(used & {"a", "b"}) == 1
    elif name == "at_most_one":
        assert len(used & {"a", "b", "c"}) == 1
    else:
        assert "a" not in used and "b" in used  # the dear column is not worth its cost


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, **quiet
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("choice", [False, True])
@pytest.mark.parametrize("name", REQUIREMENTS)
def test_on_dask(name, choice, client):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    from softsplit import DaskSoftTreeClassifier, DaskSoftTreeClassifierCV

    given, works = REQUIREMENTS[name]
    X, y = rows()
    there = dd.from_pandas(X, npartitions=2)
    labels = da.from_array(y, chunks=(tuple(there.map_partitions(len).compute()),))
    if choice:
        few = {key: v for key, v in SETTINGS.items() if key != "depth"}
        tree = DaskSoftTreeClassifierCV(client=client, depths=[1], cv=2, **few, **given)
    else:
        tree = DaskSoftTreeClassifier(client=client, **SETTINGS, **given)
    if works:
        assert_kept(name, tree.fit(there, labels))
        return
    with pytest.raises(ValueError, match=ON_DASK) as caught:
        tree.fit("nothing is read", "nor this")
    assert name in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("choice", [False, True])
@pytest.mark.parametrize("place", [{"device": "cpu"}, {"engine": "elsewhere"}])
@pytest.mark.parametrize("name", [name for name, (_, works) in REQUIREMENTS.items() if not works])
def test_refused_on_a_device_or_behind_an_engine(name, place, choice):
    """Before the device or the engine is asked for: neither need be there."""
    X, y = rows()
    tree = SoftTreeClassifierCV(cv=2) if choice else SoftTreeClassifier()
    tree.set_params(**REQUIREMENTS[name][0], **place)
    with pytest.raises(ValueError, match=IN_MEMORY_ONLY) as caught:
        tree.fit(X, y)
    assert name in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, (_, works) in REQUIREMENTS.items() if works])
def test_kept_on_a_device(name):
    torch = pytest.importorskip("torch", reason="PyTorch (softsplit[gpu]) is not installed")
    X, y = rows()
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        tree = SoftTreeClassifier(device=device, **SETTINGS, **REQUIREMENTS[name][0]).fit(X, y)
        assert_kept(name, tree)
