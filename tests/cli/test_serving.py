import sys


def test_serve_hands_everything_over(run, fitted, monkeypatch, tmp_path):
    asked = {}
    monkeypatch.setattr(
        "sparing.runtime.service.serve", lambda path, **s: asked.update(s, path=path)
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    outcome = run(
        *("serve", fitted[1], "--port", 8123, "--no-keys", "--sources", "clinic:sources"),
        *("--ledger", tmp_path / "books.db", "--digest", "abc"),
    )
    assert outcome.exit_code == 0
    assert asked == {
        "path": fitted[1],
        "host": "127.0.0.1",
        "port": 8123,
        "sources": "clinic:sources",
        "ledger": tmp_path / "books.db",
        "keys_file": None,
        "no_keys": True,
        "digest": "abc",
        "log_level": "info",
    }


def test_serving_without_keys_is_refused(run, fitted, monkeypatch):
    monkeypatch.delenv("SPARING_KEYS", raising=False)
    for options in ([], ["--no-keys", "--host", "0.0.0.0"]):
        outcome = run("serve", fitted[1], *options)
        assert outcome.exit_code == 2
        assert "--no-keys" in outcome.stderr
        assert "--keys-file" in outcome.stderr
        assert outcome.stderr.count("\n") == 1


def test_keys_that_cannot_be_used_are_named_by_their_place(run, fitted, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARING_KEYS", "too-short")
    keys = tmp_path / "keys.txt"
    for content, options, says in (
        (None, [], "SPARING_KEYS: a key has 9 characters and needs at least 16"),
        ("# none\n", ["--keys-file", keys], "keys.txt holds no key: write `name: key`"),
        ("shop: short\n", ["--keys-file", keys], "keys.txt: a key has 5 characters"),
        ("shop: short\n", ["--keys-file", keys, "--no-keys"], "choose one"),
    ):
        if content is not None:
            keys.write_text(content)
        outcome = run("serve", fitted[1], *options)
        assert outcome.exit_code == 2
        assert says in outcome.stderr
        assert "secrets." not in outcome.stderr
        assert outcome.stderr.count("\n") == 1


def test_sources_that_are_not_there_are_named(run, fitted, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "half.py").write_text("import nowhere_to_be_found\n")
    for sources, code, says in (
        ("shops", 2, "write module:name"),
        ("shops:all", 2, "is shops.py in this folder, or installed?"),
        ("half:all", 1, "nowhere_to_be_found"),
    ):
        outcome = run("serve", fitted[1], "--no-keys", "--sources", sources)
        assert outcome.exit_code == code
        assert says in outcome.stderr
        assert outcome.stderr.count("\n") == 1


def test_a_file_that_is_no_model_is_not_served(run, tmp_path):
    (tmp_path / "m.sparing").write_bytes(b"no")
    outcome = run("serve", tmp_path / "m.sparing", "--no-keys")
    assert outcome.exit_code == 2
    assert "m.sparing" in outcome.stderr
