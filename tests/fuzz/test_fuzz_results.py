"""Damaged result files: the report shows them or names them as skipped."""

from contextlib import suppress

import pytest
from helpers.fuzzing import mutate, mutate_json
from helpers.report_samples import write_all

from spacy_elmo.report.load import load_results
from spacy_elmo.report.page import make_page


def mutate_result(rng, path):
    """Damage a result file."""
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        lines = data.splitlines()
        at = rng.randrange(len(lines))
        lines[at] = mutate_json(lines[at], rng)
        data = b"\n".join(lines)
        path.write_bytes(mutate(data, rng) if rng.random() < 0.2 else data)
    else:
        for _ in range(rng.choice((1, 1, 2))):
            with suppress(ValueError):  # no JSON any more
                data = mutate_json(data, rng)
        path.write_bytes(data)


@pytest.mark.slow
def test_any_results(fuzz, tmp_path):
    folder = write_all(tmp_path / "results")
    files = sorted(p for p in folder.rglob("*.json*") if p.is_file())
    whole = {path: path.read_bytes() for path in files}

    for rng in fuzz.trials(10):
        chosen = rng.sample(files, rng.choice((1, 1, 2, len(files))))
        for path in chosen:
            mutate_result(rng, path)
        results = load_results(folder)
        page = make_page(results, "a title", "")
        page.encode()
        for skipped in results.skipped:
            assert "\n" not in skipped
        for path in chosen:
            path.write_bytes(whole[path])
