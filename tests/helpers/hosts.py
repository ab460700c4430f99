"""Hosts on this machine: network namespaces, each with an address of its own, that a
bridge connects."""

import os
import secrets
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

LINK = "eth0"


def ip(*words):
    """Run the command `ip`. If it fails, raise OSError with its message."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Host:
    """A network namespace.

    name (str): Its name, for the command `ip`.
    address (str): Its address.
    cable (str): The other end of its link, which is plugged into the bridge.
    """

    def __init__(self, network, number):
        self.name = f"{network}h{number}"
        self.address = f"10.77.0.{number + 1}"
        self.cable = f"{network}c{number}"
        self.processes = []

    def connect(self, network):
        ip("netns", "add", self.name)
        peer = ["peer", "name", LINK, "netns", self.name]
        ip("link", "add", self.cable, "type", "veth", *peer)
        ip("link", "set", self.cable, "master", network, "up")
        ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", LINK)
        for link in ("lo", LINK):
            ip("-n", self.name, "link", "set", link, "up")
        # Linux waits a quarter of an hour before it gives up a silent connection.
        setting = Path("/proc/sys/net/ipv4/tcp_retries2")
        self.run("sh", "-c", f"echo 3 > {setting}").wait()

    def cut_off(self):
        ip("link", "set", self.cable, "down")

    def plug_in(self):
        ip("link", "set", self.cable, "up")

    def run(self, *command, log=None, **variables):
        """Start a command on this host, in a process group of its own.

        log (Path | None): The file for what it prints.
        """
        environment = {**os.environ, **variables}
        with open(log or os.devnull, "ab") as out:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *map(str, command)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def pids(self):
        """Return all processes on this host."""
        found = ["ip", "netns", "pids", self.name]
        done = subprocess.run(found, capture_output=True, text=True)
        return [int(pid) for pid in done.stdout.split()]

    def kill(self):
        """Kill all processes on this host, as if its power had failed."""
        while pids := self.pids():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.processes:
                process.wait()

    def remove(self):
        self.kill()
        for words in (["link", "del", self.cable], ["netns", "del", self.name]):
            with suppress(OSError):
                ip(*words)


class Network:
    """Hosts that a bridge connects, to be used in a `with` statement. OSError says why
    they cannot be made.

    hosts (list[Host]): The hosts.
    """

    def __init__(self, n_hosts):
        self.name = f"e{secrets.token_hex(3)}"  # names of links are short
        self.hosts = [Host(self.name, number) for number in range(n_hosts)]

    def __enter__(self):
        try:
            ip("link", "add", self.name, "type", "bridge")
            ip("link", "set", self.name, "up")
            for host in self.hosts:
                host.connect(self.name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        for host in self.hosts:
            host.remove()
        with suppress(OSError):
            ip("link", "del", self.name)


def why_none():
    """Return why this machine cannot have such hosts; None if it can."""
    try:
        with Network(1):
            return None
    except OSError as error:
        return str(error)
