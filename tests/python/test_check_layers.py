"""The layer check finds each kind of violation, and finds none in a tree that keeps the rules."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check_layers.py"

# A small tree that keeps every rule: the control for the tests below.
GOOD = {
    "include/brant/base/status.h": "#include <string>\n",
    "include/brant/core/op.h": '#include "brant/base/status.h"\n',
    "include/brant/channel/channel.h": '#include "brant/core/op.h"\n',
    "include/brant/pgas/pointer.h": '#include "brant/rma/put.h"\n',
    "include/brant/rma/put.h": "#include <cstddef>\n",
    "include/brant/ops/notify.h": '#include "brant/ops/notify/bell.h"\n',
    "include/brant/ops/notify/bell.h": "",
    "include/brant/brant.h": '#include "brant/channel/channel.h"\n#include "brant/pgas/pointer.h"\n',
    "src/base/log.h": "#include <fmt/format.h>\n#include <unistd.h>\n#include <sys/mman.h>\n",
    "src/port/wire.h": '#include "base/log.h"\n',
    "src/port/wire/ucx/worker.h": '#include <ucp/api/ucp.h>\n#include "port/wire.h"\n',
    "src/port/wire/ucx/worker.cc": '#include "port/wire/ucx/worker.h"\n',
    "src/port/memory/cuda/driver.cc": '#include <cuda.h>\n#include "base/log.h"\n',
    "src/port/link/shared_memory/peer.h": "#include <vector>\n",
    "bench/nccl/library.cc": "#include <nccl.h>\n",
    "src/port/wire/select.cc": '#include "port/wire/ucx/worker.h"\n',
    "src/core/worker.cc": '#include "brant/core/op.h"\n#include "port/wire/ucx/worker.h"\n',
    "src/ops/rma/rma.h": '#include "brant/rma/put.h"\n',
    "src/ops/channel/sends.cc": '#include "ops/rma/rma.h"\n',
    "src/ops/channel/channel.h": '#include "brant/channel/channel.h"\n',
    "src/ops/channel/records/channel.h": "",
    "src/models/pgas/pgas.cc": '#include "ops/coll/../rma/rma.h"\n',
    "src/models/chare/chare.h": "",
    "src/cli/main.cc": '#include <CLI/CLI.hpp>\n#include "core/../base/log.h"\n',
    "apps/jacobi3d/main.cc": '#include "brant/brant.h"\n#include "grid.h"\n',
    "apps/jacobi3d/grid.h": "",
    "apps/jacobi3d/kernels.cu": "#include <cuda_runtime.h>\n",
    "tests/unit/log_test.cc": '#include <gtest/gtest.h>\n#include "base/log.h"\n',
}

# What the small tree opens, in place of what the real one does.
INTERFACE = {"ops/rma": ["rma.h"]}


def check(
    root: pathlib.Path, files: dict[str, str], interface: dict[str, list[str]] = INTERFACE
) -> subprocess.CompletedProcess[str]:
    opened = "".join(f"{json.dumps(unit)} = {json.dumps(names)}\n" for unit, names in interface.items())
    rules = (ROOT / "layers.toml").read_text()
    rules, changed = re.subn(r"(?m)^\[interface\]\n(?:[^\[\n].*\n)*", f"[interface]\n{opened}", rules)
    assert changed == 1, "layers.toml has no [interface]"
    (root / "layers.toml").write_text(rules)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, CHECK, root], text=True, capture_output=True)


def test_accepts_a_tree_that_keeps_the_rules(tmp_path):
    done = check(tmp_path, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"check_layers: {len(GOOD)} files, 0 faults\n"


@pytest.mark.parametrize(
    ("path", "line", "unit", "reason"),
    [
        ("src/base/log.cc", '#include "core/worker.h"', "base", "storey above"),
        ("src/core/x.cc", '#include "models/chare/chare.h"', "core", "storey above"),
        ("include/brant/core/x.h", '#include "brant/channel/channel.h"', "core", "storey above"),
        ("src/models/pgas/x.cc", '#include "models/chare/chare.h"', "models/pgas", "siblings"),
        ("src/ops/rma/x.cc", '#include "ops/channel/channel.h"', "ops/rma", "siblings"),
        ("src/models/pgas/x.cc", '#include "ops/channel/channel.h"', "models/pgas", "is ops/channel's own"),
        ("include/brant/rma/x.h", '#include "brant/channel/channel.h"', "ops/rma", "siblings"),
        (
            "src/port/link/shared_memory/x.cc",
            '#include "port/wire/ucx/worker.h"',
            "port/link/shared_memory",
            "siblings",
        ),
        ("src/port/x.h", '#include "port/wire/ucx/worker.h"', "port", "knows none of its parts"),
        ("src/port/boot/x.h", '#include "port/wire/ucx/worker.h"', "port", "knows none of its parts"),
        ("src/cli/x.cc", '#include "unit/double.h"', "cli", "storey above"),
        ("apps/jacobi3d/x.cc", '#include "base/log.h"', "apps", "as a user would"),
        ("apps/jacobi3d/x.cc", '#include "port/wire/ucx/worker.h"', "apps", "as a user would"),
        ("apps/jacobi3d/x.cc", '#include "port/wire.h"', "apps", "as a user would"),
        ("src/cli/x.cc", '#include "../../apps/jacobi3d/grid.h"', "cli", "siblings"),
        ("include/brant/core/x.h", '#include "core/worker.h"', "core", "only public headers"),
        ("include/brant/core/x.h", "#include <fmt/format.h>", "core", "name no outside library"),
        ("include/brant/brant_x.h", "#include <ucp/api/ucp.h>", "include", "name no outside library"),
        ("src/core/x.cc", "#include <ucp/api/ucp.h>", "core", "only port/wire/ucx, bench/ucx may"),
        ("src/port/memory/cuda/x.cc", "#include <nccl.h>", "port/memory/cuda", "only bench/nccl may"),
        ("src/core/x.cc", "#  include  <cuda.h>", "core", "only port/memory/cuda may"),
        ("src/port/wire/ucx/x.cc", "#include <cudaTypedefs.h>", "port/wire/ucx", "only port/memory/cuda may"),
        ("src/ops/notify/x.cc", "#include <cuda_runtime.h>", "ops/notify", "only .cu, .cuh may"),
        ("src/port/boot/launcher/x.cc", '#include "pmix.h"', "port/boot/launcher", "only port/boot/pmix may"),
        ("src/core/x.cc", "#include <nlohmann/json.hpp>", "core", "only cli"),
        ("src/base/x.cc", "#include <gtest/gtest.h>", "base", "only tests may"),
        ("src/core/x.cc", "#include <boost/context/fiber.hpp>", "core", "only models/mpi/ranks may"),
        ("src/core/x.cc", "#include <absl/strings/str_cat.h>", "core", "knows no such outside library"),
        ("src/core/x.cc", '#include "core/missing.hpp"', "core", "no file of this tree"),
    ],
)
def test_names_the_violation(tmp_path, path, line, unit, reason):
    extra = {"src/core/worker.h": "", "tests/unit/double.h": "", path: f"// first line\n{line}\n"}
    done = check(tmp_path, GOOD | extra)
    assert done.returncode == 1
    faults = done.stdout.splitlines()[:-1]
    assert len(faults) == 1, done.stdout
    assert faults[0].startswith(f"{path}:2: {unit} may not include ")
    assert reason in faults[0]


def test_reports_a_folder_outside_all_storeys(tmp_path):
    done = check(tmp_path, {"src/helpers/x.cc": ""}, interface={})
    assert done.returncode == 1
    assert "src/helpers/x.cc: this folder belongs to no storey" in done.stdout


def test_an_edge_allows_one_direction_only(tmp_path):
    done = check(tmp_path, GOOD | {"src/ops/coll/coll.h": "", "src/ops/rma/x.cc": '#include "ops/coll/coll.h"\n'})
    assert done.returncode == 1
    assert 'ops/rma may not include "ops/coll/coll.h": ops/rma and ops/coll are siblings' in done.stdout


def test_files_that_must_not_compile_are_left_alone(tmp_path):
    done = check(tmp_path, GOOD | {"tests/compile_fail/x.cc": "#include <boost/any.hpp>\n"})
    assert done.returncode == 0, done.stdout


def test_a_test_may_look_at_what_is_a_units_own(tmp_path):
    done = check(tmp_path, GOOD | {"tests/unit/x_test.cc": '#include "ops/channel/channel.h"\n'})
    assert done.returncode == 0, done.stdout + done.stderr


PGAS = {"src/models/pgas/x.cc": '#include "ops/channel/channel.h"\n'}


@pytest.mark.parametrize("opened", [["channel.h"], ["*"]])
def test_what_a_unit_opens_may_be_included(tmp_path, opened):
    done = check(tmp_path, GOOD | PGAS, INTERFACE | {"ops/channel": opened})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_header_is_known_by_its_whole_path(tmp_path):
    inner = {"src/models/pgas/y.cc": '#include "ops/channel/records/channel.h"\n'}
    done = check(tmp_path, GOOD | PGAS | inner, INTERFACE | {"ops/channel": ["channel.h"]})
    assert done.returncode == 1
    assert "records/channel.h is ops/channel's own. Ask through channel.h" in done.stdout
    done = check(tmp_path, GOOD | PGAS | inner, INTERFACE | {"ops/channel": ["channel.h", "records/channel.h"]})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_unit_of_another_storey_is_closed_once_it_is_named(tmp_path):
    files = GOOD | {"src/cli/x.cc": '#include "models/chare/chare.h"\n'}
    assert check(tmp_path, files).returncode == 0
    done = check(tmp_path, files, INTERFACE | {"models/chare": []})
    assert done.returncode == 1
    assert "chare.h is models/chare's own. Ask through its public headers" in done.stdout


@pytest.mark.parametrize(
    ("unit", "name"),
    [("ops/channel", "channel.h"), ("ops/channel", "*"), ("ops/rma", "gone.h"), ("ops/gone", "x.h")],
)
def test_a_name_that_nobody_needs_open_is_reported(tmp_path, unit, name):
    own = {
        "src/ops/channel/x.cc": '#include "ops/channel/channel.h"\n',
        "tests/unit/x_test.cc": '#include "ops/channel/channel.h"\n',
    }
    done = check(tmp_path, GOOD | own, INTERFACE | {unit: INTERFACE.get(unit, []) + [name]})
    assert done.returncode == 1
    faults = done.stdout.splitlines()[:-1]
    assert faults == [f"layers.toml: [interface] opens {name} of {unit} and no other unit includes it. Drop the name"]
