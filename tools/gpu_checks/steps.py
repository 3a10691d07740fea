"""All steps, by group."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from gpu_checks.check import ROOT, Check, Step, end, last_line, machine_of
from gpu_checks.figures import (
    MIB,
    PERFTEST_SIZES,
    SANITIZER,
    bandwidth_figure,
    bound_figure,
    calibrate_figure,
    coll_figure,
    courier_figure,
    ddp_figure,
    doctor_figure,
    halo_figure,
    heat_figure,
    info_figure,
    interference_figure,
    jacobi_figure,
    kernel_figure,
    last_of_pytest,
    latency_figure,
    litmus_figure,
    memspeed_figure,
    notify_figure,
    perftest_figure,
    rma_figure,
    sanitizer_excuse,
    sanitizer_figure,
)
from gpu_checks.nvshmem import run_nvshmem
from gpu_checks.packed_tests import test_steps

TARGETS = "8,64K,1M,16M"
GROUPS = ["info", "doctor", "check", "latency", "bandwidth", "perftest", "jacobi", "chare", "stream", "memory", "wire"]
GROUPS += [
    "window",
    "alloc",
    "nccl",
    "notify",
    "kernels",
    "interference",
    "coll",
    "halo",
    "python",
    "torch",
    "word",
    "channel",
    "rma",
    "kill",
    "host",
    "courier",
    "calibrate",
    "sanitizer",
]


def perftest(check: Check, step: Step) -> tuple[int | None, str]:
    """ucx_perftest of the bundled UCX: two processes, each with its own GPU. Rows have the peer 'ucx_perftest'."""
    kind, memory = step.command[1], step.command[2]
    log_path = check.scratch / "log.txt"
    environment = perftest_environment(check.bin)
    text, status = "", 0
    with open(log_path, "w") as log:
        for index, (size, count) in enumerate(PERFTEST_SIZES.items()):
            port = str(13700 + index + (10 if kind == "tag_bw" else 0) + os.getpid() % 1000)
            server = check.start([step.command[0], "-p", port], log, {**environment, "CUDA_VISIBLE_DEVICES": "0"})
            time.sleep(0.7)
            options = [
                "-t",
                kind,
                "-m",
                f"{memory},{memory}",
                "-s",
                str(size),
                "-n",
                str(count),
                "-w",
                str(count // 10),
            ]
            client = check.start(
                [step.command[0], "127.0.0.1", "-p", port, *options], log, {**environment, "CUDA_VISIBLE_DEVICES": "1"}
            )
            code = check.wait(client, 40)
            end(server) if code != 0 else check.wait(server, 5)
            text = log_path.read_text(errors="replace")
            if code != 0:
                status = code
                break
            write_perftest_row(check, kind, memory, size, count, text)
    return status, text


def perftest_environment(bin_folder: pathlib.Path) -> dict[str, str]:
    lib = bin_folder.parent / "lib"
    ucx = (lib / "libucx").resolve()
    extra = [str(ucx / "lib"), *map(str, ucx.parent.glob("libucx_cu*.libs")), *map(str, lib.glob("libucx_cu*.libs"))]
    return {"LD_LIBRARY_PATH": ":".join([*extra, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}


def write_perftest_row(check: Check, kind: str, memory: str, size: int, count: int, text: str) -> None:
    numbers = re.findall(r"^Final:\s+(.*)$", text, re.MULTILINE)[-1].split()
    row = {
        "bench": "latency" if kind == "tag_lat" else "bandwidth",
        "model": "channel",
        "memory": memory,
        "trigger": "host",
        "path": "ucx",
        "bytes": size,
        "window": 1 if kind == "tag_lat" else 32,
        "ranks": 2,
        "n": count,
        "us": {"min": None, "p50": float(numbers[1]), "p99": None},
        "gb_s": round(float(numbers[5]) * MIB / 1e9, 4),
        "peer": "ucx_perftest",
    }
    known = next((known for known in check.rows if known.get("peer") is None and known.get("memory") == memory), {})
    row.update(machine_of(known))
    with open(check.scratch / "rows.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")


def python_steps(check: Check) -> list[Step]:
    """Arrays of CuPy, PyTorch and JAX, and bells in kernels, by the package that BRANT_PYTHONPATH names."""
    if "BRANT_PYTHONPATH" not in os.environ:
        return []
    tests = [
        str(ROOT / "tests" / "python_api" / f"test_{name}.py") for name in ("gpu_arrays", "frameworks", "gpu_teams")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {"BRANT_BIN": check.program("brant"), "PYTHONPATH": os.environ["BRANT_PYTHONPATH"]}
    steps = [Step("python on GPUs", "python", command, 300, 2, environment, figure=last_of_pytest)]
    folder = ROOT / "tests" / "python_api"
    bells = [str(folder / "test_gpu_bells.py"), f"{folder / 'test_kernels.py'}::test_triton_keeps_the_order"]
    command = [*command[: -len(tests)], "-rs", *bells]
    steps.append(Step("python kernels and bells", "python", command, 240, 1, environment, figure=last_of_pytest))
    run = [check.program("brant"), "run", "-n", "2", "--no-prefix", "--", sys.executable, "-m", "brant.bench"]
    for what in ("raw", "channel", "chare"):
        for memory in ("cuda", "cupy"):
            command = [*run, "--what", what, "--memory", memory, "--check"]
            name = f"python {what} {memory}"
            steps.append(Step(name, "python", command, 60, 2, environment, rows=True, figure=latency_figure))
    return steps + python_program_steps(run[:-2], environment)


def torch_steps(check: Check) -> list[Step]:
    """The backend of torch.distributed on tensors of GPUs, and beside NCCL, by the package that BRANT_PYTHONPATH names;
    the first step compiles it against the PyTorch that is there."""
    if "BRANT_PYTHONPATH" not in os.environ:
        return []
    environment = {"PYTHONPATH": os.environ["BRANT_PYTHONPATH"], "OMP_NUM_THREADS": "1"}
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    steps = []
    for what in ("collectives", "training"):
        command = [*pytest, str(ROOT / "tests" / "torch" / f"test_gpu_{what}.py")]
        steps.append(Step(f"torch {what}", "torch", command, 240, 2, environment, figure=last_of_pytest))
    command = [sys.executable, str(ROOT / "tools" / "measure_ddp.py"), "--device", "cuda", "--turns", "7"]
    beside = {**environment, "NCCL_NVLS_ENABLE": "0"}  # as for brant bench --peer nccl
    return [*steps, Step("torch beside NCCL", "torch", command, 180, 2, beside, rows=True, figure=ddp_figure)]


def python_program_steps(run: list[str], environment: dict[str, str]) -> list[Step]:
    """Jacobi3D and the pipeline of modules; `run` starts two interpreters."""
    modules = [*run, str(ROOT / "examples" / "python" / "pipeline.py"), "--of", "torch", "--device", "cuda"]
    steps = [Step("python pipeline of modules", "python", modules, 60, 2, environment)]
    jacobi3d = [*run, str(ROOT / "apps" / "jacobi3d_python" / "jacobi3d.py"), "--memory", "cuda"]
    small = ["--size", "70", "52", "46", "--iterations", "20", "--check"]
    large = ["--size", "512", "512", "1024", "--iterations", "100"]
    ways = {"": [], " 4 blocks": ["--blocks", "4"], " staged": ["--host-staging"]}
    for name, way in ways.items():
        check = Step(f"python jacobi3d check{name}", "python", [*jacobi3d, *small, *way], 60, 2, environment)
        timed = [*jacobi3d, *large, *way]
        steps.append(check)
        steps.append(
            Step(f"python jacobi3d{name}", "python", timed, 60, 2, environment, rows=True, figure=python_figure)
        )
    return steps


def python_figure(_: str, rows: list[dict]) -> str:
    """An iteration, and how long its faces travel where that is told apart."""
    (row,) = rows
    text = f"{row['per_iteration_us']:.1f} us"
    return text if row["communication_us"] is None else f"{text}, {row['communication_us']:.1f} of them faces"


def bench(check: Check, name: str, group: str, kind: str, *options: str, **more) -> Step:
    figure = latency_figure if kind == "latency" else bandwidth_figure
    command = [check.program("brant"), "run", "-n", "2", "--no-prefix", "--", check.program("brant"), "bench", kind]
    return Step(name, group, [*command, *options], rows=True, figure=figure, **more)


def check_steps(check: Check) -> list[Step]:
    steps = []
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "1,8,4097,64K,1M,16M"]
    cuda = [("cuda", path) for path in ("courier", "copy_engine", "ucx", "staged")]
    for kind in ("latency", "bandwidth"):
        for memory, path in (*cuda, ("cuda-managed", "auto"), ("pinned", "auto")):
            name = f"check {kind} {memory} {path}"
            steps.append(
                bench(check, name, "check", kind, "--memory", memory, "--path", path, *some, gpus=2, timeout_s=50)
            )
    return steps


def bench_steps(check: Check) -> list[Step]:
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    steps = []
    rival = ["--peer", "ucx"]
    for kind in ("latency", "bandwidth"):
        for path, more in (("copy_engine", rival), ("ucx", rival), ("staged", []), ("auto", rival)):
            options = ["--memory", "cuda", "--path", path, *more, *sizes]
            steps.append(bench(check, f"{kind} cuda {path}", kind, kind, *options, gpus=2, timeout_s=80))
        tool = [check.program("ucx_perftest"), "tag_lat" if kind == "latency" else "tag_bw", "cuda"]
        steps.append(
            Step(f"ucx_perftest {tool[1]} cuda", "perftest", tool, gpus=2, figure=perftest_figure, act=perftest)
        )
    options = ["--memory", "cuda", "--path", "ucx", "--sizes", TARGETS, "--api", "await"]
    steps.append(bench(check, "latency cuda coroutines", "latency", "latency", *options, gpus=2))
    return steps + window_steps(check) + alloc_steps(check) + nccl_steps(check)


def window_steps(check: Check) -> list[Step]:
    """Windows of the courier against those of the automatic choice, where either may win."""
    some = ["--memory", "cuda", "--sizes", "16K,64K,128K,256K,512K,1M"]
    return [
        bench(check, f"bandwidth cuda window {path}", "window", "bandwidth", *some, "--path", path, gpus=2)
        for path in ("courier", "copy_engine", "auto")
    ]


def alloc_steps(check: Check) -> list[Step]:
    """Memory made elsewhere, against that of the library."""
    some = ["--memory", "cuda", "--sizes", TARGETS]
    return [
        bench(check, f"latency cuda alloc {alloc}", "alloc", "latency", *some, "--alloc", alloc, gpus=2)
        for alloc in ("library", "cuda", "torch-like")
    ]


def nccl_steps(check: Check) -> list[Step]:
    some = ["--memory", "cuda", "--peer", "nccl", "--sizes", "8,1K,8K,64K,1M,16M"]
    return [
        bench(check, f"latency cuda nccl {trigger}", "nccl", "latency", *some, "--trigger", trigger, gpus=2)
        for trigger in ("host", "stream")
    ]


def word_steps(check: Check) -> list[Step]:
    """Copies of a copy engine with and without the word that the same stream sets behind them: rows to compare, and
    whether a word ever comes before its bytes."""
    some = ["--check", "--iterations", "200", "--warmup", "5", "--sizes", "1,8,4097,64K,1M,16M"]
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    steps = []
    for name, setting in (("with words", "1"), ("without", "0")):
        options = ["--memory", "cuda", "--path", "copy_engine"]
        more = {"gpus": 2, "environment": {"BRANT_COPY_SIGNAL": setting}}
        for kind in ("latency", "bandwidth"):
            steps.append(bench(check, f"check {kind} copy_engine {name}", "word", kind, *options, *some, **more))
            steps.append(bench(check, f"{kind} copy_engine {name}", "word", kind, *options, *sizes, **more))
    return steps


def stream_steps(check: Check) -> list[Step]:
    """Transfers that streams trigger, in captured graphs."""
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    stream = ["--memory", "cuda", "--trigger", "stream"]
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "0,1,8,4097,8K,8193,64K,1M,16M"]
    steps = []
    for kind in ("latency", "bandwidth"):
        steps.append(bench(check, f"check {kind} stream", "stream", kind, *stream, *some, gpus=2, timeout_s=50))
        steps.append(bench(check, f"{kind} cuda stream", "stream", kind, *stream, "--peer", "ucx", *sizes, gpus=2))
    return steps


def rma_steps(check: Check) -> list[Step]:
    """Puts and gets: every path of GPU memory with all bytes looked at, and what puts cost beside raw UCX. Atomics too,
    which raw UCX has on host memory alone."""
    some = ["--check", "--iterations", "10", "--warmup", "1", "--sizes", "0,1,8,4097,64K,1M,16M"]
    steps = []
    for model in ("put", "get"):
        for memory, path in (("cuda", "copy_engine"), ("cuda", "courier"), ("cuda", "ucx"), ("cuda", "staged")):
            options = ["--model", model, "--memory", memory, "--path", path, *some]
            name = f"check {model} {memory} {path}"
            steps.append(bench(check, name, "rma", "latency", *options, gpus=2, timeout_s=50))
    sizes = ["--sizes", TARGETS] if check.quick else ["--sizes", "8,8K,64K,256K,1M,4M,16M"]
    for memory, gpus in (("host", 0), ("cuda", 2)):
        for kind in ("latency", "bandwidth"):
            options = ["--model", "put", "--memory", memory, "--peer", "ucx", *sizes]
            steps.append(bench(check, f"{kind} {memory} put", "rma", kind, *options, gpus=gpus))
            options = ["--model", "fetch-add", "--memory", memory, "--peer", "ucx", "--sizes", "4,8", "--check"]
            steps.append(bench(check, f"{kind} {memory} fetch-add", "rma", kind, *options, gpus=gpus))
        options = ["--model", "rpc", "--memory", memory, "--sizes", "8,1K,64K,1M", "--check"]
        steps.append(bench(check, f"latency {memory} rpc", "rma", "latency", *options, gpus=gpus))
        options = ["--model", "told-put", "--memory", memory, "--sizes", "8,1K,64K,1M", "--check"]
        steps.append(bench(check, f"latency {memory} told-put", "rma", "latency", *options, gpus=gpus))
    return steps + memory_kind_steps(check)


def memory_kind_steps(check: Check) -> list[Step]:
    """Puts and gets between all kinds of memory, each way of waiting for them, whether any needs the target's CPU, and
    every pair of memories: all bytes looked at, and what they cost beside raw UCX."""
    rma, memspeed = ([check.program("brant"), "bench", verb, "--device", "cuda"] for verb in ("rma", "memspeed"))
    few = ["--check", "--iterations", "5", "--warmup", "1", "--window", "8"]
    all_syncs = [*rma, *few, "--sizes", "1,4097,64K,1M", "--sync", "block,flood,notify,inject"]
    busy = [*rma, "--busy-target", "--iterations", "20", "--sizes", "8,64K", "--pattern", "gg,sg,pg,gs"]
    sizes = ["--sizes", "8,64K,1M" if check.quick else "8,8K,64K,1M", "--sync", "block,flood,inject"]
    some = ["--iterations", "50", "--warmup", "5"]
    small = [*memspeed, "--check", "--bytes", "4M", "--iterations", "3"]
    large = [*memspeed, "--iterations", "4", "--bytes", "16M" if check.quick else "64M"]

    def step(name: str, command: list[str], figure: Callable[[str, list[dict]], str]) -> Step:
        return Step(name, "rma", command, 90, 2, rows=True, figure=figure)

    return [
        step("check rma kinds", all_syncs, rma_figure),
        step("check rma busy target", busy, rma_figure),
        step("check memspeed", small, memspeed_figure),
        step("rma between GPUs", [*rma, "--peer", "ucx", "--pattern", "gg", *some, *sizes], rma_figure),
        step("rma of other kinds", [*rma, "--peer", "ucx", "--pattern", "sg,pg,gs,ss,ps", *some, *sizes], rma_figure),
        step("memspeed", large, memspeed_figure),
    ]


def host_steps(check: Check) -> list[Step]:
    sizes = ["--sizes", TARGETS] if check.quick else ["--max", "16M"]
    kinds = [(kind, path) for kind in ("latency", "bandwidth") for path in ("auto", "shm", "ucx")]
    return [
        *(
            bench(check, f"{kind} host {path}", "host", kind, "--path", path, "--peer", "ucx", *sizes, timeout_s=60)
            for kind, path in kinds
        ),
        bench(check, "latency pinned", "host", "latency", "--memory", "pinned", "--sizes", TARGETS, gpus=2),
    ]


def jacobi(check: Check) -> list[str]:
    brant = check.program("brant")
    return [brant, "run", "-n", "2", "--no-prefix", "--", check.program("jacobi3d"), "--memory", "cuda"]


def per_gpu(cells: str) -> list[str]:
    """A cube of so many cells along each axis for each of the two GPUs: the cut is along z."""
    return ["--size", cells, cells, str(2 * int(cells))]


def jacobi_steps(check: Check) -> list[Step]:
    run = jacobi(check)
    small = ["--size", "96", "65", "48", "--iterations", "30", "--check"]
    steps = [
        Step("jacobi3d check ucx", "jacobi", [*run, *small, "--path", "ucx"], gpus=2),
        Step("jacobi3d check staged", "jacobi", [*run, *small, "--path", "staged"], gpus=2),
        Step("jacobi3d check overlap", "jacobi", [*run, *small, "--overlap", "--residual", "10"], gpus=2),
    ]
    # Strong scaling: what the paths are worth depends on the cells that a GPU has, and so does what overlapping hides.
    for cells in ("256",) if check.quick else ("192", "384", "768", "1536"):
        size = per_gpu(cells)
        count = ["--iterations", "50" if cells == "1536" else "200", "--warmup", "5"]
        for overlap in ([], ["--overlap"]):
            options = [*run, *size, *count, "--compare", *overlap]
            name = f"jacobi3d {cells}^3 per GPU{' overlap' if overlap else ''}"
            steps.append(Step(name, "jacobi", options, 100, 2, rows=True, figure=jacobi_figure))
    steps += jacobi_halo_steps(run, small)
    # Faces of 512 KB, which every path takes.
    small_cube = [*per_gpu("256"), "--iterations", "500", "--warmup", "20"]
    for path in ("courier", "copy_engine", "ucx", "staged"):
        options = [*run, *small_cube, "--path", path]
        steps.append(Step(f"jacobi3d 256^3 per GPU {path}", "jacobi", options, 60, 2, rows=True, figure=jacobi_figure))
    return steps


def jacobi_halo_steps(run: list[str], small: list[str]) -> list[Step]:
    """By halo exchanges: every mode checked, what an exchange alone costs, and iterations; in modes direct, stream and
    stacked one kernel does all of them where blocks are small."""
    steps = []
    for mode in ("shapes", "fused", "direct", "graph", "resident", "stream", "stacked"):
        halo = [*run, "--halo", mode]
        steps.append(Step(f"jacobi3d halo {mode} check", "jacobi", [*halo, *small], gpus=2))
        # Faces of 32 KB: what CPU-free stencils are compared with.
        alone = [*halo, "--compute", "none", *per_gpu("64"), "--iterations", "10000", "--warmup", "100", "--check"]
        steps.append(Step(f"jacobi3d halo {mode} exchanges", "jacobi", alone, 100, 2, rows=True, figure=jacobi_figure))
        timed = [*halo, *per_gpu("256"), "--iterations", "500", "--warmup", "20"]
        steps.append(
            Step(f"jacobi3d halo {mode} 256^3 per GPU", "jacobi", timed, 60, 2, rows=True, figure=jacobi_figure)
        )
    for mode in ("direct", "stream", "stacked"):
        halo = [*run, "--halo", mode]
        steps.append(Step(f"jacobi3d halo {mode} overlap check", "jacobi", [*halo, "--overlap", *small], gpus=2))
        # Faces along x: rows of one cell, which mode direct writes packed.
        along_x = ["--size", "514", "48", "33", "--iterations", "30", "--check"]
        steps.append(Step(f"jacobi3d halo {mode} along x check", "jacobi", [*halo, *along_x], gpus=2))
        stays = [*halo, *per_gpu("64"), "--iterations", "1000", "--warmup", "100"]
        name = f"jacobi3d halo {mode} 64^3 per GPU"
        steps.append(Step(name, "jacobi", stays, 60, 2, rows=True, figure=jacobi_figure))
    for cells in ("64", "256", "768"):
        timed = [*run, "--halo", "direct", "--overlap", *per_gpu(cells), "--iterations", "200", "--warmup", "20"]
        name = f"jacobi3d halo direct {cells}^3 per GPU overlap"
        steps.append(Step(name, "jacobi", timed, 60, 2, rows=True, figure=jacobi_figure))
    return steps


def chare_steps(check: Check) -> list[Step]:
    """Message-driven objects: device arguments against the channel on the same path, and overdecomposition."""
    sizes = ["--sizes", TARGETS]
    steps = []
    for memory in ("cuda", "host"):
        options = ["--model", "message", "--memory", memory, "--peer", "ucx", *sizes]
        gpus = 2 if memory == "cuda" else 0
        steps.append(bench(check, f"latency {memory} message", "chare", "latency", *options, "--check", gpus=gpus))
        steps.append(bench(check, f"bandwidth {memory} message", "chare", "bandwidth", *options, gpus=gpus))
    run = jacobi(check)
    small = ["--size", "96", "65", "48", "--iterations", "30", "--check"]
    large = [*per_gpu("256" if check.quick else "768"), "--iterations", "50", "--warmup", "5", "--overlap"]
    for chares in ("1", "4", "16"):
        way = ["--model", "message", "--chares-per-process", chares]
        name = f"jacobi3d message {chares} chares"
        steps.append(Step(f"{name} check", "chare", [*run, *way, *small], gpus=2))
        steps.append(Step(name, "chare", [*run, *way, *large], 60, 2, rows=True, figure=jacobi_figure))
    steps.append(Step("jacobi3d channel", "chare", [*run, *large], 60, 2, rows=True, figure=jacobi_figure))
    return steps


def courier_steps(check: Check) -> list[Step]:
    """The resident kernel by itself: messages, windows, what the program beside it notices; and whether any flag comes
    before its bytes, with the fences of this architecture and with the few of those that were measured."""
    command = [check.program("courier_bench"), "--limit", "60"]
    litmus = [*command, "--only", "litmus"]
    few = {"BRANT_COURIER_FENCES": "measured"}
    return [
        Step("courier", "courier", command, 70, 2, rows=True, figure=courier_figure),
        Step("courier litmus", "courier", litmus, 70, 2, rows=True, figure=litmus_figure),
        Step("courier litmus, fences measured", "courier", litmus, 70, 2, few, rows=True, figure=litmus_figure),
    ]


def kernel_steps(check: Check) -> list[Step]:
    """What kernels move by themselves, beside NVSHMEM."""
    command = [check.program("brant"), "bench", "kernel-puts"]
    small = [*command, "--check", "--iterations", "500", "--sizes", "8,1K,64K,1M"]
    return [
        Step("check kernel-puts", "kernels", small, 60, 2, rows=True, figure=kernel_figure),
        Step("kernel-puts", "kernels", command, 60, 2, rows=True, figure=kernel_figure),
        Step("nvshmem kernel-puts", "kernels", [], 60, 2, figure=kernel_figure, act=run_nvshmem),
    ]


def heat_steps(check: Check) -> list[Step]:
    """How evenly steps of Heat3D take their time, one-sided and two-sided."""
    run = [check.program("brant"), "run", "-n", "2", "--no-prefix", "--", check.program("heat3d"), "--memory", "cuda"]
    steps = "2000" if check.quick else "10000"
    timed = [*run, "--mode", "both", "--size", "200", "--steps", steps, "--print", "0", "--histogram"]
    right = [*run, "--mode", "both", "--check", "--steps", "200"]
    return [
        Step("check heat3d", "kernels", right, 60, 2),
        Step("heat3d", "kernels", timed, 90, 2, rows=True, figure=heat_figure),
    ]


def notify_steps(check: Check) -> list[Step]:
    """Bells between running kernels, CPUs and other processes, and whether they come behind what they tell of."""
    command = [check.program("brant"), "bench", "notify", "--check"]
    return [Step("notify", "notify", command, 60, 2, rows=True, figure=notify_figure)]


def coll_steps(check: Check) -> list[Step]:
    """Collectives of device memory, called by the host, by streams and by graphs: every element, and what they cost."""
    steps = []
    sizes = ["--sizes", "8,64K,1M,16M"] if check.quick else ["--max", "64M"]
    few = ["--sizes", "8,64K,1M,16M", "--iterations", "50"]  # what goes as others do, shorter
    for kind in ("allreduce", "broadcast", "allgather", "reduce-scatter", "alltoall", "barrier"):
        for trigger in ("host", "stream", "graph"):
            command = [check.program("brant"), "run", "-n", "2", "--no-prefix", "--"]
            command += [check.program("brant"), "bench", kind, "--memory", "device", "--trigger", trigger, "--check"]
            command += [] if kind == "barrier" else few if kind in ("reduce-scatter", "alltoall") else sizes
            steps.append(Step(f"{kind} cuda {trigger}", "coll", command, 80, 2, rows=True, figure=coll_figure))
            if kind == "allreduce" and trigger != "host":
                beside = [*command, "--peer", "nccl"]
                steps.append(Step(f"{kind} cuda nccl {trigger}", "coll", beside, 120, 2, rows=True, figure=coll_figure))
    return steps


def interference_steps(check: Check) -> list[Step]:
    """What a kernel that goes on writing and sends of the CPU cost each other, and whether all words are right."""
    command = [check.program("brant"), "bench", "interference"]
    few = ["--check", "--iterations", "4", "--warmup", "1", "--sizes", "64,64K,1M"]
    steps = []
    for memory in ("pinned", "cuda"):
        where = ["--memory", memory]
        steps.append(Step(f"check interference {memory}", "interference", [*command, *where, *few], 60, 2, rows=True))
    for memory in ("pinned", "cuda"):
        sizes = ["--memory", memory, "--sizes", "64,64K,1M" if check.quick else "64,4K,64K,1M,4M,16M"]
        name = f"interference {memory}"
        steps.append(Step(name, "interference", [*command, *sizes], 90, 2, rows=True, figure=interference_figure))
    return steps


def halo_steps(check: Check) -> list[Step]:
    """The cubes of the paper on two processes, every cell of the smallest compared, by all modes."""
    halo = [check.program("brant"), "bench", "halo", "--periodic", "1_1_1", "--mode", "all"]
    small = [*halo, "--size", "200_200_200", "--divide", "4_4_4", "--cycles", "20", "--check"]
    steps = []
    for memory in ("cuda", "pinned", "host"):
        for per in ("process", "all"):
            command = [*small, "--memory", memory, "--per", per]
            steps.append(Step(f"halo {memory} {per}", "halo", command, 60, 2, rows=True, figure=halo_figure))
    # Without the CPU between the exchanges.
    command = [*halo[:-2], "--mode", "resident", "--batch", "100", "--memory", "cuda", "--size", "16_16_32"]
    steps.append(Step("halo cuda batch", "halo", [*command, "--check"], 60, 2, rows=True, figure=halo_figure))
    # One block for each process, as large as the paper's.
    for cells in (50, 100, 200):
        command = [*halo, "--memory", "cuda", "--size", f"{cells}_{cells}_{2 * cells}", "--divide", "1_1_2"]
        steps.append(Step(f"halo cuda block of {cells}", "halo", command, 60, 2, rows=True, figure=halo_figure))
    return steps


def calibrate(check: Check, step: Step) -> tuple[int | None, str]:
    """Measures the paths into a file of this run, and asks `brant explain` whether it goes by that. The user's own
    calibration is neither read nor written."""
    log_path, file = check.scratch / "log.txt", check.scratch / "calibration"
    environment = {**step.environment, "BRANT_CALIBRATION": str(file)}
    with open(log_path, "w") as log:
        status = check.wait(check.start([*step.command, "--output", str(file)], log, environment), step.timeout_s)
    text = log_path.read_text(errors="replace")
    if status != 0:
        return status, text
    shutil.copy(file, check.out / "calibration.txt")
    faults = []
    for size in TARGETS.split(","):
        try:
            line = explained(check, size, environment, file)
            text += f"explain: {line}\n"
        except (OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired) as fault:
            faults.append(f"explain {size}: {fault}\n")
    return (1 if faults else 0), text + "".join(faults)


def explained(check: Check, size: str, environment: dict[str, str], file: pathlib.Path) -> str:
    """What `brant explain` says of one size. ValueError if it does not go by the numbers of the file."""
    command = [check.program("brant"), "explain", "--from", "cuda:0", "--to", "cuda:1", "--bytes", size, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, **environment})
    if done.returncode != 0:
        raise ValueError(f"exit status {done.returncode}: {last_line(done.stdout + done.stderr)}")
    answer = json.loads(done.stdout)
    numbers = answer["numbers"]
    if not numbers["measured"] or numbers["file"] != str(file):
        raise ValueError(f"it does not go by the numbers just measured: {numbers['refused'] or numbers['file']}")
    if answer["us"] is None:
        raise ValueError(f"path {answer['path']} has no measured time")
    return f"{size} {answer['path']} {answer['us']:.4g} us"


def calibrate_steps(check: Check) -> list[Step]:
    # The verdict is about going by the file; whether the numbers are worth keeping is said in them.
    command = [check.program("brant"), "calibrate", "--even-if-busy"]
    file = str(check.out / "model.json")
    halo = [check.program("brant"), "bench", "halo", "--memory", "cuda", "--parameters", file, "--mode"]
    steps = [
        Step("calibrate", "calibrate", command, 90, 2, figure=calibrate_figure, act=calibrate),
        Step("calibrate model", "calibrate", [*command, "--model", "--output", file], 90, 2),
    ]
    one_each = [*halo, "all", "--size", "100_100_200", "--divide", "1_1_2", "--check"]
    commands = {"100_100_200": one_each}
    # The cubes of the paper: in as many messages as it has, and in mode direct.
    for cells in ("200", "400", "800"):
        cube = "_".join([cells] * 3)
        commands[cube] = [*halo, "fused,stream,stacked,direct", "--size", cube, "--divide", "4_4_4", "--per", "all"]
    for cube, command in commands.items():
        command = [*command, "--cycles", "10" if cube.startswith("800") else "50", "--periodic", "1_1_1"]
        name = f"halo beside its bound {cube}"
        steps.append(Step(name, "calibrate", command, 60, 2, rows=True, figure=bound_figure))
    return steps


def sanitizer_steps(check: Check) -> list[Step]:
    """Bad accesses of all our kernels, and races in the shared memory of those that meet at barriers. Not of the
    courier's: its warps poll each other's words on purpose, which a race checker must report."""

    def watched(tool: str, program: str, *arguments: str) -> list[str]:
        # The tests ask the driver for what it must refuse: that is no error of theirs.
        options = ["--error-exitcode", "86", "--target-processes", "all", "--print-limit", "20"]
        options += ["--report-api-errors", "no"] if tool == "memcheck" else []
        return [SANITIZER, "--tool", tool, *options, check.program(program), *arguments]

    def step(name: str, gpus: int, command: list[str], timeout_s: int = 60) -> Step:
        ranks = [check.program("brant"), "run", "-n", "2", "--timeout", str(timeout_s - 5), "--"] if gpus == 2 else []
        environment = {"CUDA_VISIBLE_DEVICES": "0"} if gpus == 1 else {"BRANT_GPU": "cuda"}
        how = {"tool": SANITIZER, "whole": True, "figure": sanitizer_figure, "excuse": sanitizer_excuse}
        return Step(name, "sanitizer", [*ranks, *command], timeout_s, gpus, environment, **how)

    some = ["--memory", "cuda", "--check", "--iterations", "10", "--warmup", "1", "--sizes", "8,4097,64K,1M"]
    latency, bandwidth = ["bench", "latency", *some], ["bench", "bandwidth", *some]
    stencil = ["--memory", "cuda", "--size", "33", "31", "29", "--iterations", "5", "--check"]
    return [
        step("memcheck memory_test", 1, watched("memcheck", "memory_test", "--gtest_filter=*/cuda"), 90),
        step("memcheck jacobi3d", 1, watched("memcheck", "jacobi3d", *stencil)),
        step("memcheck channel_2_ranks_test", 2, watched("memcheck", "channel_2_ranks_test"), 90),
        step("memcheck courier", 2, watched("memcheck", "brant", *latency, "--path", "courier")),
        step("memcheck copy_engine", 2, watched("memcheck", "brant", *bandwidth, "--path", "copy_engine")),
        step("racecheck stream", 2, watched("racecheck", "brant", *latency, "--trigger", "stream")),
    ]


def all_steps(check: Check) -> list[Step]:
    brant = check.program("brant")
    return [
        Step("info", "info", [brant, "info"], figure=info_figure),
        Step("doctor", "doctor", [brant, "doctor"], figure=doctor_figure),
        *check_steps(check),
        *bench_steps(check),
        *word_steps(check),
        *jacobi_steps(check),
        *chare_steps(check),
        *stream_steps(check),
        *notify_steps(check),
        *kernel_steps(check),
        *heat_steps(check),
        *interference_steps(check),
        *coll_steps(check),
        *halo_steps(check),
        *rma_steps(check),
        *test_steps(check),
        *python_steps(check),
        *torch_steps(check),
        *host_steps(check),
        *courier_steps(check),
        *calibrate_steps(check),
        *sanitizer_steps(check),
    ]  # fmt: skip
