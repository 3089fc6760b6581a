import json


def test_the_demo_prints_what_the_function_gives(run, monkeypatch, tmp_path):
    asked = {}

    def run_demo(out, *, random_state):
        asked.update(out=out, random_state=random_state)
        return {"rows": []}

    monkeypatch.setattr("sparing.demo.run_demo", run_demo)
    monkeypatch.setattr("sparing.demo.demo_text", lambda result: f"for people: {result}")
    outcome = run("demo", "--out", tmp_path, "--seed", 3, "--json")
    assert json.loads(outcome.stdout) == {"rows": []}
    assert asked == {"out": tmp_path, "random_state": 3}
    assert run("demo").stdout == "for people: {'rows': []}\n"


def test_a_seed_that_is_none_is_refused(run):
    outcome = run("demo", "--seed", -1)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("sparing: --seed is -1: give a whole number")
