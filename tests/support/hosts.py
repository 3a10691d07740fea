"""Several hosts on one machine, for tests: each has a network card, a name, shared memory and processes of its own, and
a cable to a switch that can be cut.

All of them live inside one *building*: namespaces whose first process reads from a pipe that this process holds. When
that pipe closes, because the test closed it or because the test was killed, the kernel ends every process inside, and
with them go the cards, the mounts and the files, which lie in a file system of the building's own memory at /run.
Nothing is added to the machine's own network.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHERS = ROOT / ".launchers"
SWITCH_ADDRESS = "10.77.0.254"
LIMIT_S = 20.0

Command = Sequence[str | os.PathLike]


class HostsError(Exception):
    """A host could not be made, or did not do what it was told; the text has what was printed."""


def wait_until(happened: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not happened():
        if time.monotonic() > deadline:
            raise HostsError(f"{what}: not within {limit_s:g} s")
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def parent(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("PPid:")).split()[1])


@dataclasses.dataclass
class Done:
    """What a command did: how it ended and what it printed, both streams together."""

    exit_code: int
    output: str
    seconds: float


class Running:
    """A command that runs on a host, its output kept in a file that can be read meanwhile."""

    def __init__(self, command: Command, environment: dict[str, str], log: pathlib.Path) -> None:
        self.log = log
        self.begin = time.monotonic()
        with open(log, "w") as out:
            self.process = subprocess.Popen(
                [os.fspath(word) for word in command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def until_printed(self, text: str, limit_s: float = LIMIT_S) -> None:
        """Waits until the command printed `text`; fails when it ended without."""
        wait_until(lambda: text in self.output() or self.process.poll() is not None, f"'{text}'", limit_s)
        if text not in self.output():
            raise HostsError(f"ended with {self.process.returncode} before it printed '{text}':\n{self.output()}")

    def finish(self, limit_s: float = 60) -> Done:
        """Waits for the end; a command that takes longer is killed and has the exit code 124, as timeout(1) gives."""
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = 124
        return Done(128 - code if code < 0 else code, self.output(), time.monotonic() - self.begin)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def clean_environment() -> dict[str, str]:
    """What a user has who logs in: none of the variables of brant, UCX, MPI or Slurm that this process has."""
    dropped = ("BRANT_", "UCX_", "PMI", "OMPI_", "OPAL_", "PRTE_", "SLURM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "BRANT_CALIBRATION": "off", "PATH": f"{kept.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"}


class Host:
    """One host. Commands that run `on` it see its processes only; those that run `beside` it use its network and its
    name but see all processes of the building, which is what a launcher needs to enter the other hosts."""

    def __init__(self, building: Hosts, name: str, address: str) -> None:
        self.building, self.name, self.address = building, name, address
        keeper = f"hostname {name} && {SETUP_HOST} && echo ready && exec cat"
        unshare = "unshare --net --uts --ipc --mount --pid --fork --kill-child --propagation private"
        self.keeper = building.keep(["sh", "-c", f"exec {unshare} sh -c {shlex.quote(keeper)}"], name)
        # nsenter -> unshare -> the first process of the host
        (unshare_pid,) = children(self.keeper.pid)
        (self.pid,) = children(unshare_pid)
        names = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        self.pid_in_building = next(line for line in names if line.startswith("NSpid:")).split()[-2]

    def _entered(self, command: Command, namespaces: str) -> list[str]:
        # The folder is entered through the host's own root, where programs and their libraries are as on the machine.
        return ["nsenter", f"--target={self.pid}", *namespaces.split(), "--wd=/", "--", *map(os.fspath, command)]

    def on(self, command: Command, **environment: str) -> Running:
        return self.building.start(self._entered(command, "--net --uts --ipc --mount --pid"), self.name, environment)

    def beside(self, command: Command, **environment: str) -> Running:
        inner = ["nsenter", f"--target={self.pid_in_building}", "--net", "--uts", "--ipc", "--", *command]
        return self.building.start(self.building.entered(inner), self.name, environment)

    def processes(self, program: str) -> list[int]:
        """The machine's numbers of the processes of this host that run `program`."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ours = os.readlink(folder / "ns" / "pid") == mine
                if ours and pathlib.Path(os.readlink(folder / "exe")).name == program:
                    found.append(int(folder.name))
        return found

    def signal(self, program: str, number: signal.Signals) -> None:
        """Sends a signal to every process of `program` on this host; fails when there is none."""
        found = self.processes(program)
        if not found:
            raise HostsError(f"no process of {program} on {self.name}")
        for pid in found:
            os.kill(pid, number)
            if number == signal.SIGCONT:  # nsenter has stopped itself along with what it started
                os.kill(parent(pid), number)

    # --- The cable to the switch ---------------------------------------------------------------------------------

    def cut_cable(self) -> None:
        """Both ends notice: their cards have no carrier."""
        self.building.run_inside(["ip", "link", "set", f"to-{self.name}", "down"])

    def mend_cable(self) -> None:
        self.building.run_inside(["ip", "link", "set", f"to-{self.name}", "up"])

    def begin_black_hole(self) -> None:
        """The switch forgets the port: everything sent vanishes, and nobody is told."""
        self.building.run_inside(["ip", "link", "set", f"to-{self.name}", "nomaster"])

    def end_black_hole(self) -> None:
        self.building.run_inside(["ip", "link", "set", f"to-{self.name}", "master", "switch"])

    def lose(self, percent: int) -> None:
        """That many of hundred packets that arrive at this host are lost, by chance. 0: none any more."""
        self._nft("delete table inet loss", may_fail=True)
        if percent:
            rule = f"add rule inet loss in numgen random mod 100 < {percent} drop"
            self._nft(
                "add table inet loss; add chain inet loss in { type filter hook input priority 0; policy accept; };"
                + rule
            )

    def drop_udp(self) -> None:
        """As a firewall that lets TCP through only."""
        self._nft(
            "add table inet wall; add chain inet wall in { type filter hook input priority 0; policy accept; };"
            "add rule inet wall in meta l4proto udp drop"
        )

    def _nft(self, rules: str, *, may_fail: bool = False) -> None:
        done = self.on(["nft", rules]).finish(10)
        if done.exit_code != 0 and not may_fail:
            raise HostsError(f"nft on {self.name}: {done.output}")


# The host's own views of what the kernel keeps per network and per process. Slurm needs the control groups, which a
# fresh /sys lacks.
SETUP_HOST = (
    "mount -t proc proc /proc"
    " && mkdir -p /run/cgroup-$(hostname) /run/tmp-$(hostname)"
    " && mount --rbind /sys/fs/cgroup /run/cgroup-$(hostname)"
    " && mount -t sysfs sysfs /sys && mount --rbind /run/cgroup-$(hostname) /sys/fs/cgroup"
    " && mount -t tmpfs tmpfs /dev/shm && ip link set lo up"
)


# A stand-in for ssh: drops its options and enters the host that is named.
REMOTE_SHELL = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
name=$1; shift
case $name in
{table}
  *) echo "no host $name" >&2; exit 255 ;;
esac
export TMPDIR=/run/tmp-$name
exec nsenter --target=$pid --net --ipc --uts --mount --pid --wd=/ -- sh -c "$*"
"""

# Starts a rank of `brant run` on the host that is its turn. The socket to the launcher is inherited, so the start does
# not need the network that a test is going to break.
SPREAD = """#!/bin/sh
case $((BRANT_RANK % {count})) in
{table}
esac
exec nsenter --target=$pid --net --ipc --uts --mount --pid --wd=/ -- "$@"
"""


class Hosts:
    """A building with a switch, a control host `ctl` and hosts n1, n2, ... A context manager.

    Commands inside find the launchers of .launchers as if they were installed: the building's /usr is the machine's
    with these on top.
    """

    def __init__(self, count: int = 2) -> None:
        self._keepers: list[subprocess.Popen] = []
        self._logs = 0
        try:
            self._build(count)
        except BaseException:
            self.close()
            raise

    def _build(self, count: int) -> None:
        overlay = f"mount -t overlay overlay -o lowerdir={LAUNCHERS}/usr:/usr /usr"
        setup = f"{overlay} && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && echo ready && exec cat"
        unshare = "unshare --net --uts --ipc --mount --pid --fork --kill-child --mount-proc --propagation private"
        self.keeper = self._keep([*unshare.split(), "sh", "-c", setup], "the building")
        (self.pid,) = children(self.keeper.pid)
        self.run = pathlib.Path("/proc", str(self.pid), "root", "run")
        addresses = {f"n{i + 1}": f"10.77.0.{i + 1}" for i in range(count)}
        self._write_names({"ctl": SWITCH_ADDRESS, **addresses})
        self.run_inside(["ip", "link", "add", "switch", "type", "bridge"])
        self.run_inside(["ip", "link", "set", "switch", "up"])
        self.ctl = Host(self, "ctl", SWITCH_ADDRESS)
        self.hosts = [Host(self, name, address) for name, address in addresses.items()]
        for host in [self.ctl, *self.hosts]:
            self._connect(host)
        self._write_programs()

    def _write_names(self, addresses: dict[str, str]) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
        (self.run / "hosts").write_text("\n".join(lines) + "\n")
        self.run_inside(["mount", "--bind", "/run/hosts", "/etc/hosts"])

    def _connect(self, host: Host) -> None:
        card, port, pid = "eth0", f"to-{host.name}", host.pid_in_building
        inside = (
            f"ip link add {port} type veth peer name {card} netns {pid}"
            f" && ip link set {port} master switch && ip link set {port} up"
            f" && nsenter --target={pid} --net ip addr add {host.address}/24 dev {card}"
            f" && nsenter --target={pid} --net ip link set {card} up"
        )
        self.run_inside(["sh", "-c", inside])

    def _write_programs(self) -> None:
        table = "\n".join(f"  {host.name}) pid={host.pid_in_building} ;;" for host in self.hosts)
        self._write_program("remote-shell", REMOTE_SHELL.format(table=table))
        table = "\n".join(f"  {i}) pid={host.pid_in_building} ;;" for i, host in enumerate(self.hosts))
        self._write_program("spread", SPREAD.format(table=table, count=len(self.hosts)))

    def _write_program(self, name: str, text: str) -> None:
        (self.run / name).write_text(text)
        (self.run / name).chmod(0o755)

    # --- Commands ------------------------------------------------------------------------------------------------

    def _keep(self, command: Command, name: str) -> subprocess.Popen:
        """Starts a first process and waits until it says that it is ready; it lives while this process does."""
        process = subprocess.Popen(
            [os.fspath(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._keepers.append(process)
        said = ""
        for line in process.stdout:
            if line == "ready\n":
                return process
            said += line
        raise HostsError(f"{name} could not be made: {said.strip() or 'it ended without a word'}")

    def keep(self, command: Command, name: str) -> subprocess.Popen:
        return self._keep(self.entered(command), name)

    def entered(self, command: Command) -> list[str]:
        inside = ["nsenter", f"--target={self.pid}", "--net", "--uts", "--ipc", "--mount", "--pid", "--wd=/", "--"]
        return [*inside, *map(os.fspath, command)]

    def start(self, command: Command, name: str, environment: dict[str, str]) -> Running:
        self._logs += 1
        log = self.run / f"log-{self._logs}-{name}"
        return Running(command, {**clean_environment(), "TMPDIR": f"/run/tmp-{name}", **environment}, log)

    def run_inside(self, command: Command) -> None:
        done = subprocess.run(
            self.entered(command), stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=LIMIT_S
        )
        if done.returncode != 0:
            raise HostsError(f"{shlex.join(map(os.fspath, command))}: {done.stdout}{done.stderr}")

    def close(self) -> None:
        for keeper in self._keepers:  # the first is the building: its end is everybody's
            keeper.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                keeper.kill()
            keeper.wait()
            keeper.stdout.close()
        self._keepers.clear()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- Slurm -------------------------------------------------------------------------------------------------------

SLURM_CONF = """ClusterName=brant
SlurmctldHost=ctl({controller})
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=/run/slurm-state
SlurmdSpoolDir=/run/slurm-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdTimeout=30
SlurmctldTimeout=30
KillWait=5
ReturnToService=2
SrunPortRange=61000-61100
PartitionName=all Nodes=ALL Default=YES
"""


class Slurm:
    """A Slurm on these hosts: its controller on `ctl`, a daemon on each other host."""

    def __init__(self, building: Hosts) -> None:
        self.building = building
        self._daemons: list[Running] = []
        nodes = [
            f"NodeName={host.name} NodeHostname={host.name} NodeAddr={host.address} CPUs=4 RealMemory=4000"
            for host in building.hosts
        ]
        text = SLURM_CONF.format(controller=building.ctl.address) + "\n".join(nodes) + "\n"
        (building.run / "slurm.conf").write_text(text)
        # Servers of PMIx meet in this folder, which must be each host's own.
        (building.run / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")
        (building.run / "munge").mkdir()
        key = building.run / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        # One munge daemon serves all hosts: its socket is a file that all see.
        self._daemon(
            building.ctl,
            "munged --foreground --force --key-file=/run/munge.key --pid-file=/run/munge/munged.pid "
            "--seed-file=/run/munge.seed --log-file=/run/munge.log --socket=/run/munge/munge.socket.2",
        )
        self._wait(building.run.joinpath("munge", "munge.socket.2").exists, "munge")
        self._daemon(building.ctl, "slurmctld -D -c")
        for host in building.hosts:
            self._daemon(host, f"slurmd -D -N {host.name}")
        self._wait(self._all_idle, "the hosts of Slurm")

    def _daemon(self, host: Host, command: str) -> None:
        self._daemons.append(host.on(command.split(), SLURM_CONF="/run/slurm.conf"))

    def _wait(self, happened: Callable[[], bool], what: str) -> None:
        def ended() -> list[Running]:
            return [daemon for daemon in self._daemons if daemon.process.poll() is not None]

        try:
            wait_until(lambda: happened() or ended(), what)
        except HostsError as error:
            raise HostsError(f"{error}\n{self.words()}") from None
        if ended():
            raise HostsError(f"{what}: a daemon ended\n{self.words()}")

    def words(self) -> str:
        """The last lines of what the daemons said."""
        return "\n".join("\n".join(daemon.output().splitlines()[-8:]) for daemon in self._daemons)

    def command(self, *words: str) -> Done:
        """One of Slurm's short commands (sinfo, scontrol, scancel) on `ctl`."""
        return self.building.ctl.on(words, SLURM_CONF="/run/slurm.conf").finish(10)

    def _all_idle(self) -> bool:
        return self.command("sinfo", "-h", "-N", "-o", "%t").output.split() == ["idle"] * len(self.building.hosts)

    def srun(self, command: Command, *options: str, **environment: str) -> Running:
        words = ["srun", "--kill-on-bad-exit=0", *options, *command]
        return self.building.ctl.on(words, SLURM_CONF="/run/slurm.conf", **environment)


# --- Launchers without daemons of their own ----------------------------------------------------------------------


def brant_run(building: Hosts, brant: pathlib.Path, command: Command, *options: str, **environment: str) -> Running:
    """Starts a job with `brant run`, its ranks spread over the hosts in turn. Nothing of it uses the network."""
    words = [brant, "run", "-n", str(len(building.hosts)), *options, "--", "/run/spread", *command]
    return building.ctl.beside(words, **environment)


# --- Open MPI ----------------------------------------------------------------------------------------------------


def mpirun(building: Hosts, version: int, command: Command, *, ranks: int = 2, **environment: str) -> Running:
    """Starts a job with Open MPI 4 (ORTE) or 5 (PRRTE), its ranks spread over the hosts in turn."""
    slots = ",".join(f"{host.name}:{-(-ranks // len(building.hosts))}" for host in building.hosts)
    common = ["--allow-run-as-root", "--bind-to", "none", "--map-by", "node", "--host", slots, "-n", str(ranks)]
    if version == 4:
        start = ["mpirun.openmpi", "--mca", "plm_rsh_agent", "/run/remote-shell"]
    else:
        start = [LAUNCHERS / "openmpi5" / "bin" / "mpirun", "--prtemca", "plm_ssh_agent", "/run/remote-shell"]
    # The remote shell enters the other hosts by their processes, which are seen beside a host, not on it.
    quiet = {"OMPI_MCA_mca_base_component_show_load_errors": "0"}  # it tries networks whose libraries are not there
    return building.ctl.beside([*start, *common, *command], **quiet, **environment)


# --- Where it is possible ----------------------------------------------------------------------------------------


@functools.cache
def why_no_hosts() -> str:
    """Empty where hosts can be made; otherwise what is missing, for the reason of a skip."""
    if os.geteuid() != 0:
        return "hosts in namespaces need root"
    if not (LAUNCHERS / "usr").is_dir():
        return "the launchers are not there: `make setup` unpacks them into .launchers where there is apt"
    for tool in ("unshare", "nsenter", "mount"):
        if shutil.which(tool) is None:
            return f"there is no program {tool} (util-linux)"
    try:
        with Hosts(1):
            return ""
    except (HostsError, OSError, ValueError) as error:
        return f"hosts cannot be made here: {' '.join(str(error).split())}"


@contextlib.contextmanager
def hosts(count: int = 2) -> Iterator[Hosts]:
    with Hosts(count) as building:
        yield building
