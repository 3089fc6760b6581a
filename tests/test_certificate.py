import json

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparing._certificate import Certificate, Finding, fingerprint, plain_settings

numbers = st.floats(allow_nan=False)


def certificate(**changes):
    fields = {
        "confidence": 0.9,
        "promises": (Finding("tolerance", "accuracy", 0.01, 0.0, 0.009, 0.03, 500, "exact"),),
        "n": 500,
        "scoring": "accuracy",
        "accounting": "stage",
        "score": 0.91,
        "full_score": 0.92,
        "cost": 2.5,
        "stages": ("cheap", "full"),
        "thresholds": (0.5,),
        "stage_counts": (300, 200),
        "cost_values": (1.0, 4.75),
        "cost_counts": (300, 200),
        "settings": {"method": "adapt-gbrt", "full_rate": 0.3},
        "n_candidates": 12,
        "n_tested": 4,
        "data": "0f" * 32,
        "date": "2026-01-31",
    }
    return Certificate(**fields | changes)


@given(numbers, st.lists(numbers, max_size=3), numbers)
def test_json_gives_back_what_was_written(cost, thresholds, bound):
    promise = Finding("budget", "", 3.0, 1.0, bound, 0.01, 40, "betting")
    before = certificate(cost=cost, thresholds=tuple(thresholds), promises=(promise,))
    assert Certificate.from_json(before.to_json()) == before


def test_json_is_plain_json():
    text = certificate(thresholds=(np.inf,), full_score=np.nan).to_json()
    assert json.loads(text, parse_constant=pytest.fail)["thresholds"] == ["inf"]
    assert np.isnan(Certificate.from_json(text).full_score)


def test_settings_of_any_kind_become_plain():
    label = {"rate": np.float64(0.3), "columns": np.array([1, 2]), "model": object, "none": None}
    settings = plain_settings(label)
    assert settings["rate"] == 0.3
    assert settings["columns"] == [1, 2]
    assert isinstance(settings["model"], str)
    assert plain_settings("full model") == {"label": "full model"}
    assert plain_settings(None) == {}
    again = Certificate.from_json(certificate(settings=settings).to_json())
    assert again.settings == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "not a certificate"),
        ("[]", "not a certificate"),
        ("{}", "it has no 'format'"),
        ('{"format": 99}', "format 99"),
        ('{"format": 1, "promises": []}', "not a certificate"),
    ],
)
def test_what_is_no_certificate(text, message):
    with pytest.raises(ValueError, match=message):
        Certificate.from_json(text)


def test_it_can_be_read():
    text = repr(certificate())
    for part in (
        "confidence 0.9",
        "500 calibration rows",
        "accuracy at most 0.01 below the full model's",
        "60.0% 40.0%",
        "4 of 12",
        "2026-01-31",
        "method=adapt-gbrt",
    ):
        assert part in text


def test_fingerprints_tell_data_apart():
    X, y = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "a"])
    same = fingerprint(polars.DataFrame({"u": X[:, 0], "v": X[:, 1]}), y)
    assert fingerprint(X, y) == same
    assert (
        len(
            {
                same,
                fingerprint(X[::-1], y),
                fingerprint(X, y[::-1] + "x"),
                fingerprint(X.T, ["a", "b"]),
            }
        )
        == 4
    )
