#!/usr/bin/env python3
"""Draws how long a step of heat3d takes, one-sided and two-sided, from rows that it wrote (`heat3d --json FILE`).

    tools/plot_heat3d.py FILE ... [--out heat3d.svg]      the histograms, medians marked
    tools/plot_heat3d.py FILE ... --table                 median, p99 and p99/p50 as a Markdown table

Of several rows of one mode the last one counts. Drawing needs Matplotlib (requirements-plots.txt says how to get it).
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from plot_paths import STYLE, RowError, read_rows, write_svg  # noqa: E402  (it lies beside this file)

COLOURS = {"one-sided": "#0072b2", "two-sided": "#d55e00"}


def select_runs(rows: Iterable[dict]) -> dict[str, dict]:
    """The last row of each mode. Throws RowError: there is none, or one without its histogram."""
    latest = {row.get("mode"): row for row in rows if row["bench"] == "heat3d"}
    runs = {mode: latest[mode] for mode in COLOURS if mode in latest}
    if not runs:
        raise RowError("no rows of heat3d: make some with 'heat3d --mode both --json FILE'")
    for mode, row in runs.items():
        histogram = row.get("histogram")
        if not isinstance(histogram, dict) or not histogram.get("counts") or not histogram.get("bin_us", 0) > 0:
            raise RowError(f"the row of heat3d, {mode}, has no histogram")
    return runs


def outline(row: dict) -> tuple[list[float], list[float]]:
    """The edges of the bins, and the percentage of all windows for each microsecond of a bin: two runs may have bins of
    two widths."""
    histogram = row["histogram"]
    edges = [histogram["from_us"] + i * histogram["bin_us"] for i in range(len(histogram["counts"]) + 1)]
    return edges, [100 * count / row["n"] / histogram["bin_us"] for count in histogram["counts"]]


def table_lines(runs: dict[str, dict]) -> list[str]:
    lines = ["| mode | windows | median us | p99 us | p99/p50 |", "|---|---|---|---|---|"]
    for mode, row in runs.items():
        us = row["us"]
        lines.append(f"| {mode} | {row['n']} | {us['p50']:.1f} | {us['p99']:.1f} | {us['p99'] / us['p50']:.3f} |")
    return lines


def draw(runs: dict[str, dict], file: pathlib.Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        picture = Figure(figsize=(7.2, 4.8), layout="constrained")
        axes = picture.add_subplot()
        for mode, row in runs.items():
            edges, heights = outline(row)
            us = row["us"]
            label = f"{mode}: median {us['p50']:.1f} us, p99/p50 {us['p99'] / us['p50']:.2f}"
            axes.stairs(heights, edges, fill=True, alpha=0.45, color=COLOURS[mode], label=label)
            axes.axvline(us["p50"], color=COLOURS[mode], linewidth=1.3, linestyle="--")
        axes.set_xlabel("microseconds of a step, over a sliding window of two")
        axes.set_ylabel("% of the windows, for each microsecond")
        axes.legend(frameon=False)
        axes.set_title(title_of(runs), fontsize=10, loc="left")
        write_svg(picture, file)


def title_of(runs: dict[str, dict]) -> str:
    row = next(iter(runs.values()))
    cells = " x ".join(map(str, row["cells"]))
    versions = ", ".join(sorted({run["brant"] for run in runs.values()}))
    return (
        f"heat3d, {cells} cells, {row['ranks']} processes, {row['gpu'] or row['memory'] + ' memory'}\nbrant {versions}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE", help="rows, as heat3d wrote them")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("heat3d.svg"), help="the picture")
    parser.add_argument("--table", action="store_true", help="print a table, draw nothing")
    options = parser.parse_args()
    try:
        runs = select_runs(read_rows(options.files))
        if options.table:
            print(*table_lines(runs), sep="\n")
            return 0
        draw(runs, options.out)
        print(f"plot_heat3d: {options.out}: {', '.join(runs)}")
    except RowError as fault:
        print(f"plot_heat3d: {fault}", file=sys.stderr)
        return 1
    except ImportError as fault:
        print(f"plot_heat3d: {fault}; requirements-plots.txt says how to get Matplotlib", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
