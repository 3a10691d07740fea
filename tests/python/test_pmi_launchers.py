"""Launchers of PMI-1 that break off, lie or say too little: MPI_Init ends, and says why."""

import socket
import subprocess
import threading

import pytest
from brant_command import needs_brant, plain_environment
from test_virtual_ranks import LIBRARIES, compiled

pytestmark = needs_brant

PROGRAM = r"""
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  return MPI_Finalize();
}
"""

ANSWERS = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "get_my_kvsname": "cmd=my_kvsname kvsname=goose",
    "put": "cmd=put_result rc=0 msg=success",
    "barrier_in": "cmd=barrier_out rc=0",
    "finalize": "cmd=finalize_ack rc=0",
}
MAPPING = "cmd=get_result rc=0 value=(vector,(0,1,2))"


def serve(line, answers, mapping, value):
    """Says what it says to each command; nothing: it breaks off."""
    with line, line.makefile("r") as commands:
        for command in commands:
            name = command.split()[0].removeprefix("cmd=")
            if name == "get":
                answer = mapping if "PMI_process_mapping" in command else value
            else:
                answer = answers.get(name)
            if answer is None:
                return
            line.sendall(f"{answer}\n".encode())


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("pmi"), PROGRAM)


@pytest.mark.parametrize(
    ("answers", "mapping", "value", "text"),
    [
        ({}, MAPPING, None, "the launcher closed its connection"),
        ({"init": None}, MAPPING, None, "the launcher closed its connection"),
        ({"barrier_in": None}, MAPPING, None, "the launcher closed its connection"),
        ({"put": "cmd=put_result rc=-1 msg=no room"}, MAPPING, None, "no room"),
        ({}, "cmd=get_result rc=-1", None, "does not say which ranks are on this host"),
        ({}, MAPPING, "cmd=get_result rc=0 value=2000000000:abcd", "was damaged on its way through the launcher"),
        ({}, MAPPING, "cmd=get_result rc=0 value=abcd", "was damaged on its way through the launcher"),
    ],
)
def test_mpi_init_ends_and_says_what_the_launcher_did(program, answers, mapping, value, text):
    ours, theirs = socket.socketpair()
    environment = {**plain_environment(), "LD_LIBRARY_PATH": str(LIBRARIES), "PMI_RANK": "0", "PMI_SIZE": "2"}
    environment |= {"PMI_FD": str(theirs.fileno()), "BRANT_BOOT_TIMEOUT_MS": "5000"}
    with theirs:
        process = subprocess.Popen(
            [program],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    launcher = threading.Thread(target=serve, args=(ours, ANSWERS | answers, mapping, value), daemon=True)
    launcher.start()
    _, said = process.communicate(timeout=30)
    launcher.join(timeout=10)
    assert process.returncode == 1
    assert "MPI_Init failed" in said
    assert text in said
