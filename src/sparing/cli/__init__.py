"""The command ``sparing``: thin commands, each a call of public functions.

Results go to stdout (``--json`` for machines), progress and remarks to stderr. Exit codes: 0 done, 1 something broke, 2
what was given cannot be used, with one line that says why and what to do. Needs the extra ``cli``.
"""

from sparing.cli.app import app

__all__ = ["app"]
