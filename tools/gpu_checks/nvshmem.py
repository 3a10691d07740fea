"""NVSHMEM as a rival of `brant bench kernel-puts`: compiled where it and nvcc are, and run by two processes."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

from gpu_checks.check import Check, Step, end, machine_of

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "bench" / "nvshmem" / "kernel_puts.cu"
# One host, and no multicast, which brant uses neither.
ENVIRONMENT = {
    "NVSHMEM_DISABLE_NVLS": "1",
    "NVSHMEM_REMOTE_TRANSPORT": "none",
    "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "lo",
    "NVSHMEM_SYMMETRIC_SIZE": "1G",
}


def nvshmem_folder() -> pathlib.Path | None:
    """Where the wheel lies that PyTorch brings, or what NVSHMEM_HOME names."""
    if os.environ.get("NVSHMEM_HOME"):
        return pathlib.Path(os.environ["NVSHMEM_HOME"])
    try:
        found = importlib.util.find_spec("nvidia.nvshmem")
    except ModuleNotFoundError:
        return None
    return pathlib.Path(next(iter(found.submodule_search_locations))) if found else None


def nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def compiled(program: pathlib.Path, folder: pathlib.Path, compiler: str) -> str:
    """Compiles it; says why it could not, or nothing."""
    host = next(iter(sorted((folder / "lib").glob("libnvshmem_host.so*"))), None)
    if host is None:
        return f"no libnvshmem_host.so in {folder / 'lib'}"
    toolkit = pathlib.Path(compiler).resolve().parents[1]
    command = [compiler, "-std=c++17", "-O3", "-rdc=true", "-gencode", "arch=compute_90,code=sm_90"]
    command += [f"-I{folder / 'include'}", str(SOURCE), "-o", str(program), f"-L{folder / 'lib'}"]
    command += [f"-L{toolkit / 'lib'}", "-lnvshmem_device", f"-l:{host.name}"]
    command += ["-Xlinker", "-rpath", "-Xlinker", str(folder / "lib")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def run_nvshmem(check: Check, step: Step) -> tuple[int | None, str]:
    folder, compiler = nvshmem_folder(), nvcc()
    if folder is None or compiler is None:
        return 0, "skipped: no NVSHMEM, or no nvcc, on this machine"
    program, meeting = check.scratch / "nvshmem_kernel_puts", check.scratch / "nvshmem.id"
    meeting.unlink(missing_ok=True)
    why = compiled(program, folder, compiler)
    if why:
        return 1, why
    log_path = check.scratch / "log.txt"
    with open(log_path, "w") as log:
        ranks = [check.start([str(program), str(rank), str(meeting)], log, ENVIRONMENT) for rank in (0, 1)]
        codes = [check.wait(rank, step.timeout_s) for rank in ranks]
        for rank in ranks:
            end(rank)
    text = log_path.read_text(errors="replace")
    write_rows(check, text)
    return (None if None in codes else max(codes)), text


def write_rows(check: Check, text: str) -> None:
    known = next((row for row in check.rows if row["bench"].startswith("kernel_")), {})
    with open(check.scratch / "rows.jsonl", "a") as file:
        for line in text.splitlines():
            words = line.split()
            if len(words) != 5 or not words[0].startswith("kernel_"):
                continue
            size, blocks, rounds, us = int(words[1]), int(words[2]), int(words[3]), float(words[4])
            row = {
                "bench": words[0],
                "model": "pgas",
                "memory": "cuda",
                "trigger": "device",
                "path": "kernel",
                "bytes": size,
                "blocks": blocks,
                "window": 1,
                "ranks": 2,
                "n": rounds,
                "us": {"min": None, "p50": us, "p99": None},
                "gb_s": round(size / us / 1e3, 4) if size > 8 else None,
                "peer": "nvshmem",
            }
            row.update(machine_of(known))
            file.write(json.dumps(row) + "\n")
