"""Write the demo's result into the README and its picture into docs/images: run by ``make readme``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from sparing.demo import demo_text, run_demo

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "docs" / "demo.json"
START, END = "<!-- demo: written by `make readme` -->\n", "<!-- /demo -->"


def block(result: dict) -> str:
    """The lines between the markers."""
    patients = result["n_learn"] + result["n_report"]
    head = f"What `make demo` finds on the hypothyroid data ({patients} patients, prices of Turney 1995):"
    table = demo_text(result).split("\nRaced:")[0].rstrip()
    return f"{head}\n\n```\n{table}\n```\n"


def with_block(text: str, result: dict) -> str:
    """The README with the demo's result between its markers."""
    before, rest = text.split(START)
    return before + START + block(result) + END + rest.split(END)[1]


def main() -> None:
    """Run the demo and write what it says."""
    with TemporaryDirectory() as folder:
        result = run_demo(folder)
        shutil.copy(result["plot"], ROOT / "docs" / "images" / "hypothyroid.png")
    result |= {"plot": "docs/images/hypothyroid.png", "seconds": round(result["seconds"], 1)}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    readme = ROOT / "README.md"
    readme.write_text(with_block(readme.read_text(), result))


if __name__ == "__main__":
    main()
