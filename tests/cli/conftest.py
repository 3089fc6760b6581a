"""A table with numbers, gaps and words, a price list for it, and a model fitted by the command line."""

import pytest
from clinic import PRICES, patients
from typer.testing import CliRunner

from sparing.cli import app


@pytest.fixture(scope="session")
def run():
    """Run a command in this process; the outcome has exit_code, stdout and stderr."""

    def call(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return call


@pytest.fixture
def files(tmp_path):
    """A folder with rows and prices."""
    patients().to_csv(tmp_path / "patients.csv", index=False)
    (tmp_path / "costs.toml").write_text(PRICES)
    return tmp_path


@pytest.fixture(scope="session")
def fitted(run, tmp_path_factory):
    """Outcome of a fit, and the model it wrote."""
    folder = tmp_path_factory.mktemp("fitted")
    patients().to_csv(folder / "patients.csv", index=False)
    (folder / "costs.toml").write_text(PRICES)
    model = folder / "patients.sparing"
    outcome = run(
        *("fit", folder / "patients.csv", "--target", "sick", "--costs", folder / "costs.toml"),
        *("--estimator", "logistic", "--method", "l1-gate", "--tolerance", "0.02"),
        *("--out", model, "--json"),
    )
    assert outcome.exit_code == 0, outcome.stderr
    return outcome, model


@pytest.fixture(scope="session")
def promised(run, tmp_path_factory):
    """Outcome of a fit with a guarantee, in words, and the model it wrote."""
    folder = tmp_path_factory.mktemp("promised")
    patients(600).to_csv(folder / "patients.csv", index=False)
    (folder / "costs.toml").write_text(PRICES)
    model = folder / "patients.sparing"
    outcome = run(
        *("fit", folder / "patients.csv", "--target", "sick", "--costs", folder / "costs.toml"),
        *("--estimator", "logistic", "--method", "l1-gate", "--tolerance", "0.1"),
        *("--guarantee", "0.9", "--out", model),
    )
    assert outcome.exit_code == 0, outcome.stderr
    return outcome, model
