"""The hosts are hosts: apart from each other, breakable, and gone without a trace."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import hosts
import pytest

SAY_NAMES = ["sh", "-c", "hostname; readlink /proc/self/ns/net; readlink /proc/self/ns/ipc; ls /sys/class/net"]


def test_hosts_have_names_networks_and_memory_of_their_own(two_hosts):
    said = [host.on(SAY_NAMES).finish().output.split() for host in two_hosts.hosts]
    assert [words[0] for words in said] == ["n1", "n2"]
    assert all(words[3:] == ["eth0", "lo"] for words in said)
    own = [os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/ipc")]
    assert len({words[1] for words in said} | {own[0]}) == 3
    assert len({words[2] for words in said} | {own[1]}) == 3
    assert two_hosts.hosts[0].on(["touch", "/dev/shm/mine"]).finish().exit_code == 0
    assert two_hosts.hosts[1].on(["test", "-e", "/dev/shm/mine"]).finish().exit_code == 1


def serve(building):
    """Answers any number of askers on n2."""
    text = "import socket; s = socket.create_server(('', 7)); print('up', flush=True)\n"
    text += "while True: c = s.accept()[0]; c.sendall(b'x'); c.close()"
    server = building.hosts[1].on([sys.executable, "-c", text])
    server.until_printed("up")


def answered(building):
    ask = "import socket; s = socket.create_connection(('n2', 7), 0.5); s.settimeout(0.5); assert s.recv(1)"
    return building.hosts[0].on([sys.executable, "-c", ask]).finish(10).exit_code == 0


def test_cables_are_cut_and_mended_and_black_holes_swallow(breakable):
    other = breakable.hosts[1]
    serve(breakable)
    assert answered(breakable)
    for begin, end in ((other.cut_cable, other.mend_cable), (other.begin_black_hole, other.end_black_hole)):
        begin()
        assert not answered(breakable)
        end()
        hosts.wait_until(lambda: answered(breakable), "the network came back")


def test_a_cut_cable_shows_at_the_card_and_a_black_hole_does_not(breakable):
    other = breakable.hosts[1]

    def carrier():
        return other.on(["cat", "/sys/class/net/eth0/carrier"]).finish().output.strip()

    other.begin_black_hole()
    assert carrier() == "1"
    other.cut_cable()
    assert carrier() == "0"


def test_loss_drops_that_share_of_packets(breakable):
    other = breakable.hosts[1]
    receive = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 9)); s.settimeout(5); n = 0\n"
    receive += "s.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)\n"  # SO_RCVBUFFORCE: room for all of them
    receive += "print('up', flush=True)\n"
    receive += "while s.recv(9) != b'end': n += 1\nprint('got', n, flush=True)"
    send = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); to = (socket.gethostbyname('n2'), 9)\n"
    send += "for _ in range(2000): s.sendto(b'x', to)\nfor _ in range(200): s.sendto(b'end', to)"
    other.lose(20)
    receiver = other.on([sys.executable, "-c", receive])
    receiver.until_printed("up")
    assert breakable.hosts[0].on([sys.executable, "-c", send]).finish().exit_code == 0
    got = int(re.search(r"got (\d+)", receiver.finish(10).output)[1])
    assert 1450 < got < 1750  # 20 % of 2,000, and eight standard deviations


def processes_of(text):
    """Machine-wide processes whose environment names `text`."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


def what_is_there():
    """Mounts, network cards, and files where hosts could leave some."""
    mounts = pathlib.Path("/proc/mounts").read_text().splitlines()
    folders = ["/sys/class/net", "/run", "/dev/shm"]
    return set(mounts) | {f"{folder}/{name}" for folder in folders for name in os.listdir(folder)}


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_nothing_is_left_when_the_test_ends(two_hosts, how, tmp_path):
    """Slurm runs a job of three processes on each host while the whole thing ends."""
    mark = f"BRANT_TEST_MARK_{how}_{os.getpid()}"
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys, time; sys.path.insert(0, {str(hosts.ROOT / 'tests' / 'support')!r}); import hosts\n"
        "with hosts.Hosts(2) as b:\n"
        "    s = hosts.Slurm(b)\n"
        "    job = s.srun(['sh', '-c', 'touch /dev/shm/x; echo up; sleep 1000 & sleep 1000'], '-N2', '-n2')\n"
        "    job.until_printed('up\\nup')\n"
        "    print('up', flush=True); sys.stdin.read()\n"
    )
    before = what_is_there()
    test = subprocess.Popen(
        [sys.executable, program],
        env={**os.environ, mark: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert test.stdout.readline() == "up\n"
    assert len(processes_of(mark)) > 10
    if how == "killed":
        test.send_signal(signal.SIGKILL)
    test.stdin.close()
    test.wait(20)
    hosts.wait_until(lambda: not processes_of(mark), "the processes of the hosts ended")
    # Others may use this machine too; what they leave for a moment goes again.
    hosts.wait_until(lambda: what_is_there() <= before, "nothing is there that was not before")


def test_hosts_that_cannot_be_made_say_why(monkeypatch):
    monkeypatch.setattr(hosts.os, "geteuid", lambda: 1000)
    hosts.why_no_hosts.cache_clear()
    try:
        assert hosts.why_no_hosts() == "hosts in namespaces need root"
    finally:
        hosts.why_no_hosts.cache_clear()
