"""The trials and the damage that other tests in this folder use."""

import json

from helpers.fuzzing import Fuzz, damage_file, mutate

CONTENTS = bytes(range(256)) * 40


def test_the_same_seed_gives_the_same_damage():
    first = [mutate(CONTENTS, rng) for rng in Fuzz("7", 0).trials(40)]
    assert first == [mutate(CONTENTS, rng) for rng in Fuzz("7", 0).trials(40)]
    assert first != [mutate(CONTENTS, rng) for rng in Fuzz("8", 0).trials(40)]
    assert sum(contents != CONTENTS for contents in first) > 30


def test_one_trial_can_be_repeated():
    every = [mutate(CONTENTS, rng) for rng in Fuzz("7", 0).trials(40)]
    for given in ("7/23", "7/0"):
        fuzz = Fuzz(given, 0)
        (again,) = [mutate(CONTENTS, rng) for rng in fuzz.trials(40)]
        assert again == every[int(given[2:])]
        assert str(fuzz).endswith(f"--fuzz-seed {given}")


def test_trials_go_on_for_as_long_as_is_asked_for():
    assert sum(1 for _ in Fuzz("7", 0.05).trials(1)) > 1


def test_json_is_damaged_by_value(tmp_path):
    path = tmp_path / "file.json"
    found = set()
    for rng in Fuzz("1", 0).trials(60):
        path.write_text('{"a": [1, {"b": 2}], "c": "text"}')
        damage_file(path, rng)
        found.add(path.read_bytes())
    parsed = []
    for contents in found:
        try:
            parsed.append(json.loads(contents))
        except ValueError:
            pass
    assert len(parsed) > 10
    assert len(found) > 40
