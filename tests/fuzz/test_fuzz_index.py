"""A damaged index is not used, and no index raises an error."""

import json
import shutil
from contextlib import suppress

import numpy as np
from helpers.analysis import TOKENIZED, make_bilm, make_index, random_sentences
from helpers.fuzzing import mutate, mutate_json

from spacy_elmo.analysis.nearest_contexts import find_neighbors
from spacy_elmo.analysis.neighbor_queries import Query
from spacy_elmo.analysis.token_index import index_key, open_index
from spacy_elmo.fingerprints import checksum_file, fingerprint_data


def test_any_damage_of_an_index_is_noticed(fuzz, tmp_path):
    folder, key, _ = make(tmp_path)

    for rng in fuzz.trials(20):
        path = rng.choice(sorted(folder.iterdir()))
        data = path.read_bytes()
        changed = mutate(data, rng)
        path.write_bytes(changed)
        index = open_index(folder, key)
        if path.name == "index.json" and index is not None:  # only its spaces changed
            assert json.loads(changed) == json.loads(data)
        else:
            assert index is None or changed == data
        path.write_bytes(data)


def test_any_index_with_right_checksums(fuzz, tmp_path):
    folder, key, bilm = make(tmp_path)
    target = tmp_path / "copy"

    for rng in fuzz.trials(20):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
        meta = json.loads((target / "index.json").read_text())
        path = rng.choice(sorted(target.iterdir()))
        if path.suffix == ".json":
            path.write_bytes(mutate_json(path.read_bytes(), rng))
            with suppress(ValueError):  # no JSON any more
                changed = json.loads(path.read_bytes())
                meta = changed if path.name == "index.json" else meta
        else:
            path.write_bytes(mutate(path.read_bytes(), rng))
        if isinstance(meta, dict):
            if isinstance(meta.get("checksums"), dict) and path.name != "index.json":
                meta["checksums"][path.name] = checksum_file(path)
            meta.pop("checksum", None)
            meta["checksum"] = fingerprint_data(meta)
            (target / "index.json").write_text(json.dumps(meta))
        index = open_index(target, key)
        if index is not None:
            query = Query(["ban", "kel"], 0)
            with np.errstate(all="ignore"):
                find_neighbors(bilm, index, [query], layers=["1"], top=3)


def make(tmp_path):
    bilm = make_bilm()
    make_index(bilm, tmp_path, random_sentences(9))
    key = index_key(bilm, str(tmp_path / "text.txt"), TOKENIZED)
    return tmp_path / "index", key, bilm
