"""A network between hosts on this machine whose packets arrive late. `tc` could delay
them too, but not every kernel has its netem; this needs only TUN devices."""

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
MTU = 60000  # large packets, since each costs some Python


def open_device(host: str, address: str, rate: str) -> int:
    """Make a network device in a namespace, and return the handle of its packets.

    rate (str): The rate at which it sends, as `tc` reads it; "" for any.
    """
    with open(f"/run/netns/{host}") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {host}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22s", b"eth0", IFF_TUN | IFF_NO_PI, b"")
    fcntl.ioctl(device, TUNSETIFF, request)
    commands = [
        f"ip address add {address}/24 dev eth0",
        f"ip link set eth0 mtu {MTU} txqueuelen 1000 up",
        "ip link set lo up",
    ]
    if rate:
        commands.append(
            f"tc qdisc add dev eth0 root tbf rate {rate} burst 256kb latency 200ms"
        )
    for command in commands:
        subprocess.run(command.split(), check=True)
    return device


def carry(devices: dict[bytes, int], delay: float) -> None:
    """Carry packets to their hosts for ever.

    devices (dict[bytes, int]): The handle of each host, by its address.
    delay (float): The seconds that a packet takes.
    """
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        until = waiting[0][0] - time.monotonic() if waiting else 1.0
        ready, _, _ = select.select(list(devices.values()), [], [], max(0.0, until))
        for device in ready:
            packet = os.read(device, MTU + 100)
            target = devices.get(packet[16:20]) if packet[0] >> 4 == 4 else None
            if target is not None:
                number += 1
                arrival = time.monotonic() + delay
                heapq.heappush(waiting, (arrival, number, target, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(waiting[0][2], heapq.heappop(waiting)[3])


def main() -> None:
    """Read DELAY RATE and a NAME=ADDRESS for each host from the command line, and print
    a line when the network is ready."""
    delay, rate, *hosts = sys.argv[1:]
    devices = {}
    for host in hosts:
        name, address = host.split("=")
        parts = bytes(int(part) for part in address.split("."))
        devices[parts] = open_device(name, address, rate)
    print("ready", flush=True)
    carry(devices, float(delay))


if __name__ == "__main__":
    main()
