"""Trees in other programs: ONNX graphs, and files of skops."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from sklearn.datasets import load_wine

from readings import TREES, alter, classifier_and_frame, random_classifier
from slow_cases import examples
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_onnx
from softsplit.persistence import SKOPS_TYPES

onnxruntime = pytest.importorskip("onnxruntime")


def run(model, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(["label", "probabilities"], {"X": np.asarray(X, dtype=float)})


# --- ONNX ---------------------------------------------------------------------------------------


@given(**TREES)
def test_the_graph_predicts_as_the_tree_does(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    far = pd.DataFrame(1e6 * X.to_numpy()[:5] - 3.0, columns=X.columns)
    X = pd.concat([X, far])
    found, probabilities = run(export_onnx(tree), X)
    expected = tree.predict_proba(X)
    top = np.sort(tree.tree_.votes(X.to_numpy()), axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-8
    known = clear | (tree.tree_.class_factors is None)
    np.testing.assert_allclose(probabilities[known], expected[known], atol=1e-9)
    assert found[clear].tolist() == tree.predict(X)[clear].tolist()


def test_a_trained_tree_with_string_labels_on_disk(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    labels = np.array(["barolo", "grignolino", "barbera"], dtype=object)[y]
    tree = SoftTreeClassifier(scale="quantile", global_strength=0.5, n_starts=2, random_state=0)
    tree.fit(X, labels)
    path = tmp_path / "tree.onnx"
    export_onnx(tree, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found, probabilities = session.run(None, {"X": X.to_numpy()})
    assert found.tolist() == tree.predict(X).tolist()
    np.testing.assert_allclose(probabilities, tree.predict_proba(X), atol=1e-9)
    one = session.run(None, {"X": X.to_numpy()[:1]})[1]
    np.testing.assert_allclose(one, tree.predict_proba(X[:1]), atol=1e-9)


def test_a_tree_without_features_has_a_graph():
    tree, X = random_classifier(2, depth=2)
    alter(tree, weights=np.zeros_like(tree.weights_))
    frame = pd.DataFrame(X, columns=tree.feature_names_in_)
    np.testing.assert_allclose(run(export_onnx(tree), X)[1], tree.predict_proba(frame), atol=1e-12)


def test_what_cannot_be_exported_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="a SoftTreeClassifier is needed, got dict"):
        export_onnx({})
    tree, _ = random_classifier(1, n_classes=2)
    alter(tree, classes=np.array([b"a", b"b"]))
    with pytest.raises(ValueError, match=r"labels of type \|S1 cannot be exported"):
        export_onnx(tree)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"ONNX export needs onnx; install it with pip install"):
        export_onnx(tree)


def test_unsigned_labels_beyond_the_signed_ones_are_exported_as_they_are():
    tree, X = random_classifier(1, n_classes=2)
    alter(tree, classes=np.array([1, 2**63], dtype=np.uint64))
    frame = pd.DataFrame(X, columns=tree.feature_names_in_)
    assert run(export_onnx(tree), X)[0].tolist() == tree.predict(frame).tolist()
    assert set(tree.predict(frame).tolist()) == {1, 2**63}


def test_a_graph_is_written_whole_and_keeps_links(tmp_path):
    tree, _ = random_classifier(1, n_classes=2)
    path, link = tmp_path / "tree.onnx", tmp_path / "link.onnx"
    path.touch(0o600)
    link.symlink_to(path)
    made = export_onnx(tree, link)
    assert link.is_symlink() and path.read_bytes() == made.SerializeToString()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(IsADirectoryError, match=r"is a folder; name another file\.$"):
        export_onnx(tree, tmp_path)


# --- skops --------------------------------------------------------------------------------------


@examples(15)
@given(**TREES)
def test_skops_keeps_the_tree(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    np.testing.assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
    assert str(other.explain(X.iloc[0])) == str(tree.explain(X.iloc[0]))


@pytest.mark.parametrize("scale", ["minmax", "quantile"])
def test_skops_keeps_what_is_known_of_the_training(scale):
    X, y = load_wine(return_X_y=True, as_frame=True)
    tree = SoftTreeClassifier(scale=scale, n_starts=2, random_state=0).fit(X, y)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    assert other.solution_.status is tree.solution_.status
    assert other.solution_.kkt.residual == tree.solution_.kkt.residual
    assert [s.objective for s in other.starts_] == [s.objective for s in tree.starts_]
    assert other.get_params() == tree.get_params()


def test_skops_keeps_a_search():
    X, y = load_wine(return_X_y=True, as_frame=True)
    search = SoftTreeClassifierCV(n_strengths=2, cv=2, depths=[2], random_state=0).fit(X, y)
    other = skops.io.loads(skops.io.dumps(search), trusted=list(SKOPS_TYPES))
    np.testing.assert_array_equal(other.predict_proba(X), search.predict_proba(X))
    assert other.best_params_ == search.best_params_
    assert list(other.cv_results_) == list(search.cv_results_)


def test_the_trusted_types_exist():
    for name in SKOPS_TYPES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)
