"""The few figures of each step that its line shows, and those that the project promises."""

from __future__ import annotations

import re
from collections.abc import Callable

MIB = 1 << 20
SANITIZER = "compute-sanitizer"
PERFTEST_SIZES = {8: 10000, 65536: 5000, MIB: 2000, 16 * MIB: 400}  # these are shown; and how often each is measured


def short(size: int) -> str:
    for unit, name in ((MIB, "M"), (1024, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def find(rows: list[dict], size: int, peer: str | None) -> dict:
    return next(row for row in rows if row["bytes"] == size and row["peer"] == peer)


def sizes_in(rows: list[dict]) -> list[int]:
    return [size for size in PERFTEST_SIZES if any(row["bytes"] == size for row in rows)]


def compared(rows: list[dict], value: Callable[[dict], float], unit: str) -> str:
    """Ours by size, and how it stands to raw UCX where that was measured in the same run."""
    parts = []
    for size in sizes_in(rows):
        ours = value(find(rows, size, None))
        text = f"{short(size)} {ours:.4g} {unit}"
        if any(row["peer"] == "ucx" for row in rows):
            text += f" ({ours / value(find(rows, size, 'ucx')):.2f}x ucx)"
        parts.append(text)
    return ", ".join(parts)


def latency_figure(_: str, rows: list[dict]) -> str:
    return compared(rows, lambda row: row["us"]["p50"], "us")


def bandwidth_figure(_: str, rows: list[dict]) -> str:
    return compared(rows, lambda row: row["gb_s"], "GB/s")


def coll_figure(_: str, rows: list[dict]) -> str:
    """A collective by size: its time, what a link sees of it, and how its time stands to NCCL's where that was measured
    in the same run."""
    nccl = {row["bytes"]: row["us"]["p50"] for row in rows if row["peer"] == "nccl"}
    parts = []
    for row in rows:
        if row["peer"] is None:
            size, us = row["bytes"], row["us"]["p50"]
            against = f" ({us / nccl[size]:.2f}x nccl)" if size in nccl else ""
            parts.append(f"{short(size)} {us:.4g} us {row['bus_gb_s']:.3g} GB/s{against}")
    return ", ".join(parts)


def notify_figure(_: str, rows: list[dict]) -> str:
    names = {
        "notify_round_trip": "there and back",
        "notify_round_trip_relaxed": "relaxed",
        "notify_device_to_device": "GPU to GPU",
        "notify_put_and_ring": "put and ring",
        "notify_put_lines": "lines",
        "notify_scan_4096": "scan",
    }
    sized = ("notify_put_and_ring", "notify_put_lines")
    figures = []
    for row in rows:
        if row["bench"] in names:
            size = f" {row['bytes']} B" if row["bench"] in sized else ""
            figures.append(f"{names[row['bench']]}{size} {row['us']['p50']:.3g} us")
    return ", ".join(figures)


def kernel_figure(_: str, rows: list[dict]) -> str:
    """Times of one block, bandwidths of several."""
    figures = []
    for row in rows:
        name = row["bench"].removeprefix("kernel_").replace("_", " ")
        figure = f"{row['us']['p50']:.3g} us" if row["blocks"] == 1 else f"{row['gb_s']:.3g} GB/s"
        figures.append(f"{name} {short(row['bytes'])} {figure}")
    return ", ".join(figures)


def heat_figure(_: str, rows: list[dict]) -> str:
    return ", ".join(f"{row['mode']} {row['us']['p50']:.1f} us, p99/p50 {row['p99_over_p50']:.2f}" for row in rows)


def rma_figure(_: str, rows: list[dict]) -> str:
    """By pattern and direction: the smallest transfer, and the most that a window brings; with a busy target instead,
    those that waited for it."""
    waited = sorted({f"{row['pattern']} {row['model']}" for row in rows if row["peer"] is None and row.get("waited")})
    if any(row["target"] == "busy" for row in rows):
        return f"waited for the target: {', '.join(waited) or 'none'}"
    figures: dict[str, list[str]] = {}
    ours = [row for row in rows if row["peer"] is None]
    for row in ours:
        figures.setdefault(f"{row['pattern']} {row['model']}", [])
    for key, figure in figures.items():
        same = [row for row in ours if f"{row['pattern']} {row['model']}" == key]
        figure += [f"{row['us']['p50']:.3g} us" for row in same if row["sync"] == "block"][:1]
        rates = [row["gb_s"] for row in same if row["sync"] == "flood"]
        figure += [f"{max(rates):.3g} GB/s"] if rates else []
    return ", ".join(" ".join([key, *figure]) for key, figure in figures.items())


def memspeed_figure(_: str, rows: list[dict]) -> str:
    """Each pair of memories, by who copies."""
    copies = [row for row in rows if row["bench"] == "memspeed_copy" and row["peer"] is None and row["gb_s"]]
    return ", ".join(f"{row['from']} to {row['to']} {row['gb_s']:.3g} GB/s" for row in copies)


def interference_figure(_: str, rows: list[dict]) -> str:
    """Of the kernel of all blocks, the largest slowdown over the sizes."""
    largest = {}
    for row in rows:
        if row["grid"] == "all" and row["beside"] != "nothing":
            key = f"{row['case']} {row['bench'].removeprefix('interference_')} beside {row['beside']}"
            largest[key] = max(largest.get(key, 0), row["slowdown"])
    return ", ".join(f"{key} {slowdown:.2f}x" for key, slowdown in largest.items())


def bound_figure(_: str, rows: list[dict]) -> str:
    return ", ".join(
        f"{row['mode']} {100 * row['model']['efficiency']:.0f} % of its bound ({row['model']['binds']})" for row in rows
    )


def halo_figure(_: str, rows: list[dict]) -> str:
    return ", ".join(f"{row['mode']} {row['us']['p50']:.4g} us ({row['messages']} messages)" for row in rows)


def test_figure(log: str, _: list[dict]) -> str:
    counts = {}
    for word in ("PASSED", "SKIPPED", "FAILED"):
        numbers = re.findall(rf"\[  {word}  ?\] (\d+) test", log)
        if numbers:
            counts[word.lower()] = max(map(int, numbers))
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def last_of_pytest(log: str, _: list[dict]) -> str:
    """Empty for a run that was ended before it was through."""
    ends = (line for line in reversed(log.splitlines()) if " passed" in line or " failed" in line)
    return next(ends, "").strip("= ")


def ddp_figure(_: str, rows: list[dict]) -> str:
    """The median of each step and call, and how it stands to that of NCCL."""
    theirs = {(row["what"], row["size"]): row["median_us"] for row in rows if row["backend"] == "nccl"}
    parts = []
    for row in rows:
        if row["backend"] == "brant":
            times, name = row["median_us"], f"{row['what']} {row['size']}"
            parts.append(f"{name}: {times:.1f} us ({times / theirs[row['what'], row['size']]:.2f} x)")
    return ", ".join(parts)


def doctor_figure(log: str, _: list[dict]) -> str:
    return next((line for line in reversed(log.splitlines()) if " problems" in line), "")


def info_figure(log: str, _: list[dict]) -> str:
    lines = [line.split(None, 1) for line in log.splitlines() if line]
    return ", ".join(f"{word[0]} {word[1].split(' from ')[0]}" for word in lines if word[0] in ("brant", "UCX", "CUDA"))


def jacobi_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for row in rows:
        text = (
            f"{row['path']}: {row['per_iteration_us']:.1f} us/iteration, communication {row['communication_us']:.1f} us"
        )
        if row.get("speedup_vs_staged"):
            text += f" ({row['speedup_vs_staged']['communication']:.1f}x staged)"
        if row.get("memory_bandwidth_fraction"):
            text += f", {100 * row['memory_bandwidth_fraction']:.0f} % of copy bandwidth"
        parts.append(text)
    return "; ".join(parts)


def calibrate_figure(log: str, _: list[dict]) -> str:
    return ", ".join(re.findall(r"^explain: (.* us)$", log, re.MULTILINE))


def sanitizer_figure(log: str, _: list[dict]) -> str:
    """Every process tells its own."""
    counts = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", log)
    return f"errors: {' + '.join(counts)}" if counts else ""


def sanitizer_excuse(log: str) -> str:
    return f"{SANITIZER} does not support this device" if "Device not supported" in log else ""


def perftest_figure(_: str, rows: list[dict]) -> str:
    if rows[0]["bench"] == "latency":
        return ", ".join(f"{short(row['bytes'])} {row['us']['p50']:.4g} us" for row in rows)
    return ", ".join(f"{short(row['bytes'])} {row['gb_s']:.4g} GB/s" for row in rows)


def courier_figure(_: str, rows: list[dict]) -> str:
    parts = []
    for bench, size in (("latency", 8), ("latency", 65536), ("bandwidth", 8192), ("bandwidth", 65536)):
        row = next(row for row in rows if row["bench"] == bench and row["bytes"] == size)
        value = f"{row['us']['p50']:.3g} us" if bench == "latency" else f"{row['gb_s']:.3g} GB/s"
        parts.append(f"{bench} {short(size)} {value}")
    return ", ".join(parts)


def litmus_figure(_: str, rows: list[dict]) -> str:
    looked = [row for row in rows if not row["landing"].endswith("control")]
    return f"{sum(row['stale'] for row in looked)} of {sum(row['n'] for row in looked)} rounds stale"


def ratio_lines(rows: list[dict]) -> list[str]:
    """The figures the project promises, from this run. Told, not judged: a figure is no test."""

    def value(kind: str, path: str, size: int, peer: str | None, field: str) -> float | None:
        wanted = (kind, "channel", "cuda", path, size, peer)
        keys = ("bench", "model", "memory", "path", "bytes", "peer")
        same = [row for row in rows if tuple(row.get(key) for key in keys) == wanted]
        if not same:
            return None
        # The check passes leave rows of ten samples; the measurement is the row with the most.
        row = max(same, key=lambda row: row.get("n") or 0)
        return row["gb_s"] if field == "gb_s" else row["us"]["p50"]

    lines = []
    for path in ("copy_engine", "ucx"):
        for size, wanted in ((8, 1.3), (MIB, 8), (16 * MIB, 20)):
            staged, direct = (value("latency", each, size, None, "us") for each in ("staged", path))
            if staged and direct:
                lines.append(f"latency {short(size)}: staged / {path} = {staged / direct:.2f} (wanted {wanted})")
        for size in (65536, MIB, 16 * MIB):
            staged, direct = (value("bandwidth", each, size, None, "gb_s") for each in ("staged", path))
            if staged and direct:
                lines.append(f"bandwidth {short(size)}: {path} / staged = {direct / staged:.2f} (wanted 10)")
    for size in (8, 65536, MIB):
        ours, perf = value("latency", "ucx", size, None, "us"), value("latency", "ucx", size, "ucx_perftest", "us")
        if ours and perf:
            lines.append(f"latency {short(size)}: ours / ucx_perftest = {ours / perf:.2f} (wanted at most 1.15)")
    ours, perf = (value("bandwidth", "ucx", 16 * MIB, peer, "gb_s") for peer in (None, "ucx_perftest"))
    if ours and perf:
        lines.append(f"bandwidth 16M: ours / ucx_perftest = {ours / perf:.2f} (wanted at least 0.87)")
    return lines
