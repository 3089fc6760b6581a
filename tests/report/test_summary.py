import json

import numpy as np
import pytest

from handmade import table, two_stages
from report.models import frontier_of, learnt, three_stages
from sparing import Guarantee, certify
from sparing.frontier import Frontier, stage_alone
from sparing.metrics import bootstrap_interval
from sparing.report import summarise
from sparing.runtime import load, save

X, Y = table(300, seed=1)


@pytest.mark.parametrize("accounting", ["stage", "path"])
def test_every_part_tells_the_same_story(accounting):
    system = three_stages(accounting=accounting)
    summary = summarise(system, X, Y)
    costs, right = system.acquisition_cost(X), system.predict(X) == Y
    head, stages = summary["headline"], summary["stages"]
    assert head["cost"]["value"] == pytest.approx(costs.mean())
    assert head["score"]["value"] == pytest.approx(right.mean())
    assert sum(stage["answered"] for stage in stages) == pytest.approx(1)
    assert sum(s["answered"] * s["mean_cost"] for s in stages) == pytest.approx(costs.mean())
    assert sum(s["answered"] * s["right"] for s in stages) == pytest.approx(right.mean())
    # Without prices of calls everything paid was paid for items.
    assert sum(item["mean_cost"] for item in summary["items"]) == pytest.approx(costs.mean())
    for segment in summary["segments"]:
        groups = segment["groups"]
        assert sum(group["n"] for group in groups) == len(Y)
        assert sum(g["n"] * g["mean_cost"] for g in groups) == pytest.approx(costs.sum())
        assert sum(g["n"] * g["right"] for g in groups) == pytest.approx(right.sum())
    assert [c["n"] for c in summary["calibration"]] == [s["n"] for s in stages]
    chosen = summary["frontier"]["systems"][summary["frontier"]["chosen"]]
    assert chosen["cost"] == head["cost"]["value"]
    assert [s["share"] for s in chosen["stages"]] == [s["answered"] for s in stages]
    assert summary["data"]["n_rows"] == len(Y)
    assert sum(label["n"] for label in summary["data"]["classes"]) == len(Y)


def test_it_is_plain_data():
    system = two_stages(np.inf)
    summary = summarise(system, X, Y, examples=3)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["stages"][0]["threshold"] == "inf"
    assert summarise(system, X, Y, examples=3) == summary


def test_loss_and_saving_are_against_the_full_model_with_paired_intervals():
    system = two_stages()
    full = stage_alone(system)
    head = summarise(system, X, Y)["headline"]
    costs = system.acquisition_cost(X)
    assert head["saving"]["value"] == pytest.approx(1 - costs.mean() / full.acquisition_cost(X)[0])
    right, full_right = system.predict(X) == Y, full.predict(X) == Y
    assert head["loss"]["value"] == pytest.approx(full_right.mean() - right.mean())
    paired = bootstrap_interval(full_right, other=right, random_state=0)
    assert head["loss"]["low"] == pytest.approx(paired.low, abs=0.01)
    assert head["loss"]["high"] == pytest.approx(paired.high, abs=0.01)
    for name in ("score", "cost", "loss", "saving"):
        assert head[name]["low"] <= head[name]["value"] <= head[name]["high"]


def test_one_stage_alone_has_nothing_to_save():
    system = stage_alone(two_stages(), 0)
    summary = summarise(system, X, Y)
    assert summary["headline"]["full"] is None
    assert summary["headline"]["saving"] is None
    assert len(summary["frontier"]["systems"]) == 1


def test_a_full_model_that_costs_nothing_has_nothing_to_save():
    summary = summarise(two_stages(prices=(0, 0, 0)), X, Y)
    assert summary["headline"]["saving"] is None
    assert summary["headline"]["full"]["cost"] == 0


# -- where the model comes from ------------------------------------------------------------------------


def test_a_file_and_the_classifier_in_it_give_the_same_numbers(tmp_path):
    clf, rows, y = learnt()
    save(clf, tmp_path / "clf.sparing", metadata={"who": "lab 3"})
    bundle = load(tmp_path / "clf.sparing")
    from_file, direct = summarise(bundle, rows, y), summarise(clf, rows, y)
    for part in ("headline", "stages", "items", "segments", "calibration", "data", "frontier"):
        assert from_file[part] == direct[part]
    groups = {group["name"]: group["entries"] for group in from_file["settings"]}
    assert {"name": "who", "value": "lab 3"} in groups["Notes in the file"]
    assert groups["File"][0] == {"name": "digest", "value": bundle.digest}


def test_a_stored_frontier_and_certificate_are_found(tmp_path):
    clf, rows, y = learnt()
    X_more, y_more = table(400, seed=9)
    like = type(rows)(X_more, columns=list(rows.columns))
    known = Frontier.evaluate(
        [clf.system_.with_thresholds(t) for t in (-9, -1, 0, 1, 9)], like, y_more
    )
    system, certificate, _ = certify(known, like, y_more, Guarantee(tolerance=0.2))
    save(system, tmp_path / "clf.sparing", frontier=known.pareto(), certificate=certificate)
    summary = summarise(load(tmp_path / "clf.sparing"), rows, y)
    assert len(summary["frontier"]["systems"]) == len(known.pareto())
    told = summary["certificate"]
    assert told["of_this_system"]
    assert not told["on_these_rows"]
    assert told["promises"][0]["sentence"] == "accuracy at most 0.2 below the full model's"
    assert told["promises"][0]["bound"] == certificate.promises[0].bound
    assert summarise(load(tmp_path / "clf.sparing"), like, y_more)["certificate"]["on_these_rows"]


def test_a_certificate_of_another_system_is_noticed():
    known = frontier_of(two_stages())
    X_more, y_more = table(400, seed=9)
    system, certificate, _ = certify(known, X_more, y_more, Guarantee(tolerance=0.2))

    class Model:
        def __init__(self, system):
            self.system, self.certificate = system, certificate

    assert summarise(Model(system), X, Y)["certificate"]["of_this_system"]
    assert not summarise(Model(two_stages(-0.123)), X, Y)["certificate"]["of_this_system"]


def test_a_certificate_of_somebody_elses_making_is_shown_as_it_is():
    class Model:
        system, certificate = two_stages(), {"signed": "by hand"}

    told = summarise(Model(), X, Y)["certificate"]
    assert not told["own"]
    assert json.loads(told["content"]) == {"signed": "by hand"}


# -- rows ----------------------------------------------------------------------------------------------


def test_no_row_is_shown_unasked():
    clf, rows, y = learnt()
    summary = summarise(clf, rows, y)
    assert summary["examples"] == []
    text = json.dumps(summary)
    assert not any(str(value) in text for value in rows.to_numpy().ravel())


def test_examples_show_what_was_bought_and_nothing_else():
    clf, rows, y = learnt()
    examples = summarise(clf, rows, y, examples=40)["examples"]
    assert len({example["row"] for example in examples}) == 40
    mask, costs = clf.acquisition_mask(rows), clf.acquisition_cost(rows)
    for example in examples:
        row = example["row"]
        bought = rows.columns[mask[row]]
        assert example["values"] == {name: str(float(rows[name].iloc[row])) for name in bought}
        assert example["cost"] == pytest.approx(costs[row])
        assert example["truth"] == str(y[row])
    assert len(summarise(clf, rows, y, examples=10**6)["examples"]) == len(y)
    with pytest.raises(ValueError, match="examples is a number of rows, not -1"):
        summarise(clf, rows, y, examples=-1)


def test_rows_must_fit():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        summarise(two_stages(), X, Y[:-1])
    with pytest.raises(ValueError, match="no rows to report on"):
        summarise(two_stages(), X[:0], Y[:0])
    summary = summarise(two_stages(), X.tolist(), Y.tolist())
    assert summary["headline"] == summarise(two_stages(), X, Y)["headline"]


def test_polars_rows_give_the_same_numbers():
    import polars

    clf, rows, y = learnt()
    frame = polars.DataFrame({name: rows[name].to_numpy() for name in rows.columns})
    assert summarise(clf, frame, y, segments="a") == summarise(clf, rows, y, segments="a")
