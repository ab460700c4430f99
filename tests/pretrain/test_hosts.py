"""Pretrain on several hosts, each a network namespace, under torchrun."""

import os
import re
import signal
import sys
import time

import numpy as np
import pytest
from helpers.hosts import LINK, Network, why_none
from helpers.pretraining import load_log, run_training, write_config, write_text
from helpers.ranks import train_in_several
from safetensors.torch import load_file

pytestmark = pytest.mark.slow
WHY_NONE = why_none()
needs_hosts = pytest.mark.skipif(WHY_NONE is not None, reason=f"no hosts: {WHY_NONE}")
STEPS = 16

# Runs `spacy` under torchrun. Writes a file at each step, so that a test knows where
# the run is, and waits at a step as long as there is a file that says so.
WATCHED = """if True:
    import os, sys, time
    from pathlib import Path
    from spacy.cli import setup_cli
    import spacy_elmo.pretrain.pretraining as pretraining
    from spacy_elmo.pretrain.trainer import Trainer

    folder, version = Path(sys.argv.pop(1)), sys.argv.pop(1)
    make_step = Trainer.step
    pretraining.__version__ = version or pretraining.__version__

    def step(trainer):
        if trainer.ranks.first:
            (folder / f"at-{trainer.progress.step}").touch()
            while (folder / f"wait-{trainer.progress.step}").exists():
                time.sleep(0.02)
        return make_step(trainer)

    Trainer.step = step
    setup_cli()
"""


@pytest.fixture
def config_path(tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=60)
    return write_config(tmp_path / "config.cfg", text)


@pytest.fixture
def make_network():
    """Make networks that are gone after the test, whatever happens."""
    made = []

    def make(n_hosts):
        made.append(Network(n_hosts).__enter__())
        return made[-1]

    yield make
    for network in made:
        network.__exit__()


class Job:
    """A pretraining on the hosts of a network.

    folder (Path): The folder of the output "run" and of what the hosts print.
    settings (dict): Settings to override, for all hosts.
    """

    def __init__(self, network, config_path, folder, restarts=0, **settings):
        self.hosts = network.hosts
        self.config_path, self.folder = config_path, folder
        self.restarts, self.settings = restarts, settings
        (folder / "watched.py").write_text(WATCHED, "utf8")

    def start(self, number, version=""):
        """Start torchrun on a host.

        version (str): Another version that the package on this host shall have.
        """
        host, first = self.hosts[number], self.hosts[0]
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", len(self.hosts), "--nproc-per-node", 1]
        command += ["--rdzv-backend", "c10d", "--rdzv-id", "job"]
        command += ["--rdzv-endpoint", f"{first.address}:29400"]
        is_host = int(host is first)
        conf = f"is_host={is_host},join_timeout=180,keep_alive_interval=1,timeout=60"
        command += ["--rdzv-conf", conf, "--local-addr", host.address]
        command += ["--max-restarts", self.restarts, "--monitor-interval", 0.1]
        command += [self.folder / "watched.py", self.folder, version]
        command += ["elmo", "pretrain", self.config_path]
        command += ["--output", self.folder / "run", "--resume"]
        for name, value in self.settings.items():
            command += ["--" + name.replace("__", "."), value]
        return host.run(
            *command,
            log=self.log(number),
            GLOO_SOCKET_IFNAME=LINK,
            OMP_NUM_THREADS="1",
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",  # or no host can come back
        )

    def log(self, number):
        return self.folder / f"host-{number}.log"

    def said(self, number):
        return " ".join(self.log(number).read_text("utf8").split())

    def check_end(self, processes, code=0):
        """Wait for the processes that `start` has returned, and check how they end."""
        for number, process in enumerate(processes):
            assert process.wait(180) == code, self.said(number)

    def wait_at(self, step):
        (self.folder / f"wait-{step}").touch()

    def is_at(self, step):
        """Wait until the first process is at a step."""
        end = time.monotonic() + 120
        while not (self.folder / f"at-{step}").exists():
            assert time.monotonic() < end, self.said(0)
            time.sleep(0.02)

    def go_on(self, step):
        (self.folder / f"wait-{step}").unlink()


def losses(folder):
    rows = load_log(folder / "log.jsonl")
    found = [[r["forward"], r["backward"]] for r in rows if r["type"] == "evaluation"]
    steps = [row for row in rows if row["type"] == "step"]
    return found + [[row["forward_loss"], row["backward_loss"]] for row in steps]


def weights(folder):
    return load_file(folder / "model-last" / "weights.safetensors")


def assert_equal_weights(first, second):
    assert first.keys() == second.keys()
    for name, weight in first.items():
        assert np.array_equal(weight, second[name]), name


@needs_hosts
@pytest.mark.parametrize("n_hosts", [2, 3])
def test_hosts_of_which_one_is_slow_are_one_process_with_the_whole_batch(
    n_hosts, make_network, config_path, tmp_path
):
    settings = {"training__dropout": 0.0, "training__max_steps": 10}
    settings["training__eval_frequency"] = 3
    job = Job(make_network(n_hosts), config_path, tmp_path, **settings)
    job.wait_at(5)
    processes = [job.start(number) for number in range(n_hosts)]
    job.is_at(5)
    slow = job.hosts[-1].pids()  # the last host does nothing for two seconds
    for pid in slow:
        os.kill(pid, signal.SIGSTOP)
    job.go_on(5)
    time.sleep(2)
    for pid in slow:
        os.kill(pid, signal.SIGCONT)
    job.check_end(processes)
    settings["training__batch_size"] = 4 * n_hosts
    run_training(config_path, tmp_path / "one", **settings)
    found, expected = losses(tmp_path / "run"), losses(tmp_path / "one")
    assert len(found) > 4 and np.allclose(found, expected, rtol=1e-4)


@needs_hosts
def test_a_host_that_was_cut_off_comes_back(make_network, config_path, tmp_path):
    settings = {"training__max_steps": STEPS}
    network = make_network(2)
    job = Job(network, config_path, tmp_path, restarts=3, **settings)
    job.wait_at(10)
    stays, _ = job.start(0), job.start(1)
    job.is_at(10)
    network.hosts[1].cut_off()
    job.go_on(10)
    (tmp_path / "at-8").unlink()
    time.sleep(3)
    network.hosts[1].kill()
    network.hosts[1].plug_in()
    back = job.start(1)
    job.check_end([stays, back])
    assert (tmp_path / "at-8").exists()  # both went on from the last checkpoint
    train_in_several(2, config_path, tmp_path / "whole", **settings)
    assert_equal_weights(weights(tmp_path / "run"), weights(tmp_path / "whole"))


@needs_hosts
def test_a_host_with_another_version_is_refused(make_network, config_path, tmp_path):
    job = Job(make_network(2), config_path, tmp_path)
    job.check_end([job.start(0), job.start(1, version="0.0.9")], code=1)
    for number in (0, 1):
        said = re.search("process 1 on .*?, as process 0 on", job.said(number))
        assert "version of spacy-elmo = 0.0.9; expected 0." in said.group()
    assert not (tmp_path / "run").exists()
