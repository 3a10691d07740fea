"""The README's program is the example, and the example runs."""

import re
import subprocess

import pytest
from brant_command import BIN, BRANT, ROOT


def test_the_program_of_the_readme_is_the_example():
    program = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    example = (ROOT / "examples/01_swap/swap.cc").read_text()
    assert example.split("\n", 1)[1] == program


@pytest.mark.parametrize("device", ["none", "emulated"])
def test_the_example_runs(device):
    command = [BRANT, "run", "-n", "2", "--timeout", "30", "--env", f"BRANT_GPU={device}", "--", BIN / "swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = {f"[{rank}] rank {rank} has the 1048576 bytes of rank {1 - rank}" for rank in (0, 1)}
    assert lines <= set(done.stdout.splitlines())


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_example_says_how_it_is_started(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert f"an even number of processes, not {ranks}: brant run -n 2 -- swap" in done.stderr, done.stderr


def test_the_example_fails_aloud():
    # One end is forced to another path than the other, so both operations of both ends fail.
    script = f'[ "$BRANT_RANK" = 1 ] && export BRANT_PATH=ucx; exec {BIN}/swap'
    command = [BRANT, "run", "-n", "2", "--keep-going", "--timeout", "30", "--", "/bin/sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=15)  # and soon
    assert done.returncode == 1, done.stderr
    assert "bytes" not in done.stdout, done.stdout
    for rank in (0, 1):
        assert re.search(rf"^\[{rank}\] .*the swap failed: .*", done.stderr, re.MULTILINE), done.stderr


def test_the_example_names_what_it_cannot_open():
    command = [BRANT, "run", "-n", "2", "--timeout", "30", "--env", "BRANT_PATH=no", "--", BIN / "swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "error: BRANT_PATH=no: use" in done.stderr, done.stderr


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_ring_of_chares_runs(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "ring", "8", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = {line.split("] ")[-1] for line in done.stdout.splitlines()}  # one process has no rank in front
    assert f"the token made 40 hops over 8 members on {ranks} ranks" in lines
    assert {f"member {i} on rank {i % ranks}: hello from the main task" for i in range(8)} <= lines


@pytest.mark.parametrize("device", ["none", "emulated"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_stencil_with_post_entries_runs(ranks, device):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "50", "--env", f"BRANT_GPU={device}"]
    done = subprocess.run(
        [*command, "--", BIN / "stencil", "4", "3", "500"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    degrees = "15.38 38.46 61.54 84.62 degrees along the rod after 500 steps"  # a straight line: 100 * cell / 13
    assert degrees in done.stdout, done.stdout


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_blackboard_has_everybodys_line(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "blackboard"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split("] ")[-1] for line in done.stdout.splitlines())
    assert lines == sorted(f"rank {i} was at rank {j}" for i in range(ranks) for j in range(ranks))


@pytest.mark.parametrize(("ranks", "token"), [(1, 0), (2, 5), (4, 30)])
def test_the_token_goes_round_the_ring_of_channels(ranks, token):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "30", "--", BIN / "channel_ring", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"after 5 rounds over {ranks} ranks the token is {token}" in done.stdout, done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_halos_that_are_put_give_a_straight_line(ranks):
    command = [BRANT, "run", "-n", str(ranks), "--timeout", "50", "--", BIN / "put_halo", "4", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = {line.split("] ")[-1] for line in done.stdout.splitlines()}
    cells = 4 * ranks + 1  # from end to end
    assert lines == {
        f"rank {rank}: {100 * (4 * rank + 3) / cells:.2f} degrees in the middle after 2000 steps"
        for rank in range(ranks)
    }


def test_every_rank_gets_its_share_of_the_work_queue():
    command = [BRANT, "run", "-n", "2", "--timeout", "50", "--", BIN / "work_queue", "200", "5000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shares = [int(jobs) for jobs in re.findall(r"rank \d did (\d+) jobs", done.stdout)]
    assert sum(shares) == 200, done.stdout
    # Half of what would be even, since other processes take their part of the cores.
    assert min(shares) >= 10, done.stdout  # the cores may be busy with something else
    assert "the longest way to 1 takes 524 steps" in done.stdout, done.stdout


def test_ranks_of_different_programs_are_refused():
    script = f'if [ "$BRANT_RANK" = 1 ]; then exec {BIN}/chare_cost; else exec {BIN}/ring; fi'
    command = [BRANT, "run", "-n", "2", "--timeout", "30", "--", "/bin/sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "runs another program than rank" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("channels.md", "07_channel_ring/channel_ring.cc"),
        ("chares.md", "06_work_queue/work_queue.cc"),
        ("put.md", "08_put_halo/put_halo.cc"),
    ],
)
def test_the_program_of_a_tutorial_is_an_example(page, example):
    text = (ROOT / "docs/tutorial" / page).read_text()
    assert re.findall(r"```cpp\n(.*?)```", text, re.DOTALL) == [(ROOT / "examples" / example).read_text()]
    assert f"(../../examples/{example})" in text
