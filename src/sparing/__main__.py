"""Entry point of the command line, installed as ``sparing``."""

import sys


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        from sparing.cli import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("The command line needs an extra: pip install 'sparing[cli,plot]'")
    app()


if __name__ == "__main__":
    main()
