"""``sparing serve``: a stored model behind an endpoint."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparing.cli.console import ModelFile, plain_errors

_VARIABLE = "SPARING_KEYS"
"""Where the service finds keys, separated by commas, without a file of them."""
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

        check_keys(keys_file, no_keys, host)
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


def check_keys(keys_file: Path | None, no_keys: bool, host: str) -> None:
    """Raise unless there are keys that can be used, or none are wanted and nobody else can ask.

    Raises
    ------
    ValueError
        In words of the command line; the service itself speaks to those who call it from Python.
    """
    from sparing.runtime._service_keys import SHORTEST, is_loopback, read_keys

    if no_keys and keys_file is not None:
        raise ValueError("--keys-file gives keys and --no-keys does without: choose one.")
    if no_keys and not is_loopback(host):
        raise ValueError(
            f"--no-keys serves this machine alone, and --host is {host}: give --keys-file, or leave --host out."
        )
    if no_keys:
        return
    if keys_file is not None:
        found, place = list(read_keys(keys_file).values()), str(keys_file)
    else:
        given = os.environ.get(_VARIABLE, "").split(",")
        found, place = [key.strip() for key in given if key.strip()], _VARIABLE
    make = "`openssl rand -hex 32` makes one"
    if not found and keys_file is not None:
        raise ValueError(f"{place} holds no key: write `name: key` on a line; {make}.")
    if not found:
        raise ValueError(
            f"A service needs keys: give --keys-file, or set {place} ({make}); --no-keys does without on this machine "
            "alone."
        )
    short = [key for key in found if len(key) < SHORTEST]
    if short:
        raise ValueError(
            f"{place}: a key has {len(short[0])} characters and needs at least {SHORTEST}: {make}."
        )
