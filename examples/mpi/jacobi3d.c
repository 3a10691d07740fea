/* Heat in a cube: every cell becomes the mean of its six neighbours, again and again. The cells are dealt out to a grid of
 * ranks, which exchange their faces by derived types and compute inner cells meanwhile.
 *
 *     mpicc -O2 jacobi3d.c -o jacobi3d
 *     brant run -n 2 -- ./jacobi3d 96 96 96 50
 *     brant run -n 2 --ranks 16 -- ./jacobi3d 96 96 96 50
 *
 * The last line is the same however many ranks there are: the largest change of the last step, and a sum over the bits of
 * all cells.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kDimensions = 3, kFaces = 6 };

/* Of this rank, with a layer of ghost cells around it. What lies outside the cube stays what it is: the hot side is that
 * of the lowest x. */
struct Block {
  int cells[kDimensions]; /* without ghosts */
  int first[kDimensions]; /* in the cube */
  double* now;
  double* next;
};

static size_t at(const struct Block* block, int x, int y, int z) {
  return ((size_t)x * (size_t)(block->cells[1] + 2) + (size_t)y) * (size_t)(block->cells[2] + 2) + (size_t)z;
}

static size_t room(const struct Block* block) {
  return (size_t)(block->cells[0] + 2) * (size_t)(block->cells[1] + 2) * (size_t)(block->cells[2] + 2);
}

/* The cells of one dimension that fall to the rank at this place of the grid. */
static int share(int cells, int ranks, int place, int* first) {
  *first = (int)((long)cells * place / ranks);
  return (int)((long)cells * (place + 1) / ranks) - *first;
}

static double* new_field(const struct Block* block) {
  double* field = malloc(room(block) * sizeof(double));
  if (field == NULL) {
    fprintf(stderr, "there is no memory for %zu cells\n", room(block));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(field, 0, room(block) * sizeof(double));
  if (block->first[0] == 0) {
    for (int y = 0; y < block->cells[1] + 2; ++y)
      for (int z = 0; z < block->cells[2] + 2; ++z) field[at(block, 0, y, z)] = 1.0;
  }
  return field;
}

/* Face 2d is the low one of dimension d, and 2d + 1 the high one. `layer` counts from the ghosts inwards. */
static MPI_Datatype face_type(const struct Block* block, int face, int layer) {
  int sizes[kDimensions], parts[kDimensions], starts[kDimensions];
  for (int d = 0; d < kDimensions; ++d) {
    sizes[d] = block->cells[d] + 2;
    parts[d] = block->cells[d];
    starts[d] = 1;
  }
  const int d = face / 2;
  parts[d] = 1;
  starts[d] = face % 2 == 0 ? layer : block->cells[d] + 1 - layer;
  MPI_Datatype type;
  MPI_Type_create_subarray(kDimensions, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Steps the cells from `low` to below `high`. The largest change. */
static double step(const struct Block* block, const int low[kDimensions], const int high[kDimensions]) {
  const size_t dx = at(block, 1, 0, 0), dy = at(block, 0, 1, 0);
  double largest = 0;
  for (int x = low[0]; x < high[0]; ++x) {
    for (int y = low[1]; y < high[1]; ++y) {
      for (int z = low[2]; z < high[2]; ++z) {
        const size_t i = at(block, x, y, z);
        const double* now = block->now + i;
        const double mean = (now[-(long)dx] + now[dx] + now[-(long)dy] + now[dy] + now[-1] + now[1]) / 6;
        const double change = mean > *now ? mean - *now : *now - mean;
        if (change > largest) largest = change;
        block->next[i] = mean;
      }
    }
  }
  return largest;
}

/* The cells that need no ghosts, and the layers around them. */
static double step_inner(const struct Block* block) {
  const int low[] = {2, 2, 2};
  const int high[] = {block->cells[0], block->cells[1], block->cells[2]};
  return step(block, low, high);
}

static double step_outer(const struct Block* block) {
  int low[] = {1, 1, 1};
  int high[] = {block->cells[0] + 1, block->cells[1] + 1, block->cells[2] + 1};
  double largest = 0;
  for (int d = 0; d < kDimensions; ++d) {
    const int end = high[d];
    for (int side = 0; side < 2 && side < block->cells[d]; ++side) {
      low[d] = side == 0 ? 1 : end - 1;
      high[d] = low[d] + 1;
      const double change = step(block, low, high);
      if (change > largest) largest = change;
    }
    /* What these layers had is done. */
    low[d] = 2;
    high[d] = end - 1;
  }
  return largest;
}

static uint64_t sum_of_bits(const struct Block* block) {
  uint64_t sum = 0;
  for (int x = 1; x <= block->cells[0]; ++x) {
    for (int y = 1; y <= block->cells[1]; ++y) {
      for (int z = 1; z <= block->cells[2]; ++z) {
        uint64_t bits;
        memcpy(&bits, &block->now[at(block, x, y, z)], sizeof bits);
        sum += bits;
      }
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int numbers[kDimensions + 1] = {64, 64, 64, 20};
  for (int i = 0; i <= kDimensions && i + 1 < argc; ++i) numbers[i] = atoi(argv[i + 1]);
  int ranks[kDimensions] = {0, 0, 0};
  MPI_Dims_create(size, kDimensions, ranks);
  for (int d = 0; d < kDimensions; ++d) {
    if (numbers[d] >= ranks[d] && numbers[kDimensions] > 0) continue;
    if (rank == 0) fprintf(stderr, "usage: jacobi3d X Y Z STEPS, with a cell at least for each of %d ranks\n", size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  MPI_Comm grid;
  const int periodic[kDimensions] = {0, 0, 0};
  MPI_Cart_create(MPI_COMM_WORLD, kDimensions, ranks, periodic, 0, &grid);
  int place[kDimensions];
  MPI_Cart_coords(grid, rank, kDimensions, place);
  struct Block block;
  for (int d = 0; d < kDimensions; ++d) block.cells[d] = share(numbers[d], ranks[d], place[d], &block.first[d]);
  block.now = new_field(&block);
  block.next = new_field(&block);

  int neighbour[kFaces];
  MPI_Datatype ghosts[kFaces], cells[kFaces];
  for (int face = 0; face < kFaces; ++face) {
    ghosts[face] = face_type(&block, face, 0);
    cells[face] = face_type(&block, face, 1);
    if (face % 2 == 0) MPI_Cart_shift(grid, face / 2, 1, &neighbour[face], &neighbour[face + 1]);
  }

  double largest = 0;
  const double begin = MPI_Wtime();
  for (int i = 0; i < numbers[kDimensions]; ++i) {
    MPI_Request requests[2 * kFaces];
    for (int face = 0; face < kFaces; ++face) {
      MPI_Irecv(block.now, 1, ghosts[face], neighbour[face], face, grid, &requests[face]);
      MPI_Isend(block.now, 1, cells[face], neighbour[face], face ^ 1, grid, &requests[kFaces + face]);
    }
    largest = step_inner(&block);
    MPI_Waitall(2 * kFaces, requests, MPI_STATUSES_IGNORE);
    const double outer = step_outer(&block);
    if (outer > largest) largest = outer;
    double* swapped = block.now;
    block.now = block.next;
    block.next = swapped;
  }
  const double took = MPI_Wtime() - begin;

  uint64_t bits = sum_of_bits(&block), all_bits;
  double slowest, largest_of_all;
  MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
  MPI_Reduce(&largest, &largest_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
  MPI_Reduce(&bits, &all_bits, 1, MPI_UINT64_T, MPI_SUM, 0, grid);
  if (rank == 0) {
    printf("%d x %d x %d cells on %d x %d x %d ranks: %.3f ms a step\n", numbers[0], numbers[1], numbers[2], ranks[0],
           ranks[1], ranks[2], slowest / numbers[kDimensions] * 1e3);
    printf("after %d steps the largest change is %.17g, the sum of bits %016llx\n", numbers[kDimensions],
           largest_of_all, (unsigned long long)all_bits);
  }
  for (int face = 0; face < kFaces; ++face) {
    MPI_Type_free(&ghosts[face]);
    MPI_Type_free(&cells[face]);
  }
  free(block.now);
  free(block.next);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
