"""Other methods on our folds."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn

from experiment_parts import contents, small
from slow_cases import slow
from softsplit.experiments import peers
from softsplit.experiments.cells import peer_protocol
from softsplit.experiments.peers import PEERS, peer_named, reason_to_skip
from softsplit.experiments.runner import run_experiment
from softsplit.experiments.store import Store

OWN = ("CART-D", "CART-pruned", "LR-L1-CV", "RandomForest", "HistGB")


@pytest.fixture(autouse=True)
def bundled_data(monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)


def spec(**changes):
    options = {"models": (), "datasets": ("iris",), "inner": None, "only_folds": (0,)}
    return small(**{**options, **changes})


def rows_between(n_classes, seed=0):
    """Classes that the first of three features tells apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(90) % n_classes
    X = rng.uniform(size=(90, 3))
    X[:, 0] = (X[:, 0] + y) / n_classes
    return X, y


@pytest.mark.parametrize("n_classes", [3, *slow(2)])
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_and_says_what_it_uses(name, n_classes):
    reason = reason_to_skip(name)
    if reason is not None:
        pytest.skip(reason)
    X, y = rows_between(n_classes)
    peer = peer_named(name)(2, 0)
    peer.fit(X, y)
    proba = peer.predict_proba(X)
    assert proba.shape == (90, n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert np.mean(np.argmax(proba, axis=1) == y) > 0.9
    used = list(peer.splits())
    assert 0 in used and set(used) <= {0, 1, 2}


def test_peers_run_beside_the_trees_and_again_to_the_same_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "RandomForestClassifier", _small_forest)
    chosen = spec(peers=OWN, models=("L1",), starts=1)
    for name in ("one", "two"):
        with Store(tmp_path / f"{name}.sqlite") as store:
            done = run_experiment(chosen, store)
            frame = store.frame({peer_protocol(chosen)})
        assert done.n_done == len(OWN) + 3
    assert contents(tmp_path / "one.sqlite") == contents(tmp_path / "two.sqlite")
    assert set(frame["model"]) == set(OWN)
    assert (frame["status"] == "FITTED").all()
    assert set(frame["message"]) == {f"sklearn {sklearn.__version__}"}
    assert frame["test_accuracy"].between(0.8, 1.0).all()
    assert (frame["features_used"] <= 4).all()
    assert (frame["seconds"] > 0).all() and (frame["predict_seconds"] > 0).all()


def _small_forest(n_estimators, **options):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(10, **options)


def test_a_peer_that_is_not_installed_is_skipped_with_its_reason(tmp_path, monkeypatch):
    absent = type("Absent", (peers.Cart,), {"package": "no_such_package"})
    monkeypatch.setitem(PEERS, "absent", absent)
    chosen = spec(peers=("CART-D", "absent"))
    with Store(tmp_path / "skip.sqlite") as store:
        done = run_experiment(chosen, store)
        assert done.n_done == done.n_cells == 1
        assert "no_such_package cannot be imported" in done.skipped["absent"]
        # Installed at last: it is run, and nothing else is.
        monkeypatch.setitem(PEERS, "absent", peers.Cart)
        done = run_experiment(chosen, store)
        assert done.n_done == 2 and done.skipped == {}
