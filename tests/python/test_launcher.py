"""`brant run` as its users see it: exit codes, output, signals, and that it leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from brant_command import BRANT, needs_brant

LIMIT_S = 40

pytestmark = needs_brant


def brant_run(*arguments: str, **options) -> subprocess.CompletedProcess:
    options = {"text": True, "capture_output": True, "stdin": subprocess.DEVNULL, "timeout": LIMIT_S, **options}
    return subprocess.run([BRANT, "run", *arguments], **options)


def shell_ranks(count: int, script: str, *options: str, **more) -> subprocess.CompletedProcess:
    return brant_run("-n", str(count), *options, "--", "sh", "-c", script, **more)


def alive(pid: int) -> bool:
    """Whether the process still runs; a zombie that nobody reaped does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def state_of(pid: int) -> str:
    """The letter of ps: T stopped, Z ended."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def read_pid(file: str) -> int:
    text = ""

    def complete() -> bool:
        nonlocal text
        text = pathlib.Path(file).read_text()
        return text.endswith("\n")

    wait_until(complete, file)
    return int(text)


def wait_until(condition, what: str, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


class RunningJob:
    """A job whose ranks write their pids (and those of their children) to files and then sleep."""

    SLEEPER = 'sleep 300 & echo $! > "$DIR/child.$BRANT_RANK"; echo $$ > "$DIR/rank.$BRANT_RANK"; {traps} wait'

    def __init__(self, folder: pathlib.Path, ranks: int, *options: str, traps: str = ""):
        self.process = subprocess.Popen(
            [BRANT, "run", "-n", str(ranks), *options, "--", "sh", "-c", self.SLEEPER.format(traps=traps)],
            env={**os.environ, "DIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # CI itself may run under nohup, and an ignored signal stays ignored in every child.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        names = [f"{kind}.{rank}" for rank in range(ranks) for kind in ("child", "rank")]
        wait_until(
            lambda: all((folder / name).exists() and (folder / name).read_text().strip() for name in names),
            "the ranks wrote their pids",
        )
        self.pids = [int((folder / name).read_text()) for name in names]
        self.rank_pids = [int((folder / f"rank.{rank}").read_text()) for rank in range(ranks)]

    def expect_nothing_left(self, seconds: float = 10) -> None:
        wait_until(lambda: not any(map(alive, self.pids)), "all processes of the job ended", seconds)

    def __enter__(self) -> RunningJob:
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


# --- Exit codes ----------------------------------------------------------------------------------------------------


def test_all_well_is_zero_and_silent():
    done = brant_run("-n", "3", "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_first_failure_gives_the_code_and_ends_the_others():
    start = time.monotonic()
    done = shell_ranks(3, 'if [ "$BRANT_RANK" = 1 ]; then exit 7; fi; exec sleep 60')
    assert done.returncode == 7
    assert time.monotonic() - start < 5
    assert re.search(r"rank 1 \(pid \d+\) ended with exit code 7; ending ranks 0, 2 because of it", done.stderr)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_a_signal_is_128_more_and_named(number):
    done = shell_ranks(2, f'if [ "$BRANT_RANK" = 0 ]; then ulimit -c 0; kill -{int(number)} $$; fi; exec sleep 60')
    assert done.returncode == 128 + number
    assert re.search(rf"rank 0 \(pid \d+\) was killed by signal {int(number)} \(.+\); ending rank 1", done.stderr)


LAST_WORDS = """
    echo $$ > "$0.$BRANT_RANK"
    if [ "$BRANT_RANK" = 1 ]; then while [ ! -s "$0.0" ]; do sleep 0.01; done; {end}; fi
    while [ ! -s "$0.1" ]; do sleep 0.01; done
    read other < "$0.1"
    while kill -0 "$other" 2> /dev/null; do sleep 0.01; done
    echo "last words"
    exit 1
"""


@pytest.mark.parametrize(("end", "blamed"), [("exit 1", "all 2 ranks ended"), ("kill -9 $$", "rank 1 (")])
def test_who_fails_together_or_notices_it_says_all_it_has_to_say(tmp_path, end, blamed):
    # Rank 0 speaks only after the launcher has reaped rank 1, and knows of its failure.
    done = brant_run("-n", "2", "--", "sh", "-c", LAST_WORDS.format(end=end), str(tmp_path / "rank"))
    assert done.returncode == (1 if end == "exit 1" else 137)
    assert done.stdout == "[0] last words\n"
    assert done.stderr.startswith(f"brant run: {blamed}") and done.stderr.count("\n") == 1, done.stderr
    assert "because of it" not in done.stderr


def test_ranks_that_failed_alike_are_named_together():
    done = shell_ranks(4, "exit 6")
    assert (done.returncode, done.stderr) == (6, "brant run: all 4 ranks ended with exit code 6\n")
    done = shell_ranks(3, 'if [ "$BRANT_RANK" = 1 ]; then exec sleep 60; fi; exit 6', "--patience", "0.5")
    assert done.returncode == 6
    assert done.stderr == "brant run: ranks 0, 2 ended with exit code 6; ending rank 1 because of it\n"


def test_patience_ends_with_the_timeout_and_the_first_failure_gives_the_code():
    start = time.monotonic()
    script = 'if [ "$BRANT_RANK" = 1 ]; then exit 7; fi; exec sleep 60'
    done = shell_ranks(2, script, "--patience", "50", "--timeout", "0.5")
    assert done.returncode == 7
    assert time.monotonic() - start < 10
    assert re.search(r"rank 1 \(pid \d+\) ended with exit code 7\n.*longer than 0.5 s.*ending rank 0\n", done.stderr)


def test_quiet_leaves_out_exit_codes_and_not_signals():
    assert shell_ranks(2, "exit 3", "--quiet").stderr == ""
    done = shell_ranks(2, "kill -9 $$", "--quiet")
    assert done.returncode == 137 and "signal 9" in done.stderr


def test_ranks_that_ended_well_are_not_said_to_be_ended():
    done = shell_ranks(2, 'if [ "$BRANT_RANK" = 1 ]; then sleep 0.3; exit 3; fi')
    assert done.returncode == 3
    assert "because" not in done.stderr


def test_a_rank_that_ignores_the_request_is_killed_after_two_seconds():
    start = time.monotonic()
    script = 'if [ "$BRANT_RANK" = 1 ]; then sleep 0.3; exit 9; fi; trap "" TERM; while :; do sleep 0.1; done'
    done = shell_ranks(2, script)
    assert done.returncode == 9
    assert 2 <= time.monotonic() - start < 6
    assert "rank 0 did not end within 2 s" in done.stderr


def test_keep_going_lets_the_others_finish():
    script = 'if [ "$BRANT_RANK" = 1 ]; then kill -9 $$; fi; sleep 0.5; echo done'
    done = shell_ranks(3, script, "--keep-going")
    assert done.returncode == 137
    assert sorted(done.stdout.splitlines()) == ["[0] done", "[2] done"]
    assert "going on with ranks 0, 2" in done.stderr


def test_timeout_ends_the_job_with_124():
    start = time.monotonic()
    done = brant_run("-n", "2", "--timeout", "0.5", "--", "sleep", "60")
    assert done.returncode == 124
    assert time.monotonic() - start < 5
    assert "longer than 0.5 s" in done.stderr and "ranks 0-1" in done.stderr


def test_the_timeout_holds_while_ranks_are_started():
    done = brant_run("-n", "1024", "--timeout", "0.001", "--", "sleep", "60")
    assert done.returncode == 124
    assert "longer than 0.001 s" in done.stderr and "1023" not in done.stderr


def test_program_not_found_is_127_and_said_once():
    done = brant_run("-n", "4", "--", "no-such-program-anywhere")
    assert done.returncode == 127
    assert done.stderr.count("no-such-program-anywhere") == 1
    assert brant_run("--", "./no/such/file").returncode == 127


def test_a_program_beside_brant_is_found_after_path(tmp_path):
    beside, path = tmp_path / "beside", tmp_path / "path"
    for folder in (beside, path):
        folder.mkdir()
    shutil.copy(BRANT, beside / "brant")

    def program(folder: pathlib.Path, mode: int = 0o755) -> None:
        (folder / "neighbour").write_text(f"#!/bin/sh\necho {folder.name}\n")
        (folder / "neighbour").chmod(mode)

    def started() -> subprocess.CompletedProcess:
        command = [beside / "brant", "run", "-n", "1", "--", "neighbour"]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": str(path)})

    missing = started()
    assert missing.returncode == 127
    assert "not found in PATH" in missing.stderr and f"beside brant in {beside}" in missing.stderr
    program(beside)
    assert started().stdout == "beside\n"
    program(path, 0o644)
    assert started().stdout == "beside\n", "a file that cannot run is passed over, as in a shell"
    program(path)
    assert started().stdout == "path\n"


def test_a_file_that_cannot_run_is_126(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text\n")
    assert brant_run("-n", "2", "--", str(plain)).returncode == 126
    assert brant_run("--", str(tmp_path)).returncode == 126
    plain.chmod(0o755)
    done = brant_run("-n", "2", "--", str(plain))
    assert done.returncode == 126
    assert "#!/bin/sh" in done.stderr
    plain.write_text("#!/no/interpreter\n")
    assert brant_run("--", str(plain)).returncode == 127


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "0", "--", "true"], "1 to 1024|1 - 1024"),
        (["-n", "1025", "--", "true"], "1 to 1024|1 - 1024"),
        (["-n", "two", "--", "true"], "two"),
        (["-n", "2"], "program"),
        (["--no-such-option", "--", "true"], "--no-such-option"),
        (["--bind", "socket", "--", "true"], "socket"),
        (["--env", "NOVALUE", "--", "true"], "NAME=VALUE"),
        (["--env", "=x", "--", "true"], "NAME=VALUE"),
        (["--env", "BRANT_RANK=3", "--", "true"], "BRANT_RANK"),
        (["--timeout", "-1", "--", "true"], "-1"),
        (["--timeout", "soon", "--", "true"], "soon"),
        (["--patience", "-1", "--", "true"], "-1"),
        (["--patience", "1", "--keep-going", "--", "true"], "--keep-going"),
    ],
)
def test_wrong_options_are_refused_with_words(arguments, words):
    done = brant_run(*arguments)
    assert done.returncode == 2
    assert re.search(words, done.stderr), done.stderr
    assert done.stdout == ""


def test_unknown_commands_help_and_version():
    alone = subprocess.run([BRANT], capture_output=True, text=True)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert all(command in alone.stderr for command in ("run", "info", "doctor", "bench", "--version"))
    unknown = subprocess.run([BRANT, "fly"], capture_output=True, text=True)
    assert unknown.returncode == 2 and "fly" in unknown.stderr
    version = subprocess.run([BRANT, "--version"], capture_output=True, text=True)
    assert version.returncode == 0
    assert re.match(r"brant \d+\.\d+\.\d+", version.stdout)
    usage = brant_run("--help")
    assert usage.returncode == 0
    assert "--keep-going" in usage.stdout


# --- What the ranks are given --------------------------------------------------------------------------------------


def test_every_rank_knows_its_place_and_the_job():
    script = 'echo "$BRANT_RANK $BRANT_SIZE $BRANT_LOCAL_RANK $BRANT_LOCAL_SIZE $BRANT_JOB_ID"'
    lines = shell_ranks(3, script, "--no-prefix").stdout.splitlines()
    places = sorted(line.split()[:4] for line in lines)
    assert places == [[str(rank), "3", str(rank), "3"] for rank in range(3)]
    assert len({line.split()[4] for line in lines}) == 1


def test_arguments_after_the_program_are_the_programs_with_and_without_dashes():
    assert brant_run("-n", "1", "--", "echo", "-n", "--help", "--", "x y").stdout == "--help -- x y"
    assert brant_run("-n", "1", "echo", "a", "--bind", "b").stdout == "a --bind b\n"


def test_options_become_variables():
    script = 'echo "$A|$B|$BRANT_PATH|$BRANT_SHARE_GPU|$HOME_OF_TEST"'
    options = ["--env", "A=1", "--env", "B=x=y z", "--path", "staged", "--share-gpu"]
    done = shell_ranks(1, script, *options, env={**os.environ, "HOME_OF_TEST": "kept", "A": "outer"})
    assert done.stdout == "1|x=y z|staged|1|kept\n"


def test_standard_input_goes_to_rank_0_and_the_others_have_none():
    done = shell_ranks(3, "cat", stdin=None, input="one\ntwo\n")
    assert done.stdout == "[0] one\n[0] two\n"


def test_binding_gives_every_rank_a_core_of_its_own_or_refuses():
    cores = len(os.sched_getaffinity(0))
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    done = brant_run("-n", str(cores), "--bind", "core", "--no-prefix", "--", sys.executable, "-c", script)
    assert sorted(done.stdout.splitlines()) == sorted(f"[{core}]" for core in os.sched_getaffinity(0))
    done = brant_run("-n", str(cores + 1), "--bind", "core", "--", "true")
    assert done.returncode == 1
    assert "--bind none" in done.stderr


def test_ranks_get_the_signals_and_limits_that_brant_run_was_given():
    script = "grep -E 'SigBlk|SigIgn' /proc/self/status; ulimit -n"
    soft = 300

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    direct = subprocess.run(["sh", "-c", script], capture_output=True, text=True, preexec_fn=limit)
    ranks = shell_ranks(100, script, "--no-prefix", preexec_fn=limit)
    assert set(ranks.stdout.splitlines()) == set(direct.stdout.splitlines())


def test_ranks_inherit_no_descriptor_but_their_socket():
    done = shell_ranks(3, "ls /proc/self/fd | tr '\\n' ' '; echo \"boot=$BRANT_BOOT_FD\"", "--no-prefix")
    for line in done.stdout.splitlines():
        numbers, _, boot = line.partition("boot=")
        # ls itself opens the folder.
        assert len(set(map(int, numbers.split())) - {0, 1, 2, int(boot)}) == 1, line


# --- Output --------------------------------------------------------------------------------------------------------


def test_prefixes_streams_and_unfinished_lines():
    done = shell_ranks(2, "echo out; echo err >&2; printf unfinished")
    assert sorted(done.stdout.splitlines()) == ["[0] out", "[0] unfinished", "[1] out", "[1] unfinished"]
    assert sorted(done.stderr.splitlines()) == ["[0] err", "[1] err"]


def test_one_rank_has_no_prefix_and_its_bytes_are_untouched():
    assert shell_ranks(1, "printf 'no newline'").stdout == "no newline"


def test_ten_megabytes_per_rank_arrive_whole_and_in_order():
    script = """
import os, sys
rank = int(os.environ["BRANT_RANK"])
line = bytes(b for b in range(256) if b != 10) * 4
out = sys.stdout.buffer
for i in range(10000):
    out.write(b"%d:%d:" % (rank, i) + line + b"\\n")
"""
    ranks = 3
    done = brant_run("-n", str(ranks), "--", sys.executable, "-c", script, text=False)
    assert done.returncode == 0
    line = bytes(b for b in range(256) if b != 10) * 4
    seen = [0] * ranks
    for text in done.stdout.split(b"\n")[:-1]:
        rank = text[1] - ord("0")
        assert text == b"[%d] %d:%d:" % (rank, rank, seen[rank]) + line
        seen[rank] += 1
    assert seen == [10000] * ranks


def test_a_slow_reader_loses_nothing():
    ranks, count = 4, 20000
    process = subprocess.Popen(
        [BRANT, "run", "-n", str(ranks), "--no-prefix", "--", "seq", str(count)], stdout=subprocess.PIPE
    )
    time.sleep(1)  # the ranks are done with their work by now, their output is not
    data = b""
    while piece := os.read(process.stdout.fileno(), 65536):
        data += piece
    assert process.wait(LIMIT_S) == 0
    assert sorted(map(int, data.split())) == sorted(list(range(1, count + 1)) * ranks)


def test_a_reader_that_leaves_ends_the_ranks_that_write():
    done = subprocess.run(
        f'"{BRANT}" run -n 2 -- yes 2>/dev/null | head -1', shell=True, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.stdout in ("[0] y\n", "[1] y\n")


def test_a_line_without_end_is_printed_in_pieces():
    script = "import sys; sys.stdout.write('x' * 300000)"
    done = brant_run("-n", "2", "--no-prefix", "--", sys.executable, "-c", script)
    assert done.stdout.count("x") == 600000
    assert max(map(len, done.stdout.splitlines())) == 65536


# --- Ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launcher_ends_everything(tmp_path, number):
    with RunningJob(tmp_path, 3) as job:
        job.process.send_signal(number)
        assert job.process.wait(LIMIT_S) == 128 + number
        job.expect_nothing_left()
        assert "ending ranks 0-2" in job.process.stderr.read()


def test_a_second_signal_does_not_wait_for_stubborn_ranks(tmp_path):
    with RunningJob(tmp_path, 2, traps='trap "" INT TERM; sleep 300;') as job:
        start = time.monotonic()
        job.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        job.process.send_signal(signal.SIGINT)
        assert job.process.wait(LIMIT_S) == 130
        assert time.monotonic() - start < 1.8
        job.expect_nothing_left()


def test_killing_the_launcher_leaves_nothing(tmp_path):
    with RunningJob(tmp_path, 3, traps='trap "" TERM INT HUP;') as job:
        job.process.kill()
        assert job.process.wait(LIMIT_S) == -signal.SIGKILL
        job.expect_nothing_left()


def test_nohup_protects_from_hangups(tmp_path):
    process = subprocess.Popen(
        ["nohup", BRANT, "run", "-n", "2", "--", "sleep", "1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    time.sleep(0.4)
    process.send_signal(signal.SIGHUP)
    assert process.wait(LIMIT_S) == 0


def test_what_a_rank_leaves_running_ends_with_it(tmp_path):
    done = shell_ranks(2, f'sleep 300 & echo $! > {tmp_path}/"$BRANT_RANK"')
    assert done.returncode == 0
    pids = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
    wait_until(lambda: not any(map(alive, pids)), "the background processes ended")


def test_stopping_and_continuing_reaches_the_ranks(tmp_path):
    def stopped() -> bool:
        return all(pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "T" for pid in job.rank_pids)

    with RunningJob(tmp_path, 2) as job:
        job.process.send_signal(signal.SIGTSTP)
        wait_until(stopped, "the ranks stopped")
        job.process.send_signal(signal.SIGCONT)
        wait_until(lambda: not stopped(), "the ranks went on")
        job.process.send_signal(signal.SIGTERM)
        assert job.process.wait(LIMIT_S) == 143
        job.expect_nothing_left()


def test_the_terminal_feeds_rank_0():
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [BRANT, "run", "-n", "2", "--", "sh", "-c", 'if [ "$BRANT_RANK" = 0 ]; then read line; echo "got $line"; fi'],
        stdin=side,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(side)
    os.write(terminal, b"hello\n")
    assert select.select([process.stdout], [], [], LIMIT_S)[0]
    assert process.stdout.readline() == "[0] got hello\n"
    assert process.wait(LIMIT_S) == 0
    os.close(terminal)


def test_rank_0_may_draw_on_the_terminal_and_other_lines_stay_whole():
    terminal, side = pty.openpty()
    script = (
        'if [ "$BRANT_RANK" = 0 ]; then test -t 2 && printf "\\rhalf" >&2; read line; printf "\\rwhole\\n" >&2; '
        "else test -t 2 && echo drawn >&2; echo plain >&2; fi"
    )
    process = subprocess.Popen(
        [BRANT, "run", "-n", "2", "--", "sh", "-c", script], stdin=subprocess.PIPE, stderr=side, start_new_session=True
    )
    os.close(side)
    seen = b""
    while not (b"\rhalf" in seen and b"[1] plain" in seen):
        assert select.select([terminal], [], [], LIMIT_S)[0], seen
        seen += os.read(terminal, 4096)
    process.stdin.write(b"\n")
    process.stdin.close()
    while b"whole" not in seen:
        assert select.select([terminal], [], [], LIMIT_S)[0], seen
        seen += os.read(terminal, 4096)
    assert process.wait(LIMIT_S) == 0
    os.close(terminal)
    assert b"drawn" not in seen, "only rank 0 may"


def test_the_rank_that_was_killed_is_blamed_not_who_ended_because_of_it(tmp_path):
    # Both have ended when the launcher, which was stopped, looks: rank 0, a survivor, and rank 1, which was lost.
    script = """
        echo $$ > "$0.$BRANT_RANK"
        if [ "$BRANT_RANK" = 1 ]; then read line < "$0.fifo"; kill -9 $$; fi
        while [ ! -e "$0.go" ]; do sleep 0.01; done
        exit 1
    """
    base = str(tmp_path / "rank")
    os.mkfifo(base + ".fifo")
    process = subprocess.Popen(
        [BRANT, "run", "-n", "2", "--", "sh", "-c", script, base], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: os.path.exists(base + ".0") and os.path.exists(base + ".1"), "two ranks")
    ranks = [read_pid(base + ".0"), read_pid(base + ".1")]
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T", "the launcher to stop")
    with open(base + ".fifo", "w") as fifo:
        fifo.write("now\n")
    wait_until(lambda: state_of(ranks[1]) == "Z", "rank 1 to die")
    pathlib.Path(base + ".go").touch()
    wait_until(lambda: state_of(ranks[0]) == "Z", "rank 0 to end")
    process.send_signal(signal.SIGCONT)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 137, said
    assert "rank 1" in said.splitlines()[0] and "signal 9" in said.splitlines()[0], said


# --- Size ----------------------------------------------------------------------------------------------------------


def test_two_hundred_ranks():
    done = shell_ranks(200, "echo $BRANT_RANK", "--no-prefix")
    assert done.returncode == 0
    assert sorted(map(int, done.stdout.split())) == list(range(200))


def test_too_few_open_files_is_said_before_anything_starts():
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    done = brant_run("-n", "100", "--", "echo", "started", preexec_fn=limit)
    assert done.returncode == 1
    assert "464 open files" in done.stderr
    assert done.stdout == ""


def test_two_jobs_at_once_do_not_meet():
    script = 'sleep 0.3; echo "$BRANT_JOB_ID $BRANT_RANK"'
    jobs = [
        subprocess.Popen(
            [BRANT, "run", "-n", "4", "--no-prefix", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [job.communicate(timeout=LIMIT_S)[0].split("\n")[:-1] for job in jobs]
    ids = [{line.split()[0] for line in output} for output in outputs]
    assert [len(output) for output in outputs] == [4, 4]
    assert len(ids[0]) == len(ids[1]) == 1
    assert ids[0] != ids[1]


def test_a_closed_standard_output_hurts_nobody():
    done = subprocess.run(f'"{BRANT}" run -n 2 -- sh -c "echo x; exit 5" >&- 2>&-', shell=True, timeout=LIMIT_S)
    assert done.returncode == 5
