"""The README's tables are what the rows say, and what docs/how-it-works/paths.md shows of the same rows; and its table
of the command is what the command can do."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import sys

from brant_command import brant, needs_brant

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
NUMBERS = ROOT / "docs" / "numbers"
TWO_GPUS = "0.1.0+g864d6d1"
HOST_ROWS = "h200-2026-11-23.jsonl"
NAMES = {"channel": ("message", "messages"), "put": ("put", "puts"), "message": ("call", "calls")}
KIB, MIB = 1 << 10, 1 << 20

spec = importlib.util.spec_from_file_location("plot_paths", ROOT / "tools" / "plot_paths.py")
plot_paths = importlib.util.module_from_spec(spec)
sys.modules["plot_paths"] = plot_paths
spec.loader.exec_module(plot_paths)
figure = plot_paths.figure


def size_name(size: int) -> str:
    return re.sub(r"^(\d+)([KM]?)$", r"\1 \2B", plot_paths.short(size))


def rows_of(name: str) -> list[dict]:
    return [json.loads(line) for line in (NUMBERS / name).read_text().splitlines() if line]


def value(row: dict) -> float:
    """Microseconds one way, or 1e9 bytes a second."""
    p50 = row["us"]["p50"]
    return p50 if row["bench"] == "latency" else row["bytes"] * row["window"] / p50 / 1e3


def span(values: list[float], text=figure) -> str:
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


def times(first: float, *, against: list[float], bench: str) -> str:
    """How many times as fast as the others the first is, of each of them."""
    return span([other / first if bench == "latency" else first / other for other in against]) + " x"


def two_gpu_lines(bench: str, sizes: list[int]) -> list[str]:
    rows = plot_paths.read_rows(sorted(NUMBERS.glob(f"{plot_paths.MACHINE}-*.jsonl")))
    series = plot_paths.select_series(rows, bench, "cuda", [TWO_GPUS])
    best = min if bench == "latency" else max

    def latest(path: str, size: int) -> list[float]:
        return [point.value for point in series[path] if point.bytes == size]

    def rivals(peer: str, size: int) -> list[float]:
        wanted = {"bench": bench, "model": "channel", "memory": "cuda", "bytes": size, "peer": peer, "brant": TWO_GPUS}
        found = [row for row in rows if all(row.get(name) == what for name, what in wanted.items())]
        return [value(row) for row in found if row.get("trigger", "host") == "host"]

    lines = []
    for size in sizes:
        ours = best(latest("courier", size) + latest("copy_engine", size))
        ucx, (staged,) = rivals("ucx", size), latest("staged", size)
        cells = [size_name(size), figure(ours), span(ucx), figure(staged)]
        if bench == "latency":
            cells.append(figure(*rivals("nccl", size)))
        cells += [times(ours, against=ucx, bench=bench), times(ours, against=[staged], bench=bench)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def stream_lines() -> list[str]:
    """NCCL's rows, and ours of the same run, which stand before them."""
    rows = [row for row in rows_of("h100x2-2026-11-25.jsonl") if row["brant"] == TWO_GPUS]
    rows = [row for row in rows if row["bench"] == "latency" and row.get("trigger") == "stream"]
    pairs = {nccl["bytes"]: (ours, nccl) for ours, nccl in zip(rows, rows[1:], strict=False) if nccl["peer"] == "nccl"}
    lines = []
    for size in (8, KIB, 64 * KIB, MIB, 16 * MIB):
        assert (pairs[size][0]["bytes"], pairs[size][0]["peer"]) == (size, None)
        ours, nccl = map(value, pairs[size])
        faster = times(ours, against=[nccl], bench="latency")
        lines.append(f"| {size_name(size)} | {figure(ours)} | {figure(nccl)} | {faster} |")
    return lines


def collective_lines() -> list[str]:
    """Sums of floats in captured graphs, beside NCCL's of the same run."""
    rows = [row for row in rows_of("collectives-h200x2-2026-11-26.jsonl") if row["bench"] == "allreduce"]
    rows = [row for row in rows if row["trigger"] == "graph"]
    nccl = {row["bytes"]: row["us"]["p50"] for row in rows if row["peer"] == "nccl"}
    # The run beside NCCL comes last.
    ours = {row["bytes"]: row["us"]["p50"] for row in rows if row["peer"] is None}
    lines = []
    for size in (8, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB):
        faster = times(ours[size], against=[nccl[size]], bench="latency")
        lines.append(f"| {size_name(size)} | {figure(ours[size])} | {figure(nccl[size])} | {faster} |")
    return lines


def first_run(name: str) -> dict[tuple[str, str, int], tuple[dict, dict]]:
    """Each row with raw UCX's of the same run, which stands behind it. The first run chose its paths by itself."""
    rows, first = rows_of(name), {}
    for row, rival in zip(rows, rows[1:], strict=False):
        key = (row["model"], row["bench"], row["bytes"])
        if row["peer"] is None and key not in first:
            assert (rival["model"], rival["bench"], rival["bytes"], rival["peer"]) == (*key, "ucx")
            first[key] = (row, rival)
    return first


def host_lines() -> list[str]:
    first = first_run(HOST_ROWS)
    lines = []
    for bench in ("latency", "bandwidth"):
        for model, (one, many) in NAMES.items():
            cells = [f"{one}, us" if bench == "latency" else f"64 {many}, GB/s"]
            for size in (8, 64 * KIB, MIB, 16 * MIB):
                ours, rival = (value(row) for row in first[model, bench, size])
                cells.append(f"{figure(ours)} ({times(ours, against=[rival], bench=bench)})")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def runs_of(sizes: list[int], among: list[int]) -> str:
    """'8 B to 64 B, 1 KB': sizes that follow each other among all that were measured are one range."""
    ranges: list[list[int]] = []
    for size in sizes:
        before = among.index(size) - 1
        if ranges and before >= 0 and ranges[-1][-1] == among[before]:
            ranges[-1].append(size)
        else:
            ranges.append([size])
    named = [[size_name(size) for size in each] for each in ranges]
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(each) for each in named)


def slower_lines() -> list[str]:
    """Where raw UCX is faster: the losses are told as well, all of them."""
    lines = []
    for machine, name in (("16 cores", HOST_ROWS), ("2 cores", "epyc-2-cores-2026-11-26.jsonl")):
        first = first_run(name)
        for bench in ("latency", "bandwidth"):
            for model, (one, many) in NAMES.items():
                among = sorted(size for of, kind, size in first if (of, kind) == (model, bench))
                lost = {}
                for size in among:
                    ours, rival = (value(row) for row in first[model, bench, size])
                    by = ours / rival if bench == "latency" else rival / ours
                    if by > 1:
                        lost[size] = by
                if lost:
                    what = f"a {one}" if bench == "latency" else f"64 {many} in a row"
                    sizes = runs_of(list(lost), among)
                    lines.append(f"| {machine} | {what} | {sizes} | {span(list(lost.values()))} x |")
    return lines


def test_the_tables_are_what_the_rows_say() -> None:
    lines = [
        *two_gpu_lines("latency", [8, 8 * KIB, 64 * KIB, MIB, 16 * MIB]),
        *two_gpu_lines("bandwidth", [8 * KIB, 64 * KIB, MIB, 16 * MIB]),
        *stream_lines(),
        *collective_lines(),
        *host_lines(),
        *slower_lines(),
    ]
    assert [line for line in lines if line not in README.splitlines()] == [], "\n".join(lines)


@needs_brant
def test_the_table_of_the_command_has_all_its_verbs() -> None:
    table = README.split("## The command")[1].split("| variable |")[0]
    listed = re.split(r"^Subcommands:\n", brant("--help").stdout, flags=re.MULTILINE)[1]
    assert set(re.findall(r"`brant (\w+)", table)) == set(re.findall(r"^  (\w+)", listed, re.MULTILINE))


@needs_brant
def test_the_options_of_the_table_exist() -> None:
    for line in README.split("## The command")[1].split("| variable |")[0].splitlines():
        words = re.findall(r"`brant ((?:[a-z]+ ?)+)", line)
        options = re.findall(r"(?<![\w-])--[a-z][\w-]*", line)
        if options:
            known = "".join(brant(*words_of_verb(word), "--help").stdout for word in words)
            assert [option for option in options if option not in known] == [], line


def words_of_verb(text: str) -> list[str]:
    """`bench latency` of the table is a verb with a noun; what follows `run` is not."""
    verb, *rest = text.split()
    return [verb, *rest[:1]] if verb in {"bench", "trace"} else [verb]


def test_the_variables_are_those_that_programs_read() -> None:
    known = set(re.findall(r'"(BRANT_[A-Z_]+)"', (ROOT / "src" / "base" / "variables.cc").read_text()))
    pages = [README, *(page.read_text() for page in (ROOT / "docs" / "guide").glob("*.md"))]
    named = {name for text in pages for name in re.findall(r"BRANT_[A-Z_]+", text)}
    headers = [header.read_text() for header in (ROOT / "include").rglob("*.h")]
    macros = {name for text in headers for name in re.findall(r"# *define (BRANT_[A-Z_]+)", text)}
    assert len(named - macros) > 10 and named - macros - known == set()
