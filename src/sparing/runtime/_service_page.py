"""The page of a service: one file with everything in it, and the policy that lets it run and nothing else."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from importlib.resources import files

PAGE = files("sparing.runtime").joinpath("_service_page.html").read_text(encoding="utf-8")
"""The page; it holds no data and asks for it with the reader's key."""

OPEN_PAGE = PAGE.replace('<html lang="en">', '<html lang="en" data-open>', 1)
"""The same for a service without keys: it opens by itself."""


def page_policy(page: str) -> str:
    """Content security policy of a page: its own styles and scripts by their hashes, and calls to its own server.

    Examples
    --------
    >>> page_policy("<style>p {}</style><script>1</script>").split("; ")[1]
    "style-src 'sha256-SNJDlN1Iy2mnt7DOjQIyDb2LQE6O5PQiSZomcdzawQ4='"
    """
    return "; ".join(
        [
            "default-src 'none'",
            *(f"{kind}-src {' '.join(_hashes(page, kind))}" for kind in ("style", "script")),
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def _hashes(page: str, kind: str) -> list[str]:
    found = re.findall(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)
    digests = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in found]
    return [f"'sha256-{digest}'" for digest in digests] or ["'none'"]


PAGE_POLICY = page_policy(PAGE)
