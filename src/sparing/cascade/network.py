"""One model for every stage: a small network that was trained with columns taken away.

Training rows are copied with some columns set to 0 and a flag per column that says whether it is there; the network
learns to answer from whatever it gets. Trained on the stages of one cascade it serves all of them, on random sets of
columns it says what any set is worth. ``training.py`` does the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from sparing._stored import Stored
from sparing.cascade.inputs import NetworkInputs

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Booleans = NDArray[np.bool_]
Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class MaskedNetwork:
    """Weights of a trained network, and how its inputs come from columns.

    Attributes
    ----------
    inputs : how columns of X become inputs; ``owner`` says which column an input belongs to.
    weights, biases : of the layers, float32. The first layer reads the inputs, then one flag per column of X.
    """

    inputs: NetworkInputs
    weights: tuple[Singles, ...]
    biases: tuple[Singles, ...]

    def proba(self, Z: Singles | Floats, mask: Booleans) -> Floats:
        """Probabilities from rows of inputs, with the columns of ``mask`` there and the others not."""
        there = mask[self.inputs.owner]
        first = self.weights[0]
        n_inputs = len(there)
        hidden = Z[:, there] @ first[:n_inputs][there]
        hidden += first[n_inputs:][mask].sum(axis=0) + self.biases[0]
        return self._rest(hidden)

    def _rest(self, hidden: Singles | Floats) -> Floats:
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            np.maximum(hidden, 0, out=hidden)
            hidden = hidden @ weight
            hidden += bias
        return softmax(hidden.astype(float), axis=1)

    def proba_without(self, Z: Singles, mask: Booleans, groups: list[Codes]) -> list[Floats]:
        """Probabilities with the columns of ``mask``, each time but for one group of them.

        Only the first layer changes from one group to the next, so a whole round costs little more than its later
        layers.
        """
        owner, first = self.inputs.owner, self.weights[0]
        n_inputs = len(owner)
        there = mask[owner]
        base = Z[:, there] @ first[:n_inputs][there]
        base += first[n_inputs:][mask].sum(axis=0) + self.biases[0]
        out = []
        for group in groups:
            gone = np.isin(owner, group) & there
            flags = group[mask[group]]
            hidden = base - Z[:, gone] @ first[:n_inputs][gone]
            hidden -= first[n_inputs:][flags].sum(axis=0)
            out.append(self._rest(hidden))
        return out

    def stored(self) -> Stored:
        """Weights and inputs."""
        arrays = {f"weight_{i}": w for i, w in enumerate(self.weights)}
        arrays |= {f"bias_{i}": b for i, b in enumerate(self.biases)}
        return Stored("masked network", arrays=arrays, parts={"inputs": self.inputs})

    @classmethod
    def restored(cls, stored: Stored) -> MaskedNetwork:
        """The network again."""
        n_layers = sum(name.startswith("weight_") for name in stored.arrays)
        weights = [stored.array(f"weight_{i}", kind="f", ndim=2) for i in range(n_layers)]
        biases = [stored.array(f"bias_{i}", kind="f") for i in range(n_layers)]
        inputs = stored.part("inputs", NetworkInputs)
        widths = [len(inputs.owner) + inputs.n_columns, *(len(b) for b in biases)]
        if [w.shape for w in weights] != list(pairwise(widths)):
            raise ValueError("The layers of a network must fit each other and its inputs.")
        single = [[a.astype(np.float32) for a in arrays] for arrays in (weights, biases)]
        return cls(inputs, tuple(single[0]), tuple(single[1]))


def mean_proba(networks: Sequence[MaskedNetwork], Z: Singles | Floats, mask: Booleans) -> Floats:
    """Probabilities of several networks with the same inputs, averaged."""
    return np.asarray(np.mean([network.proba(Z, mask) for network in networks], axis=0))


@dataclass(frozen=True, eq=False)
class MaskedPredictor:
    """A stage of a cascade that answers with the shared networks, from its own columns.

    Attributes
    ----------
    networks : one or more, whose probabilities are averaged.
    mask : columns of the stage.
    """

    networks: tuple[MaskedNetwork, ...]
    mask: Booleans

    @property
    def columns(self) -> Codes:
        """Columns of the stage."""
        return np.flatnonzero(self.mask)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities."""
        # In double precision, so that a row alone and a row among others get the same answer to the last digits.
        Z = self.networks[0].inputs.transform(X, self.mask).astype(np.float64)
        return mean_proba(self.networks, Z, self.mask)

    def stored(self) -> Stored:
        """The networks and the columns of the stage."""
        parts = dict(zip(_part_names(len(self.networks)), self.networks, strict=True))
        return Stored("masked predictor", arrays={"mask": self.mask}, parts=parts)

    @classmethod
    def restored(cls, stored: Stored) -> MaskedPredictor:
        """The predictor again."""
        names = _part_names(max(1, len(stored.parts)))
        networks = tuple(stored.part(name, MaskedNetwork) for name in names)
        mask = stored.array("mask", kind="b")
        inputs, classes = networks[0].inputs, len(networks[0].biases[-1])
        if len(mask) != inputs.n_columns:
            raise ValueError(
                f"The mask of a stage has {len(mask)} columns, its network another number."
            )
        if any(n.inputs is not inputs or len(n.biases[-1]) != classes for n in networks):
            raise ValueError("Networks of a stage must have the same inputs and classes.")
        return cls(networks, mask)


def _part_names(n: int) -> list[str]:
    """Names of n networks in a stored stage; of one alone as before there were several."""
    return ["network", *(f"network_{i}" for i in range(2, n + 1))]
