"""Scores of one row at a time: what a served booster is asked, without the costs of a batch.

LightGBM's Python predictor makes and frees an object for every call, three times the work of two hundred trees on one
row. Its C interface keeps that object: it is used here through the handle that LightGBM's own package has loaded. Such
a predictor follows the number of iterations that was asked of its booster last, by whomever; so it gets a booster of
its own. One per thread: it writes to a buffer inside.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing._lightgbm import lightgbm

Floats = NDArray[np.float64]

_RAW_SCORE = 1  # C_API_PREDICT_RAW_SCORE
_FLOAT64 = 1  # C_API_DTYPE_FLOAT64


class OneRowScores:
    """Raw scores of single rows by all trees of a model; the same bits as a batch gives.

    Parameters
    ----------
    model : str
        LightGBM's text format.
    n_columns : int
    """

    def __init__(self, model: str, n_columns: int) -> None:
        self._booster = lightgbm.Booster(model_str=model)
        self._n_columns = n_columns
        self._n_outputs = int(self._booster.num_model_per_iteration())
        self._call = lightgbm.basic._LIB.LGBM_BoosterPredictForMatSingleRowFast
        self._mine = threading.local()

    def __call__(self, row: NDArray[np.floating]) -> Floats:
        """Scores of shape (n_outputs,) of a row of shape (1, n_columns)."""
        try:
            mine = self._mine.predictor
        except AttributeError:
            mine = self._mine.predictor = _Predictor(
                self._booster, self._n_columns, self._n_outputs
            )
        if row.shape != mine.row.shape:
            raise ValueError(f"The row has shape {row.shape}, the trees know {mine.row.shape}.")
        mine.row[...] = row
        lightgbm.basic._safe_call(self._call(*mine.arguments))
        return mine.scores.copy()


class _Predictor:
    """A handle of LightGBM's and its buffers, freed with the thread they belong to."""

    def __init__(self, booster: Any, n_columns: int, n_outputs: int) -> None:
        self.booster = booster  # must outlive the handle
        self.row = np.empty((1, n_columns))
        self.scores = np.empty(n_outputs)
        self.handle = ctypes.c_void_p()
        lightgbm.basic._safe_call(
            lightgbm.basic._LIB.LGBM_BoosterPredictForMatSingleRowFastInit(
                booster._handle,
                ctypes.c_int(_RAW_SCORE),
                ctypes.c_int(0),
                ctypes.c_int(-1),
                ctypes.c_int(_FLOAT64),
                ctypes.c_int(n_columns),
                ctypes.c_char_p(b"num_threads=1"),
                ctypes.byref(self.handle),
            )
        )
        self.arguments = (
            self.handle,
            ctypes.c_void_p(self.row.ctypes.data),
            ctypes.byref(ctypes.c_int64(0)),
            ctypes.c_void_p(self.scores.ctypes.data),
        )
        self._free = lightgbm.basic._LIB.LGBM_FastConfigFree

    def __del__(self) -> None:
        if self.handle:
            self._free(self.handle)
