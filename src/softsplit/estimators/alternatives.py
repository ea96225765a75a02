"""Alternatives to a chosen tree, as a small table that reads well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from softsplit.reading.outline import outline
from softsplit.reading.text import export_text
from softsplit.support.messages import visible

if TYPE_CHECKING:
    import pandas as pd

LOG_LOSS = "log-loss"


@dataclass(frozen=True, repr=False)
class Alternative:
    """A tree beside the chosen one.

    Attributes
    ----------
    tree : SoftTreeClassifier
        Fitted to all rows: predict, explain, save it as any other.
    features : tuple of str
        Columns that it uses.
    new_features : tuple of str
        Those of them that the chosen tree does not use.
    n_questions, n_terms : int
    behind, error : float
        How much worse trees of its settings are than those of the chosen ones on held-out rows of
        the choice, and the standard error of that difference.
    measure : str
        What is compared: "log-loss", "accuracy" or the name of the given score.
    """

    tree: Any
    features: tuple[str, ...]
    new_features: tuple[str, ...]
    n_questions: int
    n_terms: int
    behind: float
    error: float
    measure: str = LOG_LOSS

    @classmethod
    def of(
        cls, tree: Any, chosen: Any, behind: float, error: float, measure: str = LOG_LOSS
    ) -> Alternative:
        """Describe a fitted tree beside the ``chosen`` one."""
        names, own = _names(tree), set(_names(chosen))
        return cls(
            tree=tree,
            features=names,
            new_features=tuple(name for name in names if name not in own),
            n_questions=len(outline(tree.tree_).questions()),
            n_terms=int(np.count_nonzero(tree.weights_)),
            behind=behind,
            error=error,
            measure=measure,
        )

    @property
    def gap_words(self) -> str:
        """How held-out rows of the choice see the difference to the chosen tree."""
        if self.behind == self.error == 0.0:
            return "at the chosen settings"
        higher = (self.behind >= 0) == (self.measure == LOG_LOSS)  # a higher loss is worse
        gap = f"{abs(self.behind):.4f} +- {self.error:.4f}"
        return f"{self.measure} {'higher' if higher else 'lower'} by {gap} on held-out rows"

    def __repr__(self) -> str:
        return f"{_words(self)}\n\n{export_text(self.tree)}"


@dataclass(frozen=True, repr=False)
class Alternatives(Sequence[Alternative]):
    """Trees within one standard error of the chosen one, with other features or another structure.

    ``alternatives[0].tree`` is a fitted tree; ``to_frame()`` is a table of all of them.

    Attributes
    ----------
    found : tuple of Alternative
        Those least like the chosen tree first.
    chosen : Alternative
        The chosen tree in the same words.
    n_asked : int
    interrupted : bool
        Whether Ctrl-C ended the search for them.
    """

    found: tuple[Alternative, ...]
    chosen: Alternative
    n_asked: int
    interrupted: bool = False

    @overload
    def __getitem__(self, at: int) -> Alternative: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Alternative, ...]: ...
    def __getitem__(self, at: int | slice) -> Alternative | tuple[Alternative, ...]:
        return self.found[at]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Alternative]:
        return iter(self.found)

    def to_frame(self) -> pd.DataFrame:
        """A row for the chosen tree (0) and for each alternative, from 1."""
        import pandas as pd

        every = [self.chosen, *self.found]
        return pd.DataFrame(
            {
                "features": [", ".join(one.features) for one in every],
                "new_features": [", ".join(one.new_features) for one in every],
                "n_features": [len(one.features) for one in every],
                "n_questions": [one.n_questions for one in every],
                "n_terms": [one.n_terms for one in every],
                "behind": [one.behind for one in every],
                "error": [one.error for one in every],
            }
        )

    def __repr__(self) -> str:
        count = len(self.found)
        if not count:
            return "no alternative: every tree about as good uses the features of the chosen one"
        lines = [f"chosen tree: {_words(self.chosen)}"]
        less = f" ({self.n_asked} were asked for)" if count < self.n_asked else ""
        lines.append(
            f"{count} alternative{'' if count == 1 else 's'} within one standard error{less}:"
        )
        lines += [
            f"{number:3d}. {_words(one)}; {one.gap_words}"
            for number, one in enumerate(self.found, 1)
        ]
        return "\n".join(lines)


def _names(tree: Any) -> tuple[str, ...]:
    model = tree.tree_
    return tuple(model.column_names[j] for j in model.selected_columns)


def _words(one: Alternative) -> str:
    listed = ", ".join(
        f"{visible(name)} (new)" if name in one.new_features else visible(name)
        for name in one.features
    )
    questions = f"{one.n_questions} question{'' if one.n_questions == 1 else 's'}"
    return f"{questions}, {one.n_terms} term{'' if one.n_terms == 1 else 's'} on {listed}"
