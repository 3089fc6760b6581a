"""Entry point of the command line, installed as ``sparing``."""

import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from sparing.cli import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("The command line needs an extra: pip install 'sparing[cli,plot]'")
    signal.signal(signal.SIGTERM, _end)
    app()


def _end(number: int, _: FrameType | None) -> None:
    """End as after an error, so that files begun are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
