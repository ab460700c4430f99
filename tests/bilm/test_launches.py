"""Count the launches, waits and copies of a batch on a GPU; benchmarks/launches.py says
how.

docs/gpu.md has the same numbers. Whoever needs fewer lowers them here and there."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "launches.py"
SPEC = importlib.util.spec_from_file_location("launches", PATH)
launches = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(launches)

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of Fake")

# Launches in all, launches of one token step more, waits, and bytes to the host. In
# training, the host waits for the norm of the gradients and for two losses: 12 bytes.
LIMITS = {
    "bundled": {"inference": (606, 22, 0, 0), "training": (1367, 40, 2, 12)},
    "original": {"inference": (630, 22, 0, 0), "training": (1320, 36, 2, 12)},
}


@pytest.mark.slow
@pytest.mark.parametrize("size", LIMITS)
def test_a_batch_launches_less_than_half_as_many_kernels_as_before(size):
    for part, found in launches.measure(size).items():
        limits, before = LIMITS[size][part], launches.BEFORE[size][part]
        assert all(x <= limit for x, limit in zip(found, limits, strict=True)), found
        assert 2 * found[0] < before[0] and 2 * found[1] < before[1]
