"""The test programs of the bundle, or of the build, as steps."""

from __future__ import annotations

import dataclasses
import os

from gpu_checks.check import ROOT, Check, Step
from gpu_checks.figures import test_figure

# What a test starts and looks for beside itself.
HELPERS = {"wire_ucx_test": "wire_peer", "wire_kill_test": "wire_peer"}


@dataclasses.dataclass
class PackedTest:
    """A line of tests.tsv."""

    name: str
    program: str
    ranks: int
    seconds: int
    labels: list[str]
    environment: dict[str, str]


def packed_tests(check: Check) -> list[PackedTest]:
    table = next((path for path in (check.bin / "tests.tsv", ROOT / "build/release/tests.tsv") if path.exists()), None)
    tests = []
    for line in table.read_text().splitlines() if table else []:
        name, program, ranks, seconds, labels, settings = line.split("\t")
        environment = dict(each.split("=", 1) for each in settings.split())
        tests.append(PackedTest(name, program, int(ranks), int(seconds), labels.split(","), environment))
    return tests


# Ranks that share a GPU cannot both have kernels there that wait for each other: of these programs run what one does.
OF_ONE_RANK = {
    "halo_exchange_test": "*device_alone*:HaloStream.*:HaloDirect.*",
    "halo_modes_test": "*within_one_task/device*",
}
# Each case starts processes that open a GPU, for seconds: the others go by memory of the host alone.
WHERE_GPUS_MATTER = {"coll_fault_test": "CollFaultOn*"}


def test_steps(check: Check) -> list[Step]:
    """The packed tests that GPUs matter to, also those that run a program again with another path. What needs two
    processes gets two GPUs; those that kill processes start three themselves, which share what there is."""
    steps = []
    for test in packed_tests(check):
        wanted = {"gpu", "conformance", "multi", "fault", "kernels"} & set(test.labels)
        kernels = "kernels" in test.labels  # On the emulated device as they are built; here on a GPU.
        emulated = test.environment.get("BRANT_GPU") == "emulated" and not kernels
        if not wanted or emulated or test.name.startswith("boot") or "BRANT_TEST_OWN_HOSTS" in test.environment:
            continue
        kills = "fault" in test.labels
        group = next((each for each in ("memory", "wire", "rma") if test.name.startswith(each)), "channel")
        group = "kill" if kills else "notify" if kernels else group
        command = [check.program(test.program)]
        alone = {"CUDA_VISIBLE_DEVICES": "0"} if test.ranks == 0 and group == "memory" else {}
        environment = {"BRANT_CALIBRATION": "off", **test.environment, **alone}
        if test.ranks > 0:
            job = [check.program("brant"), "run", "-n", str(test.ranks), "--timeout", str(test.seconds), "--"]
            command = [*job, *command]
        if group != "memory":
            environment["BRANT_GPU"] = "cuda"
        if kernels:
            environment["BRANT_TEST_GPU"] = "cuda"
            if test.program in OF_ONE_RANK:
                environment["GTEST_FILTER"] = OF_ONE_RANK[test.program]
        if kills:
            environment["BRANT_SHARE_GPU"] = "1"
            if test.program in WHERE_GPUS_MATTER:
                environment["GTEST_FILTER"] = WHERE_GPUS_MATTER[test.program]
        gpus = 1 if kills or kernels else test.ranks
        step = Step(f"test {test.name}", group, command, min(test.seconds, 150), gpus, environment, figure=test_figure)
        needed = (test.program, HELPERS.get(test.program, test.program))
        missing = [program for program in needed if not os.access(check.program(program), os.X_OK)]
        steps.append(dataclasses.replace(step, command=[check.program(missing[0])]) if missing else step)
    return steps or [Step("tests", "memory", [check.program("tests.tsv")])]
