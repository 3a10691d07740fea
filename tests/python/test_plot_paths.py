"""tools/plot_paths.py without Matplotlib: which rows become which series. And the page that shows them: its links, the
code it names and its tables hold."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-it-works" / "paths.md"

spec = importlib.util.spec_from_file_location("plot_paths", ROOT / "tools" / "plot_paths.py")
plot_paths = importlib.util.module_from_spec(spec)
sys.modules["plot_paths"] = plot_paths
spec.loader.exec_module(plot_paths)

ROW = {
    "bench": "latency", "model": "channel", "memory": "cuda", "trigger": "host", "path": "courier", "bytes": 8,
    "window": 1, "ranks": 2, "n": 10, "us": {"min": 3.0, "p50": 4.0, "p99": 5.0}, "gb_s": 0.002, "peer": None,
    "brant": "0.1.0+gaaaaaaa", "gpu": "GPU",
}  # fmt: skip


def row(us: float = 4.0, **changes) -> dict:
    return {**ROW, "us": {"min": us, "p50": us, "p99": us}, **changes}


def values(series: dict) -> dict[str, list[tuple[int, float]]]:
    return {name: [(point.bytes, point.value) for point in points] for name, points in series.items()}


def write(folder: pathlib.Path, name: str, *lines: str) -> pathlib.Path:
    file = folder / name
    file.write_text("\n".join(lines) + "\n")
    return file


# --- Rows to series -----------------------------------------------------------------------------------------------


def test_the_latest_row_of_a_path_and_size_wins_across_files(tmp_path: pathlib.Path) -> None:
    earlier = write(tmp_path, "m-1.jsonl", json.dumps(row(9)), json.dumps(row(7, bytes=64)))
    later = write(tmp_path, "m-2.jsonl", json.dumps(row(5)), "", json.dumps(row(6)))
    series = plot_paths.select_series(plot_paths.read_rows([earlier, later]), "latency")
    assert values(series) == {"courier": [(8, 6), (64, 7)]}


def test_raw_ucx_is_no_path_of_ours_and_other_rows_are_left_out() -> None:
    rows = [
        row(10, path="ucx"),
        row(9, path="ucx", peer="ucx"),
        row(8, path="ucx", peer="ucx_perftest"),
        row(1, bytes=0),
        row(2, bytes=8193),
        row(3, memory="host"),
        row(3, model="message"),
        row(3, ranks=4),
        row(3, bench="bandwidth", window=64),
    ]
    assert values(plot_paths.select_series(rows, "latency")) == {"ucx": [(8, 10)], "raw UCX": [(8, 9)]}
    assert values(plot_paths.select_series(rows, "latency", "host")) == {"courier": [(8, 3)]}


def test_bandwidth_comes_from_the_median_and_not_from_the_rounded_field() -> None:
    rows = [row(512.0, bench="bandwidth", window=64, gb_s=0.0), row(1.0, bench="bandwidth", window=32, bytes=16)]
    assert values(plot_paths.select_series(rows, "bandwidth")) == {"courier": [(8, 0.001)]}


def test_rows_of_one_build_can_be_asked_for() -> None:
    rows = [row(4), row(5, brant="0.1.0+gbbbbbbb", path="staged"), row(6, brant="0.1.0+gbbbbbbb")]
    assert values(plot_paths.select_series(rows, "latency", versions=["0.1.0+gaaaaaaa"])) == {"courier": [(8, 4)]}
    series = plot_paths.select_series(rows, "latency")
    assert list(series) == ["courier", "staged"], "always in one order, so that colours and legends stay"
    assert plot_paths.versions_of(series) == ["0.1.0+gbbbbbbb"]


def test_a_path_that_is_new_is_drawn_too() -> None:
    assert list(plot_paths.select_series([row(path="pigeon"), row()], "latency")) == ["courier", "pigeon"]


def test_rows_of_other_programs_may_have_other_fields(tmp_path: pathlib.Path) -> None:
    file = write(tmp_path, "m-1.jsonl", json.dumps({"bench": "jacobi3d", "per_iteration_us": 1}), json.dumps(row()))
    assert len(plot_paths.read_rows([file])) == 2


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"bench": "latency"', "no JSON"),
        ("[]", "it has no 'bench'"),
        ('{"model": "channel"}', "it has no 'bench'"),
        (json.dumps({name: ROW[name] for name in ROW if name != "window"}), "without 'window'"),
        (json.dumps({**ROW, "bytes": "8"}), "'bytes' is '8', no count"),
        (json.dumps({**ROW, "bytes": -8}), "'bytes' is -8, no count"),
        (json.dumps({**ROW, "us": 4}), "no positive 'p50'"),
        (json.dumps({**ROW, "us": {"p50": None}}), "no positive 'p50'"),
        (json.dumps(row(0)), "no positive 'p50'"),
    ],
)
def test_a_broken_row_is_named_by_file_and_line(line: str, text: str, tmp_path: pathlib.Path) -> None:
    file = write(tmp_path, "m-1.jsonl", json.dumps(row()), line)
    with pytest.raises(plot_paths.RowError) as fault:
        plot_paths.read_rows([file])
    assert str(fault.value).startswith(f"{file}:2: ") and text in str(fault.value)


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(plot_paths.RowError, match=re.escape(f"{tmp_path / 'none'}: No such file")):
        plot_paths.read_rows([tmp_path / "none"])


def test_a_table_has_a_line_per_size_and_three_digits() -> None:
    series = plot_paths.select_series([row(4.0), row(1234.4, bytes=1 << 20), row(0.3219, path="ucx")], "latency")
    assert plot_paths.table_lines(series, [8, 1 << 20]) == [
        "| bytes | courier | ucx |",
        "|---|---|---|",
        "| 8 | 4.00 | 0.322 |",
        "| 1M | 1234 | - |",
    ]


@pytest.mark.parametrize(
    ("arguments", "matplotlib", "text"),
    [
        (["--machine", "abacus"], None, "no rows of 'latency' in cuda memory for machine abacus"),
        ([], None, "requirements-plots.txt says how to get Matplotlib"),
    ],
)
def test_what_is_missing_is_said(arguments: list[str], matplotlib: None, text: str, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)  # as if it were not installed
    monkeypatch.setattr(sys, "argv", ["plot_paths.py", *arguments])
    assert plot_paths.main() == 1
    assert text in capsys.readouterr().err


# --- The page -----------------------------------------------------------------------------------------------------


def shown_versions() -> list[str]:
    """The builds whose rows the page says it shows."""
    return re.search(r"^Rows of brant ([^(]+) \(", PAGE.read_text(), re.MULTILINE).group(1).split(", ")


def test_every_local_link_of_the_page_resolves() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", PAGE.read_text())
    assert len(links) > 5
    missing = [link for link in links if "://" not in link and not (PAGE.parent / link).exists()]
    assert missing == []


def defines(text: str, name: str) -> bool:
    """Whether C++ text declares or defines it: a type and the name, not a call."""
    function = rf"^\s*(?!return\b|else\b)(?:[\w:<>,*&\[\]\"]+\s+)+[*&]?(?:\w+::)?{name}\("
    return re.search(rf"{function}|^\s*(?:class|struct|enum class) {name}\b", text, re.MULTILINE) is not None


def test_a_call_is_no_definition() -> None:
    assert not defines("  keep(message, {});\n  return keep(message);\n  x = keep();\n", "keep")
    assert defines("void Receiver::keep(const Message& message) {", "keep")
    assert defines("struct Keeper {", "Keeper") and not defines("struct Keeper {", "Keep")


def test_every_function_that_the_page_names_is_there() -> None:
    named = re.findall(r"`([\w./-]+\.(?:h|cc|cu|cuh)):(\w+)`", PAGE.read_text())
    assert len(named) > 30
    files = {file for file, _ in named}
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert [f"{file}:{name}" for file, name in named if not defines((ROOT / file).read_text(), name)] == []


def test_the_tables_of_the_page_are_what_the_rows_say() -> None:
    rows = plot_paths.read_rows(sorted(plot_paths.NUMBERS.glob(f"{plot_paths.MACHINE}-*.jsonl")))
    tables = re.findall(r"^\| bytes \|.*\n(?:\|.*\n)+", PAGE.read_text(), re.MULTILINE)
    wanted = [
        "\n".join(plot_paths.table_lines(plot_paths.select_series(rows, bench, memory, shown_versions()))) + "\n"
        for memory in ("cuda", "host")
        for bench in ("latency", "bandwidth")
    ]
    assert tables == wanted, "tools/plot_paths.py --table prints them"


@pytest.mark.parametrize("bench", ["latency", "bandwidth"])
def test_the_committed_pictures_are_small_and_show_the_same_rows(bench: str) -> None:
    picture = (PAGE.parent / f"{bench}.svg").read_text()
    assert len(picture) < 100_000
    drawn = re.search(r"rows of brant ([^<]+)</text>", picture).group(1).split(", ")
    rows = plot_paths.read_rows(sorted(plot_paths.NUMBERS.glob(f"{plot_paths.MACHINE}-*.jsonl")))
    series = plot_paths.select_series(rows, bench, "cuda", shown_versions())
    assert drawn == plot_paths.versions_of(series), "draw it anew: tools/plot_paths.py"
    assert "<dc:date>" not in picture
