"""The application of a service: the parts put together.

``Guard`` stands before every request, ``Answers`` does what is asked; lever, counts and the session's books are shared
by all of them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from sparing.runtime._plan import Derive
from sparing.runtime._service_activity import Activity
from sparing.runtime._service_answers import Answers
from sparing.runtime._service_client import ClientDesk
from sparing.runtime._service_guard import Guard
from sparing.runtime._service_keys import Keys, KeysLike, Rates
from sparing.runtime._service_lever import Lever, Serving
from sparing.runtime._service_log import LOGGER
from sparing.runtime._service_metrics import Metrics
from sparing.runtime._service_openapi import ABOUT
from sparing.runtime._service_paths import (
    FastAPI,
    HTTPException,
    add_paths,
    describe_keys,
    http_problem,
)
from sparing.runtime._service_token import Tokens
from sparing.runtime._source import Source, source_list
from sparing.runtime.bundle import load
from sparing.runtime.ledger import Ledger
from sparing.runtime.limits import Limits, Policy
from sparing.runtime.pacing import Pacer
from sparing.runtime.session import Session
from sparing.system import System


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
    if everybody is not None:
        describe_keys(app)
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
        till = session._desk.till
        if first:
            # A session alone would begin with an empty purse, and with every source taken for well.
            shared = first[0]._desk.till
            till.book, till.breakers = shared.book, shared.breakers
        else:
            first.append(session)
        desk = ClientDesk(
            session.system,
            book=till.book,
            # Nobody knows whom a client asks about: caps on one entity are for those the service buys for.
            limits=Limits(per_window=session.limits.per_window),
            policy=session.policy,
            derive=options["derive"] or {},
            like=options["like"],
        )
        return Serving(session, desk, position)

    return open_serving
