/* A program of MPICH's ABI: handles, statuses, wildcards, functions of the program, datatypes, windows and files. Runs
 * on any number of ranks from 2 on; each prints "ok" or what is wrong. MPICH's own library must agree. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

static void check(int good, const char* what) {
  if (good) return;
  ++wrong;
  printf("rank %d: wrong: %s\n", rank, what);
  fflush(stdout);
}

static int next(void) { return (rank + 1) % size; }
static int previous(void) { return (rank + size - 1) % size; }

static void check_messages(void) {
  int out[4] = {rank, rank + 1, rank + 2, rank + 3}, in[4] = {-1, -1, -1, -1}, count = -1, flag = -1, index = -1;
  MPI_Request requests[4];
  MPI_Status status, statuses[4];
  status.MPI_ERROR = 12345;
  MPI_Sendrecv(out, 3, MPI_INT, next(), 7, in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(count == 3 && in[2] == previous() + 2, "a message of three ints");
  check(status.MPI_SOURCE == previous() && status.MPI_TAG == 7, "the envelope after wildcards");
  check(status.MPI_ERROR == 12345, "a single call leaves MPI_ERROR alone");

  MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0, "a receive from nobody");

  for (int i = 0; i < 3; ++i) MPI_Irecv(&in[i], 1, MPI_INT, previous(), 10 + i, MPI_COMM_WORLD, &requests[i]);
  requests[3] = MPI_REQUEST_NULL;
  for (int i = 2; i >= 0; --i) MPI_Send(&out[i], 1, MPI_INT, next(), 10 + i, MPI_COMM_WORLD);
  MPI_Waitall(4, requests, statuses);
  for (int i = 0; i < 3; ++i) {
    check(requests[i] == MPI_REQUEST_NULL && statuses[i].MPI_TAG == 10 + i && in[i] == previous() + i, "MPI_Waitall");
    MPI_Get_count(&statuses[i], MPI_INT, &count);
    check(statuses[i].MPI_SOURCE == previous() && count == 1, "statuses of MPI_Waitall");
  }
  check(statuses[3].MPI_SOURCE == MPI_ANY_SOURCE && statuses[3].MPI_TAG == MPI_ANY_TAG, "the empty status");

  MPI_Irecv(in, 1, MPI_INT, previous(), 20, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(in, 1, MPI_INT, previous(), 21, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(out, 1, MPI_INT, next(), 21, MPI_COMM_WORLD);
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  check(index == 1 && requests[1] == MPI_REQUEST_NULL && requests[0] != MPI_REQUEST_NULL, "MPI_Waitany");
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_Test_cancelled(&status, &flag);
  check(flag == 1, "a cancelled receive");

  MPI_Message message;
  MPI_Send(out, 2, MPI_INT, next(), 30, MPI_COMM_WORLD);
  MPI_Mprobe(MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(in, 2, MPI_INT, &message, MPI_STATUS_IGNORE);
  check(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == previous() && in[1] == previous() + 1, "MPI_Mrecv");
  MPI_Mprobe(MPI_PROC_NULL, 30, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  check(message == MPI_MESSAGE_NO_PROC, "MPI_MESSAGE_NO_PROC");
  MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);

  MPI_Send_init(out, 1, MPI_INT, next(), 40, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in, 1, MPI_INT, previous(), 40, MPI_COMM_WORLD, &requests[1]);
  const MPI_Request kept = requests[0];
  for (int i = 0; i < 3; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  check(requests[0] == kept && in[0] == previous(), "persistent requests keep their handles");
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  check(requests[0] == MPI_REQUEST_NULL, "MPI_Request_free");

  char* room = malloc(2 * (sizeof(int) + MPI_BSEND_OVERHEAD));
  int room_bytes = 2 * (int)(sizeof(int) + MPI_BSEND_OVERHEAD);
  void* detached = NULL;
  MPI_Buffer_attach(room, room_bytes);
  for (int i = 0; i < 2; ++i) MPI_Bsend(&out[i], 1, MPI_INT, next(), 50 + i, MPI_COMM_WORLD);
  for (int i = 0; i < 2; ++i) MPI_Recv(&in[i], 1, MPI_INT, previous(), 50 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Buffer_detach(&detached, &room_bytes);
  check(detached == room && in[1] == previous() + 1, "buffered sends with MPICH's overhead");
  free(room);
}

/* Many requests at a time, and their numbers again: tables of handles grow and do not leak. MPICH's own are others. */
static void check_many_requests(void) {
  enum { kMany = 6000 };
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  const int has_tables = strncmp(version, "brant", 5) == 0;
  static MPI_Request requests[2 * kMany];
  static int out[kMany], in[kMany];
  int highest = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kMany; ++i) {
      out[i] = i + round;
      MPI_Irecv(&in[i], 1, MPI_INT, previous(), i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < kMany; ++i) MPI_Isend(&out[i], 1, MPI_INT, next(), i, MPI_COMM_WORLD, &requests[kMany + i]);
    for (int i = 0; i < 2 * kMany; ++i) {
      const int number = requests[i] & 0x3ffffff;
      if (round == 0 && requests[i] != MPI_REQUEST_NULL && number > highest) highest = number;
      if (has_tables && round > 0 && requests[i] != MPI_REQUEST_NULL)
        check(number <= highest, "numbers of requests are used again");
    }
    MPI_Waitall(2 * kMany, requests, MPI_STATUSES_IGNORE);
    check(in[kMany - 1] == kMany - 1 + round && in[0] == round, "many requests at a time");
  }
}

static void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
  check(*type == MPI_INT, "the type that an operation gets");
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] = ((int*)in)[i] * 10 + ((int*)inout)[i] % 10;
}

static MPI_Datatype pair_of_ints;
static void add_pairs(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  check(bytes == 2 * (int)sizeof(int), "the derived type that an operation gets");
  for (int i = 0; i < 2 * *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void check_collectives(void) {
  int sum = 0, mine = rank + 1, all[64], commutes = -1;
  MPI_Op op;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == size * (size + 1) / 2, "MPI_Allreduce");
  sum = mine;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  check(sum == size, "MPI_IN_PLACE");
  all[rank] = rank * rank;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  check(all[size - 1] == (size - 1) * (size - 1), "MPI_Allgather in place");
  MPI_Op_create(concatenate, 0, &op);
  MPI_Op_commutative(op, &commutes);
  check(commutes == 0, "MPI_Op_commutative");
  mine = rank % 10;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
  check(sum % 10 == (size - 1) % 10, "an operation of the program");
  MPI_Op_free(&op);
  check(op == MPI_OP_NULL, "MPI_Op_free");

  int pair[2] = {rank, 1}, total[2] = {-1, -1};
  MPI_Request request;
  MPI_Op_create(add_pairs, 1, &op);
  MPI_Type_contiguous(2, MPI_INT, &pair_of_ints);
  MPI_Type_commit(&pair_of_ints);
  MPI_Iallreduce(pair, total, 1, pair_of_ints, op, MPI_COMM_WORLD, &request);
  MPI_Type_free(&pair_of_ints);
  MPI_Op_free(&op);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(total[1] == size && total[0] == size * (size - 1) / 2, "a type and an operation that are freed in use");

  MPI_Datatype types[64];
  int counts[64], places[64], got[64];
  for (int i = 0; i < size; ++i) {
    types[i] = i % 2 == 0 ? MPI_INT : MPI_UNSIGNED;
    counts[i] = 1;
    places[i] = i * (int)sizeof(int);
    all[i] = rank * 100 + i;
  }
  MPI_Datatype own[64];
  for (int i = 0; i < size; ++i) own[i] = rank % 2 == 0 ? MPI_INT : MPI_UNSIGNED;
  MPI_Alltoallw(all, counts, places, types, got, counts, places, own, MPI_COMM_WORLD);
  check(got[size - 1] == (size - 1) * 100 + rank, "MPI_Alltoallw");
}

static int copies, deletes;
static int copy_value(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  check(comm != MPI_COMM_NULL && extra == (void*)&copies && key != MPI_KEYVAL_INVALID, "what a copy function gets");
  *(void**)out = (char*)in + 1;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}
static MPI_Comm deleted_from;
static int delete_value(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)value, (void)extra;
  deleted_from = comm;
  ++deletes;
  return MPI_SUCCESS;
}

static void check_attributes(void) {
  int key, duplicated, flag, *bound, *place;
  void* value = NULL;
  MPI_Comm copy;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
  check(flag && *bound >= 32767, "MPI_TAG_UB");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &place, &flag);
  check(flag && *place == MPI_ANY_SOURCE, "MPI_IO");
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &place, &flag);
  check(flag && *place >= MPI_ERR_RANK, "MPI_LASTUSEDCODE");
  MPI_Comm_create_keyval(copy_value, delete_value, &key, &copies);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &wrong);
  MPI_Comm_set_attr(MPI_COMM_WORLD, duplicated, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_get_attr(copy, key, &value, &flag);
  check(flag && value == (char*)&wrong + 1 && copies == 1, "a copied attribute");
  MPI_Comm_get_attr(copy, duplicated, &value, &flag);
  check(flag && value == &rank, "MPI_COMM_DUP_FN");
  const MPI_Comm was = copy;
  MPI_Comm_free(&copy);
  check(deletes == 1 && deleted_from == was && copy == MPI_COMM_NULL, "a deleted attribute");
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, duplicated);
  MPI_Comm_free_keyval(&key);
  check(key == MPI_KEYVAL_INVALID && deletes == 2, "MPI_Comm_free_keyval");
  MPI_Comm_free_keyval(&duplicated);
}

static int handled_code;
static MPI_Comm handled_comm;
static void handle(MPI_Comm* comm, int* code, ...) {
  handled_comm = *comm;
  handled_code = *code;
}

static void check_errors(void) {
  int class = -1, length = 0, added_class, added_code, word = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Errhandler handler, before, now;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_get_errhandler(comm, &before);
  check(before == MPI_ERRORS_ARE_FATAL, "the first error handler");
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_get_errhandler(comm, &now);
  check(now == handler, "the same error handler has the same handle");
  MPI_Errhandler_free(&now);
  MPI_Errhandler_free(&handler);
  check(handler == MPI_ERRHANDLER_NULL, "MPI_Errhandler_free");
  int code = MPI_Send(&word, 1, MPI_INT, size + 5, 0, comm);
  check(handled_comm == comm, "the communicator that an error handler gets");
  MPI_Error_class(handled_code, &class);
  check(class == MPI_ERR_RANK, "the code that an error handler gets");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Send(&word, 1, MPI_INT, 0, -7, comm), &class);
  check(class == MPI_ERR_TAG, "MPI_ERR_TAG");
  MPI_Error_class(MPI_Send(&word, 1, MPI_DATATYPE_NULL, 0, 0, comm), &class);
  check(class == MPI_ERR_TYPE, "MPI_ERR_TYPE");
  MPI_Error_class(MPI_Bcast(&word, 1, MPI_INT, -9, comm), &class);
  check(class == MPI_ERR_ROOT, "MPI_ERR_ROOT");
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_NULL), &class);
  check(class == MPI_ERR_COMM, "MPI_ERR_COMM");
  if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 3, comm);
  if (rank == 1) {
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&word, 0, MPI_INT, 0, 3, comm, &request);
    code = MPI_Waitall(1, &request, &status);
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS");
    MPI_Error_class(status.MPI_ERROR, &class);
    check(class == MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE in a status");
  }
  MPI_Add_error_class(&added_class);
  MPI_Add_error_code(added_class, &added_code);
  MPI_Add_error_string(added_code, "of the program");
  MPI_Error_class(added_code, &class);
  MPI_Error_string(added_code, text, &length);
  check(class == added_class && strcmp(text, "of the program") == 0, "codes of the program");
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

static void check_types(void) {
  int sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2}, cells[24], got[6] = {0};
  int integers[16], integer_count, address_count, type_count, combiner;
  MPI_Aint addresses[4], displacements[2] = {0, 8}, lower, extent;
  MPI_Datatype part, inner[2], made, types[2] = {MPI_INT, MPI_DOUBLE};
  for (int i = 0; i < 24; ++i) cells[i] = i;
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &part);
  MPI_Type_commit(&part);
  MPI_Sendrecv(cells, 1, part, rank, 0, got, 6, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(got[0] == 8 && got[5] == 16, "data of a subarray");
  MPI_Type_get_envelope(part, &integer_count, &address_count, &type_count, &combiner);
  check(combiner == MPI_COMBINER_SUBARRAY && integer_count == 8 && type_count == 1, "the envelope of a subarray");
  MPI_Type_get_contents(part, integer_count, address_count, type_count, integers, addresses, inner);
  check(integers[0] == 2 && integers[7] == MPI_ORDER_C && inner[0] == MPI_INT, "the contents of a subarray");
  MPI_Type_dup(part, &made);
  MPI_Type_get_contents(made, 0, 0, 1, integers, addresses, inner);
  check(inner[0] == part, "a type has one handle");
  MPI_Type_free(&inner[0]);
  check(inner[0] == MPI_DATATYPE_NULL && MPI_Type_get_extent(part, &lower, &extent) == MPI_SUCCESS,
        "the other handle of a type stays");
  check(extent == 24 * (MPI_Aint)sizeof(int), "the extent of a subarray");
  MPI_Type_free(&made);
  MPI_Type_free(&part);
  int gsizes[1] = {12}, distribs[1] = {MPI_DISTRIBUTE_BLOCK}, dargs[1] = {MPI_DISTRIBUTE_DFLT_DARG}, psizes[1] = {3};
  MPI_Type_create_darray(3, 1, 1, gsizes, distribs, dargs, psizes, MPI_ORDER_FORTRAN, MPI_INT, &made);
  MPI_Type_get_contents(made, 8, 0, 1, integers, addresses, inner);
  check(integers[4] == MPI_DISTRIBUTE_BLOCK && integers[5] == MPI_DISTRIBUTE_DFLT_DARG &&
            integers[7] == MPI_ORDER_FORTRAN,
        "the contents of a distributed array");
  MPI_Type_free(&made);
  int lengths[2] = {1, 1}, bytes;
  MPI_Type_create_struct(2, lengths, displacements, types, &made);
  MPI_Type_size(made, &bytes);
  check(bytes == 12, "a structure");
  MPI_Type_free(&made);
  MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &made);
  check(made == MPI_REAL8 || made == MPI_DOUBLE_PRECISION, "MPI_Type_match_size");
  MPI_Status status;
  MPI_Status_set_elements(&status, MPI_DOUBLE, 5);
  MPI_Status_set_cancelled(&status, 0);
  MPI_Get_elements(&status, MPI_DOUBLE, &bytes);
  check(bytes == 5, "MPI_Status_set_elements");
}

static void check_communicators(void) {
  int result, level, provided, flag, local, remote, coordinates[1] = {-1}, low, high;
  MPI_Comm half, between, merged, grid;
  MPI_Group group, empty, part;
  MPI_Query_thread(&level);
  check(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE, "MPI_Query_thread");
  (void)provided;
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
  check(result == MPI_IDENT, "MPI_IDENT");
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &half);
  check((half == MPI_COMM_NULL) == (rank == 0), "MPI_UNDEFINED as color");
  if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_compare(half, MPI_COMM_WORLD, &result);
  check(result == MPI_UNEQUAL, "MPI_UNEQUAL");
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, &between);
  MPI_Comm_test_inter(between, &flag);
  check(flag == 1, "MPI_Comm_test_inter");
  local = rank == 0 ? 77 : -1;
  const int root = rank % 2 == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(&local, 1, MPI_INT, root, between);
  check(rank % 2 == 0 || local == 77, "MPI_ROOT");
  MPI_Comm_remote_size(between, &remote);
  check(remote == (rank % 2 == 0 ? size / 2 : (size + 1) / 2), "MPI_Comm_remote_size");
  MPI_Intercomm_merge(between, rank % 2, &merged);
  MPI_Comm_compare(merged, MPI_COMM_WORLD, &result);
  check(result == (size <= 2 ? MPI_CONGRUENT : MPI_SIMILAR), "MPI_Intercomm_merge");
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half);
  MPI_Comm_size(half, &local);
  check(local == size, "MPI_COMM_TYPE_SHARED");
  MPI_Comm_free(&half);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  int ranks[2] = {0, MPI_PROC_NULL}, there[2] = {-9, -9};
  MPI_Group_incl(group, 1, ranks, &part);
  MPI_Group_translate_ranks(part, 2, ranks, group, there);
  check(there[0] == 0 && there[1] == MPI_PROC_NULL, "MPI_Group_translate_ranks");
  MPI_Group_difference(part, group, &empty);
  check(empty == MPI_GROUP_EMPTY, "MPI_GROUP_EMPTY");
  MPI_Group_free(&part);
  MPI_Group_free(&group);
  check(group == MPI_GROUP_NULL, "MPI_Group_free");
  int dims[1] = {size}, periods[1] = {0};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
  MPI_Topo_test(grid, &result);
  check(result == MPI_CART, "MPI_CART");
  MPI_Topo_test(MPI_COMM_WORLD, &result);
  check(result == MPI_UNDEFINED, "no topology");
  MPI_Cart_shift(grid, 0, 1, &low, &high);
  check(low == (rank == 0 ? MPI_PROC_NULL : rank - 1), "MPI_Cart_shift");
  check(high == (rank == size - 1 ? MPI_PROC_NULL : rank + 1), "MPI_Cart_shift upwards");
  MPI_Cart_coords(grid, rank, 1, coordinates);
  check(coordinates[0] == rank, "MPI_Cart_coords");
  MPI_Comm_free(&grid);
  int neighbour[1] = {next()}, source[1] = {previous()}, in_count, out_count, weighted;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, source, MPI_UNWEIGHTED, 1, neighbour, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                 0, &grid);
  MPI_Dist_graph_neighbors_count(grid, &in_count, &out_count, &weighted);
  check(in_count == 1 && out_count == 1 && weighted == 0, "MPI_UNWEIGHTED");
  MPI_Comm_free(&grid);
}

static void check_windows(void) {
  int *base, *place, flag, word = rank + 50, old = -1;
  void* found;
  MPI_Win window;
  MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_get_attr(window, MPI_WIN_BASE, &found, &flag);
  check(flag && found == base, "MPI_WIN_BASE");
  MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &place, &flag);
  check(flag && *place == MPI_WIN_FLAVOR_ALLOCATE, "MPI_WIN_CREATE_FLAVOR");
  MPI_Win_get_attr(window, MPI_WIN_MODEL, &place, &flag);
  check(flag && *place == MPI_WIN_UNIFIED, "MPI_WIN_MODEL");
  memset(base, 0, 4 * sizeof(int));
  MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE, window);
  MPI_Put(&word, 1, MPI_INT, next(), 1, 1, MPI_INT, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  check(base[1] == previous() + 50, "MPI_Put");
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Accumulate(&word, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, window);
  MPI_Fetch_and_op(NULL, &old, MPI_INT, 0, 2, MPI_NO_OP, window);
  MPI_Win_unlock(0, window);
  check(old == 50 * size + size * (size - 1) / 2, "accumulates under locks");
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  int class = -1;
  MPI_Win_lock_all(0, window);
  MPI_Error_class(MPI_Put(&word, 1, MPI_INT, size + 1, 0, 1, MPI_INT, window), &class);
  MPI_Win_unlock_all(window);
  check(class == MPI_ERR_RANK, "an error of a window");
  MPI_Win_free(&window);
  check(window == MPI_WIN_NULL, "MPI_Win_free");
}

static void check_files(const char* path) {
  int word = rank + 7, got = -1, mode = 0, class = -1, count;
  MPI_File file;
  MPI_Status status;
  MPI_Offset bytes;
  MPI_Error_class(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), &class);
  check(class == MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE");
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_get_amode(file, &mode);
  check(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE), "MPI_File_get_amode");
  MPI_File_write_at_all(file, rank * (int)sizeof(int), &word, 1, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(count == 1, "the status of a write");
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_get_size(file, &bytes);
  check(bytes == size * (MPI_Offset)sizeof(int), "the size of a file");
  MPI_File_set_view(file, next() * (int)sizeof(int), MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_read_at(file, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
  check(got == next() + 7, "a view");
  MPI_File_seek(file, -(MPI_Offset)1, MPI_SEEK_END);
  MPI_File_get_position(file, &bytes);
  check(bytes == size - 1 - next() - 0, "MPI_SEEK_END");
  MPI_File_close(&file);
  check(file == MPI_FILE_NULL, "MPI_File_close");
}

static int queried, freed;
static int query(void* extra, MPI_Status* status) {
  ++queried;
  MPI_Status_set_elements(status, MPI_INT, *(int*)extra);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_PROC_NULL;
  status->MPI_TAG = 9;
  return MPI_SUCCESS;
}
static int discard(void* extra) {
  (void)extra;
  ++freed;
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  (void)extra, (void)complete;
  return MPI_SUCCESS;
}

static void check_generalized_requests(void) {
  int four = 4, count = -1;
  MPI_Request request;
  MPI_Status status;
  MPI_Grequest_start(query, discard, cancel, &four, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(count == 4 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 9, "the status of a generalized request");
  check(queried == 1 && freed == 1 && request == MPI_REQUEST_NULL, "functions of a generalized request");
}

static void check_others(void) {
  MPI_Info info;
  MPI_Fint words[MPI_F_STATUS_SIZE];
  MPI_Status status, again;
  char value[16] = "";
  int flag, length;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get(info, "key", 15, value, &flag);
  check(flag && strcmp(value, "value") == 0 && MPI_Info_f2c(MPI_Info_c2f(info)) == info, "info objects");
  MPI_Info_free(&info);
  check(info == MPI_INFO_NULL, "MPI_Info_free");
  memset(&status, 0, sizeof status);
  status.MPI_SOURCE = 3;
  status.MPI_TAG = 4;
  MPI_Status_c2f(&status, words);
  check(words[MPI_F_SOURCE] == 3 && words[MPI_F_TAG] == 4, "a status of Fortran");
  MPI_Status_f2c(words, &again);
  check(memcmp(&status, &again, sizeof status) == 0, "a status from Fortran");
  char name[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Get_processor_name(name, &length);
  check(length > 0 && length < MPI_MAX_PROCESSOR_NAME && name[length] == 0, "MPI_Get_processor_name");
  MPI_Get_library_version(version, &length);
  if (rank == 0) printf("library: %.60s\n", version);
  MPI_Session session;
  int sets = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
  check(sets >= 2, "process sets");
  MPI_Session_finalize(&session);
  check(session == MPI_SESSION_NULL, "MPI_Session_finalize");
}

static void check_tools(void) {
  int provided = -1, count = 0, verbosity, kind, bind, scope, read_only, continuous, atomic, length = 0, other = 0;
  MPI_Datatype type;
  MPI_T_enum names;
  check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided <= MPI_THREAD_MULTIPLE, "MPI_T");
  MPI_T_cvar_get_num(&count);
  check(count > 0, "control variables");
  MPI_T_cvar_get_info(0, NULL, &length, &verbosity, &type, &names, NULL, &other, &bind, &scope);
  check(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL, "a verbosity");
  check(bind == MPI_T_BIND_NO_OBJECT, "MPI_T_BIND_NO_OBJECT");
  check(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ, "a scope");
  check(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG_LONG, "the type of a control variable");
  check(MPI_T_cvar_get_info(1 << 20, NULL, &length, &verbosity, &type, &names, NULL, &other, &bind, &scope) ==
            MPI_T_ERR_INVALID_INDEX,
        "MPI_T_ERR_INVALID_INDEX");
  MPI_T_pvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    length = other = 0;
    MPI_T_pvar_get_info(i, NULL, &length, &verbosity, &kind, &type, &names, NULL, &other, &bind, &read_only,
                        &continuous, &atomic);
    check(kind >= MPI_T_PVAR_CLASS_STATE && kind <= MPI_T_PVAR_CLASS_GENERIC, "the class of a performance variable");
  }
  MPI_T_finalize();
}

int main(int argc, char** argv) {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(provided == MPI_THREAD_FUNNELED || provided == MPI_THREAD_SERIALIZED || provided == MPI_THREAD_MULTIPLE,
        "MPI_Init_thread");
  check_messages();
  check_many_requests();
  check_collectives();
  check_attributes();
  check_errors();
  check_types();
  check_communicators();
  check_windows();
  check_files(argv[1]);
  check_generalized_requests();
  check_others();
  check_tools();
  if (wrong == 0) printf("rank %d: ok\n", rank);
  MPI_Finalize();
  return wrong != 0;
}
