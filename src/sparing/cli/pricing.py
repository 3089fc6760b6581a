"""``sparing costs``: price lists for the columns of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparing.cli.console import AsJson, DataFile, Drop, Target, Text, examples, plain_errors, show

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
        from sparing.tables import TableError, draft_price_list, read_labelled, whole_file
        from sparing.tables.writing import check_apart

        check_apart(out, data)
        if out.exists() and not force:
            raise TableError(f"{out} exists: prices are not overwritten without --force.")
        rows = read_labelled(data, target, drop=drop or (), text=text or ())
        with whole_file(out) as beside:
            beside.write_text(draft_price_list(rows.X, title=data.name), encoding="utf-8")
            written = FeatureCosts.from_toml(beside)
        result = {
            "out": str(out),
            "columns": len(written.columns),
            "shared": [str(item) for item in written.items if item not in written.columns],
        }
        dropped = "".join(f" --drop {name}" for name in drop or ())
        lines = [
            f"{out}: {result['columns']} columns. Put your prices in, then:",
            f"  sparing fit {data} --target {target} --costs {out}{dropped} --out {data.stem}.sparing",
        ]
        show(result, "\n".join(lines), as_json)


def read_prices(path: Path | None, rows: Labelled) -> FeatureCosts:
    """A price list that prices the columns of a table and nothing else.

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
    prices = FeatureCosts.from_toml(path)
    priced = list(prices.columns)
    if rows.target in priced:
        raise ValueError(
            f"{path} has a price for {rows.target!r}, which is the target: it cannot be bought. Remove it there."
        )
    unknown = [name for name in priced if name not in names]
    if unknown and priced != list(range(len(priced))):
        raise ValueError(
            f"{path} has a price for {short(unknown)}, which {rows.path} does not have (or which is dropped); it has "
            f"{short(names)}. Remove or rename it in the price list."
        )
    missing = [name for name in names if name not in priced]
    if missing and not unknown:
        raise ValueError(
            f"{path} has no price for {short(missing)}: add it under [prices] (0 if it is free), or leave the column "
            "out with --drop."
        )
    return prices.aligned(names)
