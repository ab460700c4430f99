"""Test that several processes can write to the folder of a layer cache, and that
nothing is lost but time if it cannot be written."""

import os
import time

import pytest
from helpers.forks import fork, wait
from helpers.layer_caches import found, key, layers, make_cache
from thinc.api import NumpyOps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("inherited", [False, True])
def test_processes_can_write_to_one_folder(tmp_path, inherited):
    """Also if they have inherited a cache that has written before."""

    class SlowOps(NumpyOps):
        def to_numpy(self, data, **options):
            time.sleep(0.01)  # so that others write in the meantime
            return super().to_numpy(data, **options)

    cache = make_cache(folder=tmp_path, numbers=[1], ops=SlowOps())

    def write(number):
        mine = cache if inherited else make_cache(folder=tmp_path, ops=SlowOps())
        for shared in (2, 3):
            mine.put(key(shared), layers(shared).astype("float32"))
        mine.put(key(number), layers(number).astype("float32"))

    children = [fork(lambda number=number: write(number)) for number in range(4, 9)]
    cache.put(key(9), layers(9).astype("float32"))
    assert [wait(child) for child in children] == [0] * 5
    assert found(cache, range(12)) == [1, 9]
    assert found(make_cache(folder=tmp_path), range(12)) == [1, *range(2, 10)]


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="the layer cache cannot be written") as said:
        cache = make_cache(144, folder=tmp_path / "file" / "cache", numbers=[1, 2])
    assert len(said) == 1 and found(cache) == [1]
