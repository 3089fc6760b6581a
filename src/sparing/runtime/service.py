"""A system behind an endpoint: ``create_app`` makes an ASGI application, ``serve`` runs it.

The parts: the application (``_service_app``), what stands before every request (``_service_guard``: keys, rates, sizes,
logs), what is read of it (``_service_request``), what is done (``_service_answers``; ``_service_client`` and
``_service_token`` where the client buys), the lever (``_service_lever``), the counts (``_service_activity``,
``_service_metrics``), the descriptions (``_service_openapi``, ``_service_replies``) and the page.

One process serves one model. Caps on spending hold over processes where they share a ledger; rates, counts and the
lever are each process's own.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from sparing.runtime._service_app import create_app
from sparing.runtime._service_keys import KeysLike, is_loopback, read_keys
from sparing.runtime._service_log import log_settings
from sparing.runtime._source import Source, source_list
from sparing.runtime.bundle import load
from sparing.runtime.ledger import Ledger
from sparing.system import System

__all__ = ["create_app", "read_keys", "serve"]

KEYS_VARIABLE = "SPARING_KEYS"
"""Environment variable from which :func:`serve` takes keys, separated by commas, when it gets none."""


def serve(
    path: str | os.PathLike[str] | System | Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    sources: Source | Sequence[Source] | str = (),
    ledger: Ledger | str | os.PathLike[str] | None = None,
    keys: KeysLike = (),
    keys_file: str | os.PathLike[str] | None = None,
    no_keys: bool = False,
    digest: str | None = None,
    full_model: Any = None,
    trusted: Sequence[str | type] | None = None,
    log_level: str = "info",
    grace: float = 30.0,
    **options: Any,
) -> None:
    """Serve a bundle over HTTP until the process is told to end (SIGTERM, SIGINT); answers under way are finished.

    Parameters
    ----------
    path : path, Bundle or System
    host : str, default="127.0.0.1"
    port : int, default=8000
    sources : sequence of Source, or text "module:name"
        From which the service buys; a text names them, or a function that returns them, in an importable module.
        Without sources clients buy.
    ledger : Ledger or path, optional
        The books; a file is made when it is not there.
    keys : mapping of name to key, or iterable of keys
        Beside those of ``keys_file``. Where both are empty, the environment variable ``SPARING_KEYS`` holds them,
        separated by commas.
    keys_file : path, optional
        One ``name: key`` per line.
    no_keys : bool, default=False
        Without keys, on a loopback host only.
    digest, full_model, trusted
        As for :func:`~sparing.runtime.load`.
    log_level : str, default="info"
        Logs are lines of JSON on stderr.
    grace : float, default=30.0
        Seconds to wait at the end for answers under way.
    options
        More parameters of :func:`create_app`: ``limits``, ``pacer``, ``policy``, ``rate``, ``operator_keys``, ...

    Raises
    ------
    ValueError, OSError
        The bundle, the ledger, the keys, the host or the port cannot be used; the message says why.

    Examples
    --------
    >>> from sparing.runtime._examples import lender
    >>> serve(lender()[0], host="0.0.0.0", no_keys=True)
    Traceback (most recent call last):
    ValueError: no_keys serves this machine alone, and host is '0.0.0.0': give keys, or use 127.0.0.1.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError(f"port is {port!r}, must be a whole number from 0 to 65535.")
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError("The service runs on uvicorn: pip install 'sparing[serve]'.") from error
    if no_keys and not is_loopback(host):
        raise ValueError(
            f"no_keys serves this machine alone, and host is {host!r}: give keys, or use 127.0.0.1."
        )
    bundle = path
    if isinstance(path, str | os.PathLike):
        bundle = load(path, digest=digest, full_model=full_model, trusted=trusted)
    books = Ledger(ledger) if isinstance(ledger, str | os.PathLike) else ledger
    try:
        app = create_app(
            bundle,
            _named(sources) if isinstance(sources, str) else sources,
            ledger=books,
            keys=() if no_keys else _found_keys(keys, keys_file),
            no_keys=no_keys,
            grace=grace,
            **options,
        )
        _check_address(host, port)
        logging.captureWarnings(True)
        uvicorn.run(
            app,
            host=host,
            port=port,
            access_log=False,  # the service's own lines have no path and no address
            log_config=log_settings(log_level),
            log_level=log_level,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(grace)),
        )
    finally:
        logging.captureWarnings(False)
        if books is not None and books is not ledger:
            books.close()


def _check_address(host: str, port: int) -> None:
    """Raise an OSError that says why an address cannot be listened on: uvicorn would end the process instead."""
    nowhere = f"Host {host!r} is no address of this machine: use 127.0.0.1, or 0.0.0.0 for all."
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OSError(nowhere) from error
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if (
            os.name == "posix"
        ):  # as uvicorn does: what was served here a moment ago is not in the way
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            why = {
                errno.EADDRINUSE: f"Port {port} of {host} is in use: end what listens there, or choose another port.",
                errno.EACCES: f"Port {port} of {host} is not for this user: choose one from 1024 on.",
                errno.EADDRNOTAVAIL: nowhere,
            }
            other = f"Port {port} of {host} cannot be listened on: {error.strerror}."
            raise OSError(why.get(error.errno or 0, other)) from error


def _found_keys(keys: KeysLike, keys_file: str | os.PathLike[str] | None) -> KeysLike:
    given: KeysLike = keys if isinstance(keys, Mapping) else list(keys)
    if keys_file is not None:
        named = (
            dict(given)
            if isinstance(given, Mapping)
            else {f"key-{n}": k for n, k in enumerate(given)}
        )
        return named | read_keys(keys_file)
    if not given:
        return [key.strip() for key in os.environ.get(KEYS_VARIABLE, "").split(",") if key.strip()]
    return given


def _named(name: str) -> Sequence[Source]:
    """Sources from ``module:name``."""
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"sources is {name!r}: write module:name.")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # something that the module itself needs
        raise ValueError(
            f"sources is {name!r}, and there is no module {error.name!r}: is {error.name}.py in this folder, or "
            "installed?"
        ) from error
    if found is None:
        raise ValueError(f"Module {module!r} has no {attribute!r}.")
    made = found() if callable(found) else found
    return source_list(made)
