"""Full models for tables of numbers and text, by the name of a kind.

Text becomes one column per level inside the model (a ``Pipeline`` with a ``ColumnTransformer``), missing numbers are
filled where the model needs it: the model as a whole sees raw columns, and these are what is priced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from sparing.tables.content import is_words

_LEVELS = 50
"""Levels of a text column with a column of their own; rarer ones share one."""

_KINDS: dict[str, tuple[Callable[[], Any], bool]] = {
    # name: (model, whether it takes columns as they are: gaps, any scale)
    "forest": (lambda: RandomForestClassifier(200, min_samples_leaf=2, oob_score=True), True),
    "boosting": (HistGradientBoostingClassifier, True),
    "logistic": (lambda: LogisticRegression(max_iter=2000), False),
    "svm": (SVC, False),
}

ESTIMATORS = tuple(_KINDS)
"""Names of the kinds."""


def full_model(kind: str, X: Any) -> Any:
    """An unfitted full model for the columns of a table.

    Parameters
    ----------
    kind : {"forest", "boosting", "logistic", "svm"}
    X : pandas.DataFrame
        Numbers as numbers, text as objects; missing values in either.

    Returns
    -------
    scikit-learn classifier
        Without seed: whoever fits it gives one.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [61.0, None, 35.0, 40.0], "sex": ["f", "m", "m", "f"]})
    >>> model = full_model("logistic", X).fit(X, [0, 1, 1, 0])
    >>> model.predict(X.head(1))
    array([0])
    """
    if kind not in _KINDS:
        raise ValueError(f"estimator={kind!r} is not known: use one of {', '.join(_KINDS)}.")
    make, as_they_are = _KINDS[kind]
    model = make()
    text = [name for name in X.columns if is_words(X[name])]
    numbers = [name for name in X.columns if not is_words(X[name])]
    filled = make_pipeline(
        # A column may have no value at all among the rows of one fold.
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    if not text:
        return model if as_they_are else make_pipeline(*(step for _, step in filled.steps), model)
    if hasattr(model, "oob_score"):
        model.set_params(oob_score=False)  # unseen inside a pipeline, which is cross-fitted instead
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_LEVELS, sparse_output=False
    )
    parts = [("levels", levels, text)]
    if numbers:
        parts.append(("numbers", "passthrough" if as_they_are else filled, numbers))
    return make_pipeline(ColumnTransformer(parts, verbose_feature_names_out=False), model)
