"""A system behind an endpoint: ``create_app`` makes an ASGI application, ``serve`` runs it.

The parts: what stands before every request (``_service_guard``: keys, rates, sizes, logs), what is read of it
(``_service_request``), what is done (``_service_answers``; ``_service_client`` and ``_service_token`` where the client
buys), the lever (``_service_lever``), the counts (``_service_activity``, ``_service_metrics``) and the page.

One process serves one model. Caps on spending hold over processes where they share a ledger; rates, counts and the
lever are each process's own.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from sparing.runtime._plan import Derive
from sparing.runtime._service_activity import Activity
from sparing.runtime._service_answers import Answers
from sparing.runtime._service_client import ClientDesk
from sparing.runtime._service_guard import Guard
from sparing.runtime._service_keys import Keys, Rates, is_loopback, read_keys
from sparing.runtime._service_lever import Lever, Serving
from sparing.runtime._service_log import LOGGER, log_settings
from sparing.runtime._service_metrics import Metrics
from sparing.runtime._service_openapi import ABOUT
from sparing.runtime._service_paths import FastAPI, HTTPException, add_paths, http_problem
from sparing.runtime._service_token import Tokens
from sparing.runtime._source import Source, source_list
from sparing.runtime.bundle import load
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import Limits, Policy
from sparing.runtime.pacing import Pacer
from sparing.runtime.session import Session
from sparing.system import System

__all__ = ["create_app", "read_keys", "serve"]

KEYS_VARIABLE = "SPARING_KEYS"
"""Environment variable from which :func:`serve` takes keys, separated by commas, when it gets none."""

KeysLike = Mapping[str, str] | Iterable[str]


def create_app(
    bundle: System | str | os.PathLike[str] | Any,
    sources: Source | Sequence[Source] = (),
    *,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    pacer: Pacer | None = None,
    policy: Policy | None = None,
    derive: Derive | None = None,
    like: Any = None,
    keys: KeysLike = (),
    operator_keys: KeysLike | None = None,
    no_keys: bool = False,
    rate: float | None = 1000.0,
    burst: float | None = None,
    max_body: int | None = None,
    body_seconds: float = 10.0,
    max_in_flight: int = 256,
    timeout: float = 30.0,
    token_seconds: float = 3600.0,
    secret: bytes | None = None,
    grace: float = 30.0,
) -> FastAPI:
    """An application that answers over HTTP.

    ``POST /v1/predict`` answers: with an ``entity`` the service buys from its sources; with ``columns`` alone it
    answers or says which items it still needs, with a token to continue. ``GET /v1/model`` and ``/v1/spend``, ``GET``
    and ``PUT /v1/exit`` (the lever), ``/metrics`` (Prometheus), ``/healthz``, ``/openapi.json``, and a page at ``/``.

    Parameters
    ----------
    bundle : path, Bundle, System or fitted classifier
    sources : sequence of Source, default=()
        From which the service buys; closed with it. Without any, clients buy.
    ledger, limits, pacer, policy, derive
        As for :class:`Session`. A ledger also keeps the lever's position.
    like : array or data frame, optional
        As for :class:`Session`; by default what the bundle says.
    keys : mapping of name to key, or iterable of keys
        Who may ask. Sent as ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``.
    operator_keys : the same, optional
        Who may also move the lever. None: everybody with a key.
    no_keys : bool, default=False
        Serve without keys. Then only this machine itself is answered.
    rate : float or None, default=1000.0
        Requests per second of each key; None is without limit.
    burst : float, optional
        Requests at once, by default two seconds' worth.
    max_body : int, optional
        Bytes of a request, by default enough for all columns.
    body_seconds : float, default=10.0
        Seconds in which a body must have come.
    max_in_flight : int, default=256
        Answers under way at the same time.
    timeout : float, default=30.0
        Seconds after which a client is sent away; purchases under way end all the same, and a ledger keeps them.
    token_seconds : float, default=3600.0
        How long a client may take to buy.
    secret : bytes, optional
        Signs the tokens; give several processes the same. By default a random one.
    grace : float, default=30.0
        Seconds to wait at the end for answers under way.

    Returns
    -------
    fastapi.FastAPI

    Examples
    --------
    >>> import asyncio, httpx
    >>> from sparing.runtime import MockSource
    >>> from sparing.runtime._examples import lender
    >>> from sparing.runtime.service import create_app
    >>> system, people = lender()
    >>> app = create_app(system, [MockSource(people, ["income", "bureau"])], keys=["a-long-random-text"])
    >>> async def ask(**body):
    ...     transport = httpx.ASGITransport(app)
    ...     headers = {"Authorization": "Bearer a-long-random-text"}
    ...     async with httpx.AsyncClient(transport=transport, base_url="http://lender", headers=headers) as client:
    ...         return (await client.post("/v1/predict", json=body)).json()
    >>> answer = asyncio.run(ask(entity="anna"))
    >>> answer["prediction"], answer["cost"]
    ('pays', 1.0)
    >>> needed = asyncio.run(ask(columns={"income": 0.5}))
    >>> needed["status"], needed["columns"], needed["price"]
    ('items_needed', ['bureau'], 5.0)
    >>> answer = asyncio.run(ask(columns={"income": 0.5, "bureau": -2.0}, token=needed["token"]))
    >>> answer["prediction"], answer["cost"], answer["bought"]
    ('defaults', 5.0, ['bureau'])
    """
    system = _system(bundle)
    sources = source_list(sources)
    known = _keys(keys, no_keys)
    if no_keys and operator_keys is not None:
        raise ValueError("operator_keys are given, and no_keys says to serve without: choose one.")
    operators = known if operator_keys is None else Keys(operator_keys)
    everybody = known if known is None or operators is None else known | operators
    like = getattr(system, "like", None) if like is None else like
    digest = getattr(system, "digest", None) or _identity(system)
    open_serving = _opener(
        sources,
        pacer,
        {
            "ledger": ledger,
            "limits": limits,
            "policy": policy,
            "derive": derive,
            "like": like,
        },
    )
    lever = Lever(system, open_serving, pacer=pacer, ledger=ledger, digest=digest)
    activity = Activity()
    answers = Answers(
        system,
        lever,
        Tokens(secret, model=digest, lifetime=token_seconds),
        activity,
        ledger=ledger,
        pacer=pacer,
        buys=bool(sources),
        timeout=timeout,
        max_in_flight=max_in_flight,
    )
    metrics = Metrics(activity, lambda: lever.thresholds, lambda: lever.serving.session.breakers)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG001
        LOGGER.info("start", extra={"fields": {"model": digest[:16], "sources": len(sources)}})
        yield
        await answers.close(grace)
        await lever.serving.session.aclose()
        LOGGER.info("end", extra={"fields": {"answers": activity.summary()["answers"]}})

    app = FastAPI(
        title="sparing",
        description=ABOUT,
        version="1",
        docs_url=None,  # its page comes from another server
        redoc_url=None,
        redirect_slashes=False,  # a redirection would go where the Host header says
        lifespan=lifespan,
        exception_handlers={HTTPException: http_problem},
    )
    app.add_middleware(
        Guard,
        keys=everybody,
        rates=None if rate is None else Rates(rate, 2 * rate if burst is None else burst),
        max_body=_max_body(system) if max_body is None else max_body,
        body_seconds=body_seconds,
        metrics=metrics,
    )
    add_paths(app, answers, metrics, system, operators)
    return app


# -- what a service is made of ------------------------------------------------------------------------


def _system(bundle: Any) -> System:
    if isinstance(bundle, str | os.PathLike):
        return load(bundle)
    system = getattr(bundle, "system_", bundle)
    if not isinstance(system, System):
        raise TypeError(
            f"create_app serves a bundle, a system or a fitted classifier, not {type(bundle).__name__}."
        )
    return system


def _keys(keys: KeysLike, no_keys: bool) -> Keys | None:
    known = Keys(keys)
    if no_keys and len(known):
        raise ValueError("Keys are given, and no_keys says to serve without: choose one.")
    if not no_keys and not len(known):
        raise ValueError(
            "A service needs keys: keys=[secrets.token_urlsafe()]. On your own machine alone, no_keys=True does "
            "without."
        )
    return None if no_keys else known


def _identity(system: System) -> str:
    """Tells apart the systems that a secret may be shared by; one from a file has its digest."""
    costs = system.costs
    return sha256(repr((system, costs.to_dict(), system.classes.tolist())).encode()).hexdigest()


def _max_body(system: System) -> int:
    return 65_536 + 256 * len(system.costs.columns)


def _opener(sources: Sequence[Source], pacer: Pacer | None, options: dict[str, Any]) -> Any:
    """How a system is put to work; all of one service share books and breakers."""
    first: list[Session] = []

    def open_serving(system: System, position: int) -> Serving:
        session = Session(getattr(system, "system", system), sources, pacer=pacer, **options)
        if (
            first
        ):  # a session alone would begin with an empty purse, and with every source taken for well
            session._desk.book = first[0]._desk.book
            session._desk.breakers = first[0]._desk.breakers
        else:
            first.append(session)
        desk = ClientDesk(
            session.system,
            book=session._desk.book,
            # Nobody knows whom a client asks about: caps on one entity are for those the service buys for.
            limits=Limits(per_window=session.limits.per_window),
            policy=session.policy,
            derive=options["derive"] or {},
            like=options["like"],
        )
        return Serving(session, desk, position)

    return open_serving


# -- running it ---------------------------------------------------------------------------------------


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
    found = getattr(importlib.import_module(module), attribute, None)
    if found is None:
        raise ValueError(f"Module {module!r} has no {attribute!r}.")
    made = found() if callable(found) else found
    return source_list(made)
