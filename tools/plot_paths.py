#!/usr/bin/env python3
"""Draws what the paths between two GPUs cost, from the measured rows in docs/numbers.

    tools/plot_paths.py [--machine NAME] [--brant VERSION ...] [--out FOLDER]     latency.svg and bandwidth.svg
    tools/plot_paths.py --table [--memory KIND]                                   the same as Markdown tables

Of several rows of one path and size the latest wins: the last one in the last file. Drawing needs Matplotlib
(requirements-plots.txt says how to get it); everything else, tables too, only Python 3.10.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import pathlib
import sys
from collections.abc import Collection, Iterable

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs" / "numbers"
PICTURES = ROOT / "docs" / "how-it-works"
MACHINE = "h100x2"
WINDOWS = {"latency": 1, "bandwidth": 64}
RAW_UCX = "raw UCX"
KIB, MIB = 1 << 10, 1 << 20
TABLE_SIZES = (8, KIB, 8 * KIB, 64 * KIB, 512 * KIB, MIB, 4 * MIB, 16 * MIB)

# Every path looks the same in every picture. Colours that most colour-blind people tell apart, and marks for all.
LOOKS = {
    "courier": ("#d55e00", "o"),
    "kernel": ("#cc79a7", "D"),
    "copy_engine": ("#0072b2", "s"),
    "shm": ("#56b4e9", "P"),
    "ucx": ("#009e73", "^"),
    RAW_UCX: ("#000000", "x"),
    "staged": ("#999999", "v"),
}


# The same figures give the same file.
STYLE = {
    "svg.hashsalt": "brant",
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
}


class RowError(Exception):
    """A row that cannot be read; the text names file and line."""


@dataclasses.dataclass(frozen=True)
class Point:
    bytes: int
    value: float  # microseconds one way, or 1e9 bytes a second
    brant: str  # the version that was measured
    gpu: str | None


Series = dict[str, list[Point]]


# --- Rows to series: pure, and without Matplotlib -----------------------------------------------------------------


def parse_row(line: str, where: str) -> dict:
    try:
        row = json.loads(line)
    except ValueError as fault:
        raise RowError(f"{where}: no JSON: {fault}") from fault
    if not isinstance(row, dict) or not isinstance(row.get("bench"), str):
        raise RowError(f"{where}: not a row: it has no 'bench'")
    if row["bench"] in WINDOWS:
        check_transfer(row, where)
    return row


def check_transfer(row: dict, where: str) -> None:
    for field in ("model", "memory", "path", "bytes", "window", "ranks", "us", "peer", "brant", "gpu"):
        if field not in row:
            raise RowError(f"{where}: a row of '{row['bench']}' without '{field}'")
    for field in ("bytes", "window", "ranks"):
        if type(row[field]) is not int or row[field] < 0:
            raise RowError(f"{where}: '{field}' is {row[field]!r}, no count")
    p50 = row["us"].get("p50") if isinstance(row["us"], dict) else None
    if type(p50) not in (int, float) or not p50 > 0:
        raise RowError(f"{where}: 'us' has no positive 'p50'")


def read_rows(files: Iterable[pathlib.Path]) -> list[dict]:
    """The rows of all files, in order. Throws RowError, also for a file that cannot be read."""
    rows = []
    for file in files:
        try:
            lines = file.read_text().splitlines()
        except OSError as fault:
            raise RowError(f"{file}: {fault.strerror}") from fault
        rows += [parse_row(line, f"{file}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    return rows


def series_name(row: dict) -> str | None:
    """What a transfer's row is drawn as; None: nothing, it is another program's."""
    return {None: row["path"], "ucx": RAW_UCX}.get(row["peer"])


def select_series(
    rows: Iterable[dict], bench: str, memory: str = "cuda", versions: Collection[str] | None = None
) -> Series:
    """One series per path, ascending by size. Channels between two processes only; sizes that are no power of two stand
    for edges that a check of the bytes went along, not for measurements. `versions`: only rows of these builds."""
    latest: dict[str, dict[int, Point]] = {}
    for row in rows:
        if row["bench"] != bench or row["model"] != "channel" or row["memory"] != memory or row["ranks"] != 2:
            continue
        name, size = series_name(row), row["bytes"]
        if name is None or row["window"] != WINDOWS[bench] or size == 0 or size & (size - 1):
            continue
        if versions is not None and row["brant"] not in versions:
            continue
        p50 = row["us"]["p50"]
        # Not the row's gb_s: four digits behind the point are too few for small messages.
        value = p50 if bench == "latency" else size * row["window"] / p50 / 1e3
        latest.setdefault(name, {})[size] = Point(size, value, row["brant"], row["gpu"])
    known = [name for name in LOOKS if name in latest] + sorted(set(latest) - set(LOOKS))
    return {name: [latest[name][size] for size in sorted(latest[name])] for name in known}


def versions_of(series: Series) -> list[str]:
    return sorted({point.brant for points in series.values() for point in points})


def short(size: int) -> str:
    for unit, name in ((MIB, "M"), (KIB, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def figure(value: float) -> str:
    """Three digits: more would be noise."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def table_lines(series: Series, sizes: Iterable[int] = TABLE_SIZES) -> list[str]:
    """As Markdown: a line per size, a column per path."""
    lines = ["| bytes | " + " | ".join(series) + " |", "|---" * (len(series) + 1) + "|"]
    for size in sizes:
        values = [next((figure(p.value) for p in points if p.bytes == size), "-") for points in series.values()]
        lines.append(f"| {short(size)} | " + " | ".join(values) + " |")
    return lines


# --- Series to pictures -------------------------------------------------------------------------------------------


def draw(series: Series, bench: str, file: pathlib.Path) -> None:
    """The same series give the same bytes: no date, fixed ids, text as text."""
    import matplotlib
    from matplotlib import ticker
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        picture = Figure(figsize=(7.2, 4.8), layout="constrained")
        axes = picture.add_subplot()
        for name, points in series.items():
            colour, mark = LOOKS.get(name, ("#e69f00", "."))
            sizes, values = [point.bytes for point in points], [point.value for point in points]
            axes.plot(sizes, values, label=name, color=colour, marker=mark, markersize=4, linewidth=1.3)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks([8**power for power in range(9)])
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda size, _: short(int(size))))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        steps = (1, 2, 5) if bench == "latency" else (1,)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=steps, numticks=20))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_xlabel("bytes of one message")
        axes.set_ylabel("microseconds, one way" if bench == "latency" else "1e9 bytes a second, 64 messages in flight")
        axes.legend(frameon=False)
        axes.set_title(title_of(series, bench), fontsize=10, loc="left")
        write_svg(picture, file)


def write_svg(picture, file: pathlib.Path) -> None:
    drawn = io.StringIO()
    picture.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(line.rstrip() + "\n" for line in drawn.getvalue().splitlines()))


def title_of(series: Series, bench: str) -> str:
    gpus = sorted({point.gpu for points in series.values() for point in points if point.gpu})
    what = "Latency" if bench == "latency" else "Bandwidth"
    where = f"{what}, GPU memory to GPU memory, 2 x {', '.join(gpus)}, medians"
    return f"{where}\nrows of brant {', '.join(versions_of(series))}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default=MACHINE, help=f"whose files of docs/numbers (default {MACHINE})")
    parser.add_argument("--brant", action="append", metavar="VERSION", help="only rows of this build; may be repeated")
    parser.add_argument("--out", type=pathlib.Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument("--table", action="store_true", help="print tables, draw nothing")
    parser.add_argument("--memory", default="cuda", help="kind of memory, for --table (default cuda)")
    options = parser.parse_args()
    try:
        rows = read_rows(sorted(NUMBERS.glob(f"{options.machine}-*.jsonl")))
        for bench in WINDOWS:
            memory = options.memory if options.table else "cuda"
            series = select_series(rows, bench, memory, options.brant)
            if not series:
                raise RowError(f"{NUMBERS}: no rows of '{bench}' in {memory} memory for machine {options.machine}")
            if options.table:
                print(f"{bench}, brant {', '.join(versions_of(series))}", *table_lines(series), "", sep="\n")
                continue
            file = options.out / f"{bench}.svg"
            draw(series, bench, file)
            print(f"plot_paths: {file}: {', '.join(series)}; brant {', '.join(versions_of(series))}")
    except RowError as fault:
        print(f"plot_paths: {fault}", file=sys.stderr)
        return 1
    except ImportError as fault:
        print(f"plot_paths: {fault}; requirements-plots.txt says how to get Matplotlib", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
