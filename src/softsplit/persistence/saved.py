"""A tree from a model file without an estimator around it.

To predict, explain, print and export takes numpy, pandas and msgspec, and jinja2 for code in
Python, JavaScript and C: neither numba nor scikit-learn is loaded, and neither need be installed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsplit.advice.limits import AdviceLimits
from softsplit.fitted.conformal import checked_confidence, known_scores
from softsplit.fitted.model import TreeHolder, TreeModel, refuse_numbers
from softsplit.fitted.ranges import far_warning
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import checked_table
from softsplit.support.messages import warn_user
from softsplit.variables import CodedRows

if TYPE_CHECKING:
    from softsplit.advice.explanation import Explanation


@dataclass(frozen=True, repr=False)
class SavedTree(TreeHolder):
    """What a model file holds; ``load_tree`` returns it.

    Answers are those of the estimator that ``load_model`` returns, to the bit. ``export_text``,
    ``export_sql`` and the other exports take it in place of one.

    Attributes
    ----------
    tree_ : TreeModel
    named : bool
        Whether the columns of the training table had names.
    parameters : dict
        Parameters of the estimator that was trained.
    """

    tree_: TreeModel
    named: bool
    parameters: dict[str, Any]

    def __repr__(self) -> str:
        numbers = self.tree_.numbers is not None
        kind = self.tree_.answers[0] if numbers else f"{len(self.tree_.classes)} classes"
        return f"<{type(self).__name__} of {kind}>"

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in order."""
        return self.tree_.classes

    def code(self, X: Any) -> CodedRows:
        """Return rows in the coding of the tree; columns that it does not use may be absent."""
        coding = replace(self.tree_.table_coding, named=self.named)
        needed = self.tree_.selected_variables.tolist()
        return coding.code(checked_table(X), needed if coding.named else None)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of ``classes_``, (n_samples, n_classes)."""
        refuse_numbers(self.tree_)
        return self.tree_.predict_proba(self._coded(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each sample, or the number that is predicted for it."""
        return self.tree_.calls(self._coded(X))

    def predict_set(
        self, X: Any, confidence: float = 0.9, class_conditional: bool = False
    ) -> NDArray[np.bool_]:
        """Classes that each sample may have at this confidence, (n_samples, n_classes)."""
        refuse_numbers(self.tree_)
        level, known = checked_confidence(confidence), known_scores(self.tree_.held_out)
        return known.sets(self.predict_proba(X), level, class_conditional=class_conditional)

    def explain(self, x: Any, **limits: Any) -> Explanation:
        """Why the tree says what it says about one row, of a frame or a table of one row.

        ``limits`` are ``fixed``, ``ranges``, ``only_decrease`` and ``only_increase``, as in
        ``SoftTreeClassifier.explain``.
        """
        from softsplit.advice.explanation import explain

        if hasattr(x, "to_frame") and getattr(x, "ndim", 2) == 1:
            x = x.to_frame().T.infer_objects()
        rows = self.code(x)
        if len(rows) != 1:
            raise ValueError(
                f"explain takes one row of a table, such as X.iloc[5], got {len(rows)}."
            )
        return explain(self.tree_, rows.X[0], rows.cells, AdviceLimits.of(**limits))

    def _coded(self, X: Any) -> FloatArray:
        """The coded rows; a warning counts values far outside of the training range."""
        rows: FloatArray = self.code(X).X
        warning = far_warning(self.tree_, rows)
        if warning is not None:
            warn_user(warning)
        return rows
