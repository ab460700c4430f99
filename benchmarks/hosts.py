"""Measure what several processes exchange in a training step, on one machine and over a
slow network. See README.md in this folder."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pretraining_systems import Ours, Plain, Setting
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from spacy_elmo.pretrain import gradient_exchange, trainer
from spacy_elmo.pretrain.corpus import Corpus, build_corpus
from spacy_elmo.pretrain.gradient_exchange import GradientExchange
from spacy_elmo.text.tokenizers import Tokenization

PORT = 29411
SYSTEMS = {
    "buckets": "ours: buckets, sent while the encoder's gradients are computed",
    "single": "ours, each gradient alone, after all are computed (as before)",
    "ddp": "a plain biLM in DistributedDataParallel",
}


class Single(GradientExchange):
    """Exchanges each gradient alone, when all of them are complete."""

    def add(self, gradients: dict[str, Any]) -> None:
        size, self.ranks.size = self.ranks.size, 1
        super().add(gradients)
        self.ranks.size = size

    def finish(self) -> dict[str, Any]:
        bucket, gradient_exchange.BUCKET = gradient_exchange.BUCKET, 1
        for name in list(self.sums) if self.ranks.size > 1 else ():
            self._send([name])
            for sent in self.buckets[-1:]:
                sent.work.wait()
        gradient_exchange.BUCKET = bucket
        return super().finish()


def sent_bytes() -> int:
    """Return what this host has sent, also to itself."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[8]) for line in lines)


def make_system(
    name: str, setting: Setting, corpus: Corpus, workdir: Path
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Make a system. Return two functions: one makes a step, the other a step without
    any exchange."""
    if name == "ddp":
        plain = Plain(setting, corpus, one_window=False)
        model = DistributedDataParallel(plain.training.model)
        plain.training.model = model

        def alone() -> None:
            with model.no_sync():
                plain.step()

        return plain.step, alone
    trainer.GradientExchange = Single if name == "single" else GradientExchange
    ours = Ours(setting, corpus, workdir)
    n_processes = ours.trainer.ranks.size

    def without() -> None:
        ours.trainer.ranks.size = 1
        ours.step()
        ours.trainer.ranks.size = n_processes

    return ours.step, without


def work(args: argparse.Namespace) -> None:
    """Be one of the processes. The first one prints the seconds of steps with and
    without exchange, and the bytes that its host has sent in a step, as JSON."""
    torch.set_num_threads(args.threads)
    corpus = Corpus(args.corpus, check=False)
    setting = Setting(
        args.size, args.softmax, args.samples, batch=args.batch, window=args.window
    )
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo")
        step, alone = make_system(args.system, setting, corpus, Path(folder))
        found: dict[str, list[float]] = {"step": [], "alone": [], "bytes": []}
        for number in range(args.rounds + 1):  # the first round is not counted
            for kind, make in (("step", step), ("alone", alone)):
                dist.barrier()
                before, start = sent_bytes(), time.perf_counter()
                make()
                dist.barrier()
                if number:
                    found[kind].append(time.perf_counter() - start)
                    if kind == "step":
                        found["bytes"].append(sent_bytes() - before)
        if dist.get_rank() == 0:
            print(json.dumps(found))
        dist.barrier()


@contextmanager
def network(n_hosts: int, rate: str, delay: float) -> Iterator[list[Any]]:
    """Make hosts and a network between them."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from helpers.hosts import Host, ip

    hosts = [Host("bench", number) for number in range(n_hosts)]
    carrier = None
    try:
        for host in hosts:
            ip("netns", "add", host.name)
        script = str(Path(__file__).with_name("delayed_network.py"))
        names = [f"{host.name}={host.address}" for host in hosts]
        carrier = subprocess.Popen(
            [sys.executable, script, str(delay), rate, *names],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert carrier.stdout is not None and carrier.stdout.readline() == "ready\n"
        yield hosts
    finally:
        for host in hosts:
            host.remove()
        if carrier is not None:
            carrier.kill()
            carrier.wait()


def run_processes(
    args: argparse.Namespace, system: str, n: int, hosts: list[Any]
) -> dict[str, list[float]]:
    """Run n processes of a system, on one host or one on each host."""
    processes = []
    for rank in range(n):
        host = hosts[rank % len(hosts)]
        command = ["ip", "netns", "exec", host.name, sys.executable, __file__]
        command += ["--worker", system, *sys.argv[1:], "--corpus", str(args.corpus)]
        variables = {
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": str(PORT),
            "WORLD_SIZE": str(n),
            "RANK": str(rank),
            "GLOO_SOCKET_IFNAME": "eth0",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
        }
        processes.append(
            subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{system} with {n} processes has failed")
    found: dict[str, list[float]] = json.loads(outputs[0].splitlines()[-1])
    return found


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    places: list[tuple[str, int, int, str, float]] = [
        (f"{n} processes on one host", n, 1, "", 0.0) for n in args.processes
    ]
    if args.rate:
        title = f"2 hosts, {args.rate}, {1000 * args.delay:g} ms each way"
        places.append((title, 2, 2, args.rate, args.delay))
    results = []
    for title, n, n_hosts, rate, delay in places:
        print(f"=== {title}", flush=True)
        for system in args.systems:
            with network(n_hosts, rate, delay) as hosts:
                found = run_processes(args, system, n, hosts)
            step, alone = median(found["step"]), median(found["alone"])
            # On one host, the count has the bytes of all processes.
            sent = median(found["bytes"]) * n_hosts / n / 1e6
            print(
                f"{SYSTEMS[system]}: {sent:.1f} MB sent a step by a process; "
                f"{step:.2f} s a step, {alone:.2f} s without exchange: "
                f"{max(0.0, 1 - alone / step):.0%} of the time",
                flush=True,
            )
            results.append({"place": title, "system": system, "mb": sent, **found})
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--text", type=Path, help="the text to train on")
    add("--size", default="small")
    add("--softmax", type=int, default=200_000, help="words of the softmax")
    add("--samples", type=int, default=8192, help="0 for a full softmax")
    add("--batch", type=int, default=64, help="rows of each process")
    add("--window", type=int, default=20)
    add("--threads", type=int, default=1, help="threads of each process")
    add("--processes", type=int, nargs="*", default=[1, 2, 4], help="on one host")
    add("--rate", default="1gbit", help="of the slow network; '' leaves it out")
    add("--delay", type=float, default=0.01, help="of the slow network, in seconds")
    add("--systems", nargs="*", default=list(SYSTEMS), choices=SYSTEMS)
    add("--rounds", type=int, default=3)
    add("--json", type=Path, metavar="OUT", help="write all figures to this file")
    add("--corpus", type=Path, help=argparse.SUPPRESS)
    add("--worker", dest="system", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.system:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        args.corpus = Path(folder)
        tokenization = Tokenization("en")
        build_corpus([str(args.text)], args.corpus, tokenization=tokenization)
        results = measure(args)
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
