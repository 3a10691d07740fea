/* Every rank passes its number round the ring, and all learn the sum.
 *
 *     mpicc ring.c -o ring
 *     brant run -n 4 -- ./ring
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int passed = rank;
  for (int step = 1; step < size; ++step) {
    MPI_Sendrecv_replace(&passed, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
  int sum;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d: %d came last, the sum is %d\n", rank, size, passed, sum);
  MPI_Finalize();
  return 0;
}
