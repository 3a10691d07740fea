// A program of MPI: what it sends and gets lies in globals; it waits while an exception is being handled; and it ends
// MPI in a function of atexit.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

static int rank = -1;
static int size = 0;
static int got = -1;
static int sum = 0;
static thread_local int kept = 5;

static void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

static void end() {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  std::puts("finalized");
}

static void wait_in_handler() {
  try {
    throw std::runtime_error(std::to_string(rank));
  } catch (const std::exception& error) {
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    require(error.what() == std::to_string(rank), "exception");
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::atexit(end);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  kept += rank;
  for (int round = 0; round < 20; ++round) {
    wait_in_handler();
    require(sum == size * (size - 1) / 2, "sum");
    const int from = (rank + size - 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, round, &got, 1, MPI_INT, from, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    require(got == from, "message");
  }
  require(kept == 5 + rank, "thread-local");
  std::puts("right");
  return argc > 1 && rank == size - 1 ? std::stoi(argv[1]) : 0;
}
