"""``sparing costs``: price lists for the columns of a file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparing.cli.console import (
    AsJson,
    DataFile,
    Drop,
    Target,
    Text,
    examples,
    plain_errors,
    say,
    show,
)

if TYPE_CHECKING:
    from sparing.costs import FeatureCosts
    from sparing.tables import Labelled

_INIT_EXAMPLES = """
sparing costs init patients.csv --target sick --out costs.toml
sparing costs init loans.parquet --target default --drop id
"""


costs = typer.Typer(no_args_is_help=True, help="Price lists.", rich_markup_mode=None)


@costs.callback()
def _costs() -> None:
    """Price lists."""


@costs.command(epilog=examples(_INIT_EXAMPLES))
def init(
    data: DataFile,
    target: Target,
    out: Annotated[Path, typer.Option(help="File for the price list.")] = Path("costs.toml"),
    drop: Drop = None,
    text: Text = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a price list.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a price list for the columns of a file, every price 1, to be filled in."""
    with plain_errors():
        from sparing import FeatureCosts
        from sparing._price_list import short
        from sparing.tables import TableError, draft_price_list, read_labelled, whole_file
        from sparing.tables.price_lists import id_columns
        from sparing.tables.writing import check_apart

        check_apart(out, data)
        if out.exists() and not force:
            raise TableError(f"{out} exists: prices are not overwritten without --force.")
        rows = read_labelled(data, target, drop=drop or (), text=text or ())
        ids = id_columns(rows.X)
        with whole_file(out) as beside:
            beside.write_text(draft_price_list(rows.X, title=data.name), encoding="utf-8")
            written = FeatureCosts.from_toml(beside)
        result = {
            "out": str(out),
            "columns": len(written.columns),
            "left_out": ids,
            "shared": [str(item) for item in written.items if item not in written.columns],
        }
        options = [("--drop", name) for name in [*(drop or ()), *ids]]
        options += [("--text", name) for name in text or ()]
        more = "".join(f" {option} {shlex.quote(name)}" for option, name in options)
        if ids:
            say(
                f"sparing: note: {short(ids)}: looks like an id, so it has no price; leave it out of the fit as well "
                "(--drop), or take the comment sign away in the list."
            )
        lines = [
            f"{out}: {result['columns']} columns. Put your prices in, then:",
            f"  sparing fit {data} --target {target} --costs {out}{more} --out {data.stem}.sparing",
        ]
        show(result, "\n".join(lines), as_json)


def read_prices(path: Path | None, rows: Labelled, drop: Sequence[str] = ()) -> FeatureCosts:
    """A price list that prices the columns of a table and nothing else; prices of dropped columns are passed over.

    Raises
    ------
    ValueError
        Naming the file and the columns that are too many or too few.
    """
    from sparing import FeatureCosts
    from sparing._price_list import short

    names = [str(name) for name in rows.X.columns]
    if path is None:
        return FeatureCosts(dict.fromkeys(names, 1.0))
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: there is no such price list; `sparing costs init` writes one to fill in."
        )
    prices = _without(FeatureCosts.from_toml(path), drop, path)
    priced = list(prices.columns)
    if rows.target in priced:
        raise ValueError(
            f"{path} has a price for {rows.target!r}, which is the target: it cannot be bought. Remove it there."
        )
    unknown = [name for name in priced if name not in names]
    if unknown and priced != list(range(len(priced))):
        raise ValueError(
            f"{path} has a price for {short(unknown)}, which {rows.path} does not have; it has "
            f"{short(names)}. Remove or rename it in the price list."
        )
    missing = [name for name in names if name not in priced]
    if missing and not unknown:
        raise ValueError(
            f"{path} has no price for {short(missing)}: add it under [prices] (0 if it is free), or leave the column "
            "out with --drop."
        )
    return prices.aligned(names)


def _without(prices: FeatureCosts, drop: Sequence[str], path: Path) -> FeatureCosts:
    """A price list without the columns that are left out of the table, and a note that says so."""
    from sparing import FeatureCosts
    from sparing._price_list import short

    gone = [name for name in prices.columns if name in set(drop)]
    if not gone:
        return prices
    content = prices.to_dict()
    for name, inputs in content["derived"].items():
        needed = [one for one in inputs if one in gone]
        if needed and name not in gone:
            raise ValueError(
                f"{path} computes {name!r} from {short(needed)}, which --drop leaves out: drop {name!r} as well, or "
                "keep both."
            )
    content["prices"] = {n: price for n, price in content["prices"].items() if n not in gone}
    content["derived"] = {n: inputs for n, inputs in content["derived"].items() if n not in gone}
    shared = {
        item: {**entry, "columns": [n for n in entry["columns"] if n not in gone]}
        for item, entry in content["shared"].items()
    }
    content["shared"] = {item: entry for item, entry in shared.items() if entry["columns"]}
    say(f"sparing: note: {path} has a price for {short(gone)}, which --drop leaves out: ignored.")
    return FeatureCosts.from_dict(content)
