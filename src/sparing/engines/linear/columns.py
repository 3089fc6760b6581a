"""Columns of the design as a Newton step sees them: scores, gradients and weighted Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparing.engines.penalty import Floats, Integers

_CHUNK_CELLS = 1 << 18
"""Cells of the weighted design built at a time: about what fits in a core's cache."""


class Columns:
    """Some columns of the design and the intercept: scores, and weighted Gram matrices a block of rows at a time."""

    def __init__(self, Z: Floats, columns: Integers) -> None:
        self.columns = columns
        self.width = len(columns) + 1
        # A contiguous copy pays for itself: it is read by every step until the next Hessian.
        self.Z = Z if len(columns) == Z.shape[1] else np.take(Z, columns, axis=1)

    def scores(self, W: Floats) -> Floats:
        """Scores, (outputs, rows), of coefficients of these columns and intercepts."""
        return np.ascontiguousarray((self.Z @ W[:-1]).T) + W[-1][:, None]

    def gradient(self, residual: Floats) -> Floats:
        """Gradient in these coefficients and the intercepts."""
        return np.vstack([(residual @ self.Z).T, residual.sum(axis=1)])

    def _weighted(self, root: Floats, cells: int) -> Iterator[tuple[slice, Floats]]:
        step = max(_CHUNK_CELLS // cells, 64)
        buffer = np.empty((min(step, len(root)), self.width))
        for first in range(0, len(root), step):
            rows = slice(first, min(first + step, len(root)))
            part = buffer[: rows.stop - first]
            np.multiply(self.Z[rows], root[rows, None], out=part[:, :-1])
            part[:, -1] = root[rows]
            yield rows, part

    def gram(self, weight: Floats) -> Floats:
        """[Z 1]ᵀ diag(weight) [Z 1]."""
        total = np.zeros((self.width, self.width))
        for _, part in self._weighted(np.sqrt(weight), self.width):
            total += part.T @ part
        return total

    def softmax_gram(self, proba: Floats, weight: Floats) -> Floats:
        """Hessian of the multinomial loss, classes stacked: (diag(p) − ppᵀ) between them."""
        n_classes = len(proba)
        total = np.zeros((n_classes, self.width, n_classes, self.width))
        flat = total.reshape(n_classes * self.width, -1)
        for rows, part in self._weighted(np.sqrt(weight), n_classes * self.width):
            p = proba[:, rows].T
            outer = (p[:, :, None] * part[:, None, :]).reshape(len(part), -1)
            flat -= outer.T @ outer
            for k, root in enumerate(np.sqrt(p.T)):
                scaled = part * root[:, None]
                total[k, :, k, :] += scaled.T @ scaled
        # Nothing curves when all classes move together, and solutions do not move that way (see ``centred``): any
        # curvature there makes the matrix regular and changes nothing else.
        total += flat.diagonal().mean() / n_classes * np.eye(self.width)[:, None, :]
        return flat
