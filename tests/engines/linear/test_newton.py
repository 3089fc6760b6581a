import numpy as np
import pytest

from sparing.engines.linear.columns import Columns
from sparing.engines.linear.losses import Logistic, Softmax
from sparing.engines.linear.newton import NewtonSteps

from .problems import make, singles


def steps_of(n_classes, price=0.01):
    Z, y, q, _ = make(n=120, n_classes=n_classes)
    weight = np.full(120, 1 / 120)
    gate = Logistic(q[None], weight[None])
    cheap = (
        Logistic((y == 1)[None].astype(float), weight[None])
        if n_classes == 2
        else Softmax(y, n_classes, weight)
    )
    design = Columns(Z, np.arange(4))
    ridge = np.full((5, 1), 1e-4)
    steps = NewtonSteps(design, [cheap, gate], singles(4, price).with_free_rows(1), ridge)
    W = np.zeros((5, cheap.width + 1))
    return steps, steps.at(W, design.scores(W))


def total(steps, point):
    return point.smooth + steps.penalty.value(point.W)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_falls_with_every_step(n_classes):
    steps, point = steps_of(n_classes)
    values, model = [total(steps, point)], None
    for _ in range(6):
        point, model, _ = steps.run(point, model, 1e-9, 1)
        values.append(total(steps, point))
    assert values[1] < values[0]
    assert (np.diff(values) <= 1e-14).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_stops_where_nothing_is_violated(n_classes):
    steps, point = steps_of(n_classes)
    point, _, n_iter = steps.run(point, None, 1e-8, 100)
    assert steps.penalty.violation(point.W, point.gradient) <= 1e-8
    assert n_iter < 30
    assert steps.run(point, None, 1e-8, 100)[2] == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_a_point_says_of_itself_is_what_its_coefficients_give(n_classes):
    steps, point = steps_of(n_classes)
    point, _, _ = steps.run(point, None, 1e-4, 100)
    again = steps.at(point.W, steps.design.scores(point.W))
    assert np.allclose(again.scores, point.scores, atol=1e-12)
    assert np.allclose(again.gradient, point.gradient, atol=1e-12)
    assert again.smooth == pytest.approx(point.smooth, rel=1e-12)
