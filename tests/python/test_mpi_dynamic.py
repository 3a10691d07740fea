"""Programs of MPI that were not started together: jobs that connect, and jobs that spawn others, and how they end."""

import os
import signal
import subprocess
import time

import pytest
from brant_command import BRANT, brant, needs_brant, plain_environment, ranks_of
from test_virtual_ranks import LIBRARIES, RANKS, compiled

pytestmark = needs_brant

PROGRAM = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* word, const char* other) { return !strcmp(word, other); }

static void say(const char* text) {
  puts(text);
  fflush(stdout);
}

static int sum_over(MPI_Comm between, int high) {
  int rank, sum = 0;
  MPI_Comm all;
  MPI_Intercomm_merge(between, high, &all);
  MPI_Comm_rank(all, &rank);
  ++rank;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  MPI_Comm_disconnect(&all);
  return sum;
}

static void serve(const char* name, int guests, const char* what) {
  char port[MPI_MAX_PORT_NAME] = "";
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
    say(port);
  }
  for (int i = 0; i < guests; ++i) {
    MPI_Comm guest;
    if (is(what, "never")) {
      sleep(60);
    }
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &guest);
    if (is(what, "die")) {
      MPI_Barrier(guest);
      if (rank == 0) raise(SIGKILL);
      sleep(60);
    }
    int sum = sum_over(guest, 0);
    if (rank == 0) printf("server: %d\n", sum);
    MPI_Comm_disconnect(&guest);
  }
  if (rank == 0) {
    MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    MPI_Close_port(port);
  }
}

static int give_back(MPI_Comm comm) { return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); }

static void report(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length, class;
  MPI_Error_class(code, &class);
  MPI_Error_string(class, text, &length);
  printf("%s: %s\n", what, code == MPI_SUCCESS ? "success" : text);
  fflush(stdout);
}

static void visit(const char* name, const char* what) {
  char port[MPI_MAX_PORT_NAME] = "";
  int rank, code, one = 1, sum = 0;
  MPI_Comm server;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  give_back(MPI_COMM_WORLD);
  if (rank == 0) MPI_Lookup_name(name, MPI_INFO_NULL, port);
  say("visits");
  code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server);
  if (code != MPI_SUCCESS) {
    report("connect", code);
    return;
  }
  if (is(what, "die")) {
    give_back(server);
    MPI_Barrier(server);
    report("allreduce", MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, server));
    return;
  }
  sum = sum_over(server, 1);
  if (rank == 0) printf("client: %d\n", sum);
  MPI_Comm_disconnect(&server);
}

static void spawn(const char* program, const char* what) {
  char* arguments[] = {(char*)"child", (char*)what, NULL};
  MPI_Comm children;
  int rank, code;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  give_back(MPI_COMM_WORLD);
  code = MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  if (code != MPI_SUCCESS) {
    report("spawn", code);
    return;
  }
  if (is(what, "wait")) {
    say("spawned");
    sleep(60);
  }
  int sum = sum_over(children, 0);
  if (rank == 0) printf("parent: %d\n", sum);
  if (is(what, "fail")) sleep(60);
  MPI_Comm_disconnect(&children);
}

static void be_child(const char* what) {
  MPI_Comm parent;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (is(what, "wait")) {
    printf("child %d\n", (int)getpid());
    fflush(stdout);
    sleep(60);
  }
  int sum = sum_over(parent, 1);
  printf("child: %d\n", sum);
  fflush(stdout);
  if (is(what, "fail") && rank == 1) exit(7);
  MPI_Comm_disconnect(&parent);
}

int main(int argc, char** argv) {
  if (argc > 2 && is(argv[1], "child") && is(argv[2], "die")) raise(SIGKILL);
  MPI_Init(&argc, &argv);
  if (is(argv[1], "serve")) serve(argv[2], atoi(argv[3]), argv[4]);
  if (is(argv[1], "visit")) visit(argv[2], argv[3]);
  if (is(argv[1], "spawn")) spawn(argv[0], argv[2]);
  if (is(argv[1], "child")) be_child(argv[2]);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("dynamic"), PROGRAM)


@pytest.fixture
def service(request):
    return f"brant {os.getpid()} {request.node.name}"


def environment():
    return {**plain_environment(), "LD_LIBRARY_PATH": str(LIBRARIES)}


def start(*command, launcher=True, ranks=1):
    words = [BRANT, "run", "-n", str(ranks), "--timeout", "60", "--", *command] if launcher else list(command)
    return subprocess.Popen(
        words,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end_of(job, limit_s=40):
    try:
        printed, _ = job.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        job.kill()
        pytest.fail(f"it did not end: {job.communicate()[0]}")
    return job.returncode, printed


@pytest.mark.parametrize("launcher", [True, False])
def test_jobs_that_were_started_apart_connect_by_a_name(program, service, launcher):
    server = start(program, "serve", service, "2", "", ranks=2)
    assert "brant-port:" in server.stdout.readline()
    for _ in range(2):
        code, printed = end_of(start(program, "visit", service, "", launcher=launcher))
        assert code == 0, printed
        assert "client: 6" in printed
    code, printed = end_of(server)
    assert code == 0, printed
    assert printed.count("server: 6") == 2


def test_several_clients_wait_at_one_port(program, service):
    server = start(program, "serve", service, "2", "")
    assert "brant-port:" in server.stdout.readline()
    clients = [start(program, "visit", service, "") for _ in range(2)]
    for job in [*clients, server]:
        code, printed = end_of(job)
        assert code == 0, printed
        assert ": 3" in printed


def test_clients_hear_of_the_end_of_a_server_that_they_wait_for(program, service):
    server = start(program, "serve", service, "1", "never")
    assert "brant-port:" in server.stdout.readline()
    client = start(program, "visit", service, "")
    assert "visits" in client.stdout.readline()
    time.sleep(0.5)  # it may wait already, or not: both end
    os.kill(ranks_of(server.pid)[0], signal.SIGKILL)
    code, printed = end_of(client)
    assert code == 0, printed
    assert "connect: MPI_ERR_PORT" in printed
    end_of(server)
    code, printed = end_of(start(program, "visit", service, ""))
    assert "MPI_Lookup_name failed" in printed or "connect: MPI_ERR_PORT" in printed


def test_a_server_that_dies_ends_what_its_clients_do_with_it(program, service):
    server = start(program, "serve", service, "1", "die")
    assert "brant-port:" in server.stdout.readline()
    code, printed = end_of(start(program, "visit", service, "die"))
    assert "allreduce: MPI_ERR_PROC_ABORTED" in printed
    end_of(server)


@pytest.mark.parametrize("launcher", [True, False])
def test_a_program_spawns_others(program, launcher):
    code, printed = end_of(start(program, "spawn", "work", launcher=launcher))
    assert code == 0, printed
    assert "parent: 6" in printed
    assert "[0.0] child: 6" in printed
    assert "[0.1] child: 6" in printed


@pytest.mark.parametrize("launcher", [True, False])
def test_a_child_that_dies_before_it_calls_mpi_is_an_error_of_the_call(program, launcher):
    code, printed = end_of(start(program, "spawn", "die", launcher=launcher))
    assert "spawn: MPI_ERR_SPAWN" in printed
    assert code == 0, printed


def test_a_child_that_fails_ends_the_job(program):
    begin = time.monotonic()
    code, printed = end_of(start(program, "spawn", "fail"))
    assert code == 7, printed
    assert time.monotonic() - begin < 30


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("launcher", [True, False])
def test_children_end_with_a_parent_that_dies(program, launcher):
    parent = start(program, "spawn", "wait", launcher=launcher)
    children = []
    while len(children) < 2:
        line = parent.stdout.readline()
        assert line, "it ended"
        if "child " in line:
            children.append(int(line.split("child ")[1]))
    os.kill(ranks_of(parent.pid)[0] if launcher else parent.pid, signal.SIGKILL)
    end_of(parent)
    until = time.monotonic() + 15
    while any(map(lives, children)):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(not RANKS.exists(), reason=f"{RANKS} is not built")
def test_virtual_ranks_are_told_that_they_cannot_spawn(program):
    done = brant("run", "-n", "1", "--ranks", "2", "--timeout", "30", "--", program, "spawn", "work")
    assert "spawn: MPI_ERR_UNSUPPORTED_OPERATION" in done.stdout


CROWD = r"""
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { kThreads = 6 };
static char port[MPI_MAX_PORT_NAME];
static int serves;
static void* meet(void* unused) {
  MPI_Comm between, all;
  int one = 1, sum = 0;
  if (serves) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  MPI_Intercomm_merge(between, serves, &all);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  MPI_Comm_disconnect(&all);
  MPI_Comm_disconnect(&between);
  puts(sum == 2 ? "met" : "wrong");
  return unused;
}
int main(int argc, char** argv) {
  int level;
  pthread_t threads[kThreads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  serves = !strcmp(argv[1], "serve");
  if (serves) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
    puts(port);
    fflush(stdout);
  } else {
    MPI_Lookup_name(argv[2], MPI_INFO_NULL, port);
  }
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, meet, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  if (serves) MPI_Unpublish_name(argv[2], MPI_INFO_NULL, port);
  MPI_Finalize();
  return 0;
}
"""


def test_threads_connect_and_accept_at_the_same_time(tmp_path, service):
    program = compiled(tmp_path, CROWD, ".c", "-pthread")
    server = start(program, "serve", service)
    assert "brant-port:" in server.stdout.readline()
    for job in (start(program, "visit", service), server):
        code, printed = end_of(job)
        assert code == 0, printed
        assert printed.count("met") == 6, printed


CROSSING = r"""
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
enum { kTimes = 10 };
static char own[MPI_MAX_PORT_NAME], theirs[MPI_MAX_PORT_NAME];
static MPI_Comm accepts, connects;
static void work(MPI_Comm between, int high) {
  MPI_Comm all;
  int one = 1, sum = 0;
  MPI_Intercomm_merge(between, high, &all);
  for (int i = 0; i < 5; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
  if (sum != 4) puts("wrong");
  MPI_Comm_disconnect(&all);
  MPI_Comm_disconnect(&between);
}
static void* accept_all(void* unused) {
  MPI_Comm between;
  for (int i = 0; i < kTimes; ++i) {
    MPI_Comm_accept(own, MPI_INFO_NULL, 0, accepts, &between);
    work(between, 0);
  }
  return unused;
}
static void* connect_all(void* unused) {
  MPI_Comm between;
  for (int i = 0; i < kTimes; ++i) {
    MPI_Comm_connect(theirs, MPI_INFO_NULL, 0, connects, &between);
    work(between, 1);
  }
  return unused;
}
int main(int argc, char** argv) {
  int level, rank;
  pthread_t threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &accepts);
  MPI_Comm_dup(MPI_COMM_WORLD, &connects);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, own);
    MPI_Publish_name(argv[1], MPI_INFO_NULL, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (MPI_Lookup_name(argv[2], MPI_INFO_NULL, theirs) != MPI_SUCCESS) usleep(1000);
  }
  pthread_create(&threads[0], NULL, accept_all, NULL);
  pthread_create(&threads[1], NULL, connect_all, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  MPI_Finalize();
  return 0;
}
"""


def test_two_jobs_connect_to_each_other_at_the_same_time(tmp_path, service):
    program = compiled(tmp_path, CROSSING, ".c", "-pthread")
    there, back = f"{service} there", f"{service} back"
    jobs = [start(program, *names, ranks=2) for names in ((there, back), (back, there))]
    for job in jobs:
        code, printed = end_of(job)
        assert code == 0, printed
        assert printed == ""


PARTING = r"""
#include <mpi.h>
#include <string.h>
int main(int argc, char** argv) {
  char* arguments[] = {argv[1], (char*)"child", NULL};
  MPI_Comm between;
  MPI_Init(&argc, &argv);
  const int is_child = argc > 2;
  if (is_child) MPI_Comm_get_parent(&between);
  else MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
  if (is_child == !strcmp(argv[1], "child-disconnects")) MPI_Comm_disconnect(&between);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("who", ["child-disconnects", "parent-disconnects"])
def test_mpi_finalize_at_one_end_is_a_disconnect_for_the_other(tmp_path, who):
    code, printed = end_of(start(compiled(tmp_path, PARTING), who, ranks=2))
    assert code == 0, printed
    assert printed == ""


def test_files_of_servers_that_were_killed_go(program, service, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    server = start(program, "serve", service, "1", "never")
    port = server.stdout.readline().rsplit(":", 1)[1].strip()
    left = {port, "n" + service.encode().hex()}
    os.kill(ranks_of(server.pid)[0], signal.SIGKILL)
    end_of(server)
    assert set(os.listdir(tmp_path / "brant" / "ports")) == left
    end_of(start(program, "visit", "no such service", ""))
    assert os.listdir(tmp_path / "brant" / "ports") == []


BROKEN = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  char port[MPI_MAX_PORT_NAME];
  int rank, one = 1, sum = 0, code = MPI_SUCCESS, class = MPI_SUCCESS;
  MPI_Comm between;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int serves = !strcmp(argv[1], "serve");
  if (serves && rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(argv[2], MPI_INFO_NULL, port);
    puts(port);
    fflush(stdout);
  } else if (rank == 0) {
    MPI_Lookup_name(argv[2], MPI_INFO_NULL, port);
  }
  if (serves) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
  else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
  MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
  for (int i = 0; code == MPI_SUCCESS; ++i) {
    if (serves && rank == 0 && i == 30) raise(SIGKILL);
    code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between);
  }
  MPI_Error_class(code, &class);
  MPI_Comm_disconnect(&between);
  puts(class == MPI_ERR_PROC_ABORTED ? "told" : "not told");
  fflush(stdout);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Finalize();
  return 0;
}
"""


def test_a_death_ends_collectives_of_two_jobs_at_all_their_members(tmp_path, service):
    program = compiled(tmp_path, BROKEN)
    words = [BRANT, "run", "-n", "3", "--keep-going", "--timeout", "30", "--", program, "serve", service]
    server = subprocess.Popen(
        words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert "brant-port:" in server.stdout.readline()
    code, printed = end_of(start(program, "visit", service, ranks=2))
    assert code == 0, printed
    assert printed.count("told") == 2, printed
    _, printed = end_of(server)
    assert printed.count("[1] told") == 1, printed
    assert printed.count("[2] told") == 1, printed
