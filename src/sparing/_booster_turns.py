"""Whose turn it is to ask a booster: LightGBM keeps the number of iterations that was asked for in the booster itself.

Predictions of one prefix may run side by side; another prefix would change the number under their hands, and they would
answer with other trees. So prefixes take turns. A copy of the booster per prefix would do as well, for nearly three
times the memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PrefixTurns:
    """Lets in any number of threads that ask for the same iterations, and the others when these have finished.

    A thread that is in must not ask to be let in again: it may wait for itself.

    Examples
    --------
    >>> turns = PrefixTurns()
    >>> with turns.of(10):
    ...     pass
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_iteration = 0
        self._inside = 0
        self._waiting = 0

    def __reduce__(self) -> tuple[type[PrefixTurns], tuple[()]]:
        # Nobody waits for a copy.
        return PrefixTurns, ()

    @contextmanager
    def of(self, n_iteration: int) -> Iterator[None]:
        """Wait until the booster may be asked for this many iterations."""
        with self._changed:
            # Whoever comes later waits behind those who wait already, so that everybody's turn comes.
            if self._inside and (self._waiting or n_iteration != self._n_iteration):
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: not self._inside)
                finally:
                    self._waiting -= 1
            self._n_iteration = n_iteration
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._changed.notify_all()
