# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: each has a network namespace, a name and an address of its own, and the network between them has
a delay and loses packets.  Root and /dev/net/tun are needed.

The frames of all hosts pass through a switch in this process (one TAP device for each host), so that the kernel needs no
support for delays (netem), and a host can be unplugged at any instant.
"""
import ctypes, fcntl, heapq, os, random, select, shutil, struct, subprocess, threading, time

from ranks import kill

TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454ca, 0x2, 0x1000, 0x40000000
FRAME_BYTES = 65536


def why_not():
    """Returns the reason why this machine cannot have such hosts; None if it can."""
    if os.geteuid() != 0:
        return 'only root can make network namespaces'
    if not shutil.which('ip') or not os.path.exists('/dev/net/tun'):
        return 'the command ip (Debian: iproute2) or /dev/net/tun is missing'
    if subprocess.run(['ip', 'netns', 'add', f'leat{os.getpid()}']).returncode != 0:
        return 'network namespaces are not available here'
    subprocess.run(['ip', 'netns', 'del', f'leat{os.getpid()}'])
    return None


def enter_namespace(path):
    with open(path) as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f'cannot enter {path}')


def open_tap(namespace):
    """Opens the device `eth0` of a namespace, in which the calling thread then remains."""
    enter_namespace(f'/run/netns/{namespace}')
    device = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack('16sH22x', b'eth0', IFF_TAP | IFF_NO_PI))
    return device


class Network:
    """Hosts with the addresses 10.77.0.1, 10.77.0.2, ..."""

    def __init__(self, count, delay_s=0.0, loss=0.0, folder='/tmp'):
        self.delay_s, self.loss, self.random = delay_s, loss, random.Random(1)
        self.names = [f'leat{os.getpid()}h{i}' for i in range(1, count + 1)]
        self.addresses = [f'10.77.0.{i}' for i in range(1, count + 1)]
        self.unplugged, self.ports, self.devices, self.ends = set(), {}, [], False
        self.agent = os.path.join(folder, 'agent')
        try:
            for name, address in zip(self.names, self.addresses):
                self.add_host(name, address)
        except BaseException:
            self.close()
            raise
        self.write_agent()
        self.thread = threading.Thread(target=self.switch, daemon=True)
        self.thread.start()

    def add_host(self, name, address):
        subprocess.run(['ip', 'netns', 'add', name], check=True)
        in_thread = threading.Thread(target=lambda: self.devices.append(open_tap(name)))
        in_thread.start()  # open_tap moves its thread to the namespace
        in_thread.join()
        for command in (f'addr add {address}/24 dev eth0', 'link set eth0 mtu 9000 up', 'link set lo up'):
            subprocess.run(['ip', '-n', name, *command.split()], check=True)

    def command(self, host, words):
        """Returns the command that runs `words` on a host, by its index."""
        script = f'hostname host{host + 1}; exec "$@"'
        return ['ip', 'netns', 'exec', self.names[host], 'unshare', '--uts', 'sh', '-c', script, 'sh', *words]

    def write_agent(self):
        """Writes a program that is called like ssh: agent ADDRESS COMMAND..."""
        cases = ''.join(f'{address}) name={name}; host=host{i} ;;\n' for i, (address, name) in
                        enumerate(zip(self.addresses, self.names), 1))
        with open(self.agent, 'w') as file:
            file.write('#!/bin/sh\naddress=$1\nshift\ncase $address in\n' + cases + 'esac\n'
                       'exec ip netns exec $name unshare --uts sh -c "hostname $host; $*"\n')
        os.chmod(self.agent, 0o755)

    def unplug(self, host):
        self.unplugged.add(host)

    def forward(self, port, frame, due, queue):
        self.ports[frame[6:12]] = port
        known = self.ports.get(frame[0:6])
        targets = [known] if known is not None else [i for i in range(len(self.devices)) if i != port]
        for target in targets:
            if self.unplugged & {port, target} or self.random.random() < self.loss:
                continue
            heapq.heappush(queue, (due, self.sent, target, frame))
            self.sent += 1

    def switch(self):
        """Reads the frames of all hosts, and writes each to its destination after the delay."""
        queue, self.sent = [], 0
        while not self.ends:
            wait = max(0, queue[0][0] - time.monotonic()) if queue else 0.1
            for device in select.select(self.devices, [], [], wait)[0]:
                self.forward(self.devices.index(device), os.read(device, FRAME_BYTES),
                             time.monotonic() + self.delay_s, queue)
            while queue and queue[0][0] <= time.monotonic():
                _, _, target, frame = heapq.heappop(queue)
                try:
                    os.write(self.devices[target], frame)
                except OSError:
                    pass  # a full queue or a host without an address loses the frame

    def close(self):
        self.ends = True
        if hasattr(self, 'thread'):
            self.thread.join()
        for device in self.devices:
            os.close(device)
        for name in self.names:
            left = subprocess.run(['ip', 'netns', 'pids', name], capture_output=True, text=True).stdout.split()
            for process in left:
                kill(int(process))
            subprocess.run(['ip', 'netns', 'del', name], stderr=subprocess.DEVNULL)
