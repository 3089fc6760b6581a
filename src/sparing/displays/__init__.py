"""Pictures, as scikit-learn draws them: a Display holds plain arrays, ``plot(ax=None)`` draws them and returns it.

matplotlib is imported when something is drawn, never before: ``pip install 'sparing[plot]'``.
"""

from sparing.displays._curve import Curve
from sparing.displays.acquisition import AcquisitionDisplay
from sparing.displays.convergence import ConvergenceDisplay
from sparing.displays.frontier import FrontierDisplay
from sparing.displays.routing import RoutingDisplay

__all__ = [
    "AcquisitionDisplay",
    "ConvergenceDisplay",
    "Curve",
    "FrontierDisplay",
    "RoutingDisplay",
]
