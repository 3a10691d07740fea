"""What a shared library gives to those that are linked with it."""

import subprocess


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def profiled(names):
    """The names of functions of MPI, each also as that of its profiling interface."""
    return {f"{p}MPIX_{name}" for name in names for p in ("", "P")}


WITH_LARGE_COUNTS = {"Send", "Recv", "Isend", "Irecv", "Allreduce"}
# Of MPICH, and those that brant adds to them.
OF_BRANT = {"Allgather", "Bcast", "Reduce"}
OWN_STREAM_NAMES = profiled({f"{n}_enqueue{form}" for n in OF_BRANT for form in ("", "_c")} | {"Barrier_enqueue"})
STREAM_NAMES = OWN_STREAM_NAMES | profiled({f"{n}_enqueue{form}" for n in WITH_LARGE_COUNTS for form in ("", "_c")})
STREAM_NAMES |= profiled({"Wait_enqueue", "Waitall_enqueue", "Comm_get_stream", "Info_set_hex"})
STREAM_NAMES |= profiled({"Stream_comm_create", "Stream_create", "Stream_free"})
