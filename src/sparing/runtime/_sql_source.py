"""A source that is a query: one row per entity, from whatever database SQLAlchemy speaks to."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from sparing.runtime._source import Request, Source, SourceError


class SQLSource(Source):
    """One query that gives one row for an entity; runs in a thread where a session is asynchronous.

    Parameters
    ----------
    engine : str or sqlalchemy.Engine
        A database address, or an engine that is already there.
    query : str
        With the entity as ``:entity``; it must give the columns of all items, under their names, in one row.
    items, name, honours_keys, time_to_live
        As for :class:`Source`. Reading one's own tables costs nothing twice: keys are honoured unless told otherwise.

    Examples
    --------
    >>> from sparing.runtime import Request
    >>> from sqlalchemy import create_engine, text
    >>> from sqlalchemy.pool import StaticPool
    >>> engine = create_engine(
    ...     "sqlite://", connect_args={"check_same_thread": False}, poolclass=StaticPool
    ... )
    >>> with engine.begin() as connection:
    ...     _ = connection.execute(text("create table people (id text, age integer)"))
    ...     _ = connection.execute(text("insert into people values ('anna', 40)"))
    >>> source = SQLSource(engine, "select age from people where id = :entity", ["age"])
    >>> source.fetch(Request("anna", ("age",), ("age",), "k"))
    {'age': 40}
    >>> engine.dispose()
    """

    def __init__(
        self,
        engine: Any,
        query: str,
        items: Iterable[Hashable] | Mapping[Any, Iterable[Hashable]],
        *,
        name: str = "sql",
        honours_keys: bool = True,
        time_to_live: float | None = None,
    ) -> None:
        super().__init__(items, name=name, honours_keys=honours_keys, time_to_live=time_to_live)
        try:
            import sqlalchemy
        except ImportError as error:
            raise ImportError(
                "SQLSource asks databases with SQLAlchemy: pip install 'sparing[serve]'."
            ) from error
        self._own = isinstance(engine, str)
        self._engine = sqlalchemy.create_engine(engine) if self._own else engine
        self._query = sqlalchemy.text(query)
        if "entity" not in self._query._bindparams:
            raise ValueError(
                f"The query of source {name!r} does not say :entity: it would give everybody the same row."
            )
        self._errors = sqlalchemy.exc.SQLAlchemyError

    def fetch(self, request: Request) -> Mapping[Any, Any]:
        """The columns asked for of the entity's row."""
        try:
            with self._engine.connect() as connection:
                found = connection.execute(self._query, {"entity": request.entity})
                rows = found.mappings().fetchmany(2)
        except self._errors as error:
            # The cause alone: the text of SQLAlchemy's own error repeats the query and its parameters.
            cause = getattr(error, "orig", None) or error
            raise SourceError(f"Source {self.name!r}: {cause}") from error
        if len(rows) != 1:
            raise SourceError(
                f"The query of source {self.name!r} gives {'no row' if not rows else 'several rows'} for entity "
                f"{request.entity!r}.",
                paid=False,
                final=True,
                healthy=True,
            )
        names = {str(column): column for column in request.columns}
        return {names[name]: value for name, value in rows[0].items() if name in names}

    def close(self) -> None:
        """Give back the connections of an engine made here."""
        if self._own:
            self._engine.dispose()
