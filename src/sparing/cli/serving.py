"""``sparing serve``: a stored model behind an endpoint."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparing.cli.console import ModelFile, plain_errors

SERVE_EXAMPLES = """
sparing serve patients.sparing --no-keys
SPARING_KEYS=a-long-random-text sparing serve patients.sparing --host 0.0.0.0 --port 8080
sparing serve patients.sparing --keys-file keys.txt --sources clinic:sources --ledger books.db
"""


def serve(
    model: ModelFile,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    sources: Annotated[
        str | None,
        typer.Option(help="Where items are bought, MODULE:NAME; without it clients buy."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="File of the books; made when it is not there.")
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(help="File with `name: key` per line; or set SPARING_KEYS, with commas."),
    ] = None,
    no_keys: Annotated[
        bool, typer.Option("--no-keys", help="Serve without keys, this machine alone.")
    ] = False,
    digest: Annotated[
        str | None, typer.Option(help="Refuse any other file than the one with this digest.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="Of the lines on stderr.")] = "info",
) -> None:
    """Answer over HTTP until told to stop: for entities whose items the service buys, or for clients that buy."""
    with plain_errors():
        from sparing.runtime import service

        if sources is not None:
            sys.path.insert(0, os.getcwd())  # where the module usually is
        service.serve(
            model,
            host=host,
            port=port,
            sources=sources or (),
            ledger=ledger,
            keys_file=keys_file,
            no_keys=no_keys,
            digest=digest,
            log_level=log_level,
        )
