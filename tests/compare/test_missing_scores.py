"""Compare pipelines some of whose scores are missing."""

import pytest
from helpers.comparing import compare, load_runs

from spacy_elmo.compare.jobs import JOBS

FEW = {"variants": ["baseline", "last"], "seeds": [3, 5], "shares": [1.0]}


def invent_scores(monkeypatch, scores, test_scores):
    result = {"scores": scores, "test_scores": test_scores, "mixes": [], "seconds": 1.0}
    monkeypatch.setitem(JOBS, "train", lambda **arguments: result)
    monkeypatch.setitem(JOBS, "layers", lambda **arguments: 0)


def test_test_data_may_lack_annotations(data, in_process, tmp_path, monkeypatch):
    invent_scores(monkeypatch, {"ents_f": 1.0, "tag_acc": 0.5}, {"tag_acc": 0.25})
    table = compare(data, tmp_path, FEW)
    assert table["metrics"] == ["tag_acc", "ents_f"]
    for variant in table["variants"]:
        assert variant["scores"].keys() == {"tag_acc", "ents_f"}
        assert variant["test_scores"].keys() == {"tag_acc"}
        assert variant["error_reduction"]["ents_f"] is None  # no errors to reduce
    markdown = (tmp_path / "compare.md").read_text("utf8")
    assert "25.00 ± 0.00" in markdown.split("## Test data")[1]


def test_scores_that_are_not_compared_are_an_error(
    data, in_process, tmp_path, monkeypatch
):
    invent_scores(monkeypatch, {"token_acc": 1.0}, None)
    with pytest.raises(
        ValueError, match="dev.spacy: found none of the .* Tag accuracy"
    ):
        compare(data, tmp_path, FEW)
    assert len(load_runs(tmp_path)) == 1  # the other trainings have not begun
