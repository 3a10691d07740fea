// Runs as every rank of a job: groups, communicators, attributes, error handlers and info objects.
#include <array>
#include <cstring>
#include <string>

#include "mpi_job.h"

namespace brant::mpi {
namespace {

class Groups : public testing::Test {
 protected:
  static int rank_in(MPI_Comm comm) {
    int value = -1;
    MPI_Comm_rank(comm, &value);
    return value;
  }
  static int size_of(MPI_Comm comm) {
    int value = -1;
    MPI_Comm_size(comm, &value);
    return value;
  }
  /// A word goes once round the communicator.
  static void expect_works(MPI_Comm comm) {
    const int size = size_of(comm);
    const int rank = rank_in(comm);
    int got = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(got, (rank + size - 1) % size);
  }
  const int self_ = test::rank(), size_ = test::size();
};

TEST_F(Groups, of_the_world_and_of_this_rank_alone_are_there_from_the_start) {
  EXPECT_EQ(size_of(MPI_COMM_SELF), 1);
  EXPECT_EQ(rank_in(MPI_COMM_SELF), 0);
  expect_works(MPI_COMM_WORLD);
  expect_works(MPI_COMM_SELF);
  int result = -1;
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
  EXPECT_EQ(result, MPI_IDENT);
}

TEST_F(Groups, copies_of_communicators_are_apart_from_them) {
  MPI_Comm copy = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &copy), 0);
  int result = -1;
  MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
  EXPECT_EQ(result, MPI_CONGRUENT);
  const int right = (self_ + 1) % size_;
  int one = 1, two = 2, got = 0;
  MPI_Request requests[2];
  MPI_Isend(&one, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&two, 1, MPI_INT, right, 0, copy, &requests[1]);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, 2);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, 1);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&copy);
  EXPECT_EQ(copy, MPI_COMM_NULL);
}

TEST_F(Groups, communicators_are_split_by_color_and_ordered_by_key) {
  MPI_Comm half = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, self_ % 2, -self_, &half), 0);
  const int members = (size_ + 1 - self_ % 2) / 2;
  EXPECT_EQ(size_of(half), members);
  EXPECT_EQ(rank_in(half), members - 1 - self_ / 2);
  expect_works(half);
  MPI_Comm_free(&half);
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, self_ == 0 ? 0 : MPI_UNDEFINED, 0, &half), 0);
  EXPECT_EQ(half == MPI_COMM_NULL, self_ != 0);
  if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
  ASSERT_EQ(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half), 0);
  EXPECT_EQ(size_of(half), size_) << "all ranks of this test are on one host";
  expect_works(half);
  MPI_Comm_free(&half);
}

TEST_F(Groups, communicators_are_made_of_groups_by_their_members_alone) {
  MPI_Group world = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int ranges[1][3] = {{size_ - 1, 0, -2}};
  MPI_Group_range_incl(world, 1, ranges, &some);
  int own = -1;
  MPI_Group_rank(some, &own);
  const bool member = (size_ - 1 - self_) % 2 == 0;
  EXPECT_EQ(own, member ? (size_ - 1 - self_) / 2 : MPI_UNDEFINED);
  MPI_Comm made = MPI_COMM_NULL;
  if (member) {
    ASSERT_EQ(MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &made), 0);
    EXPECT_EQ(rank_in(made), own);
    expect_works(made);
    MPI_Comm_free(&made);
  }
  ASSERT_EQ(MPI_Comm_create(MPI_COMM_WORLD, some, &made), 0);
  EXPECT_EQ(made != MPI_COMM_NULL, member);
  if (member) MPI_Comm_free(&made);
  MPI_Group_free(&some);
  MPI_Group_free(&world);
}

TEST_F(Groups, are_sets_with_an_order) {
  MPI_Group world = MPI_GROUP_NULL, first = MPI_GROUP_NULL, rest = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int zero = 0;
  MPI_Group_incl(world, 1, &zero, &first);
  MPI_Group_excl(world, 1, &zero, &rest);
  int count = -1;
  MPI_Group_size(rest, &count);
  EXPECT_EQ(count, size_ - 1);
  EXPECT_EQ(rest == MPI_GROUP_EMPTY, size_ == 1);
  MPI_Group_union(rest, first, &all);
  int result = -1;
  MPI_Group_compare(all, world, &result);
  EXPECT_EQ(result, size_ == 1 ? MPI_IDENT : MPI_SIMILAR);
  int translated = -1;
  MPI_Group_translate_ranks(world, 1, &zero, all, &translated);
  EXPECT_EQ(translated, size_ - 1);
  MPI_Group both = MPI_GROUP_NULL, none = MPI_GROUP_NULL;
  MPI_Group_intersection(all, first, &both);
  MPI_Group_compare(both, first, &result);
  EXPECT_EQ(result, MPI_IDENT);
  MPI_Group_difference(first, all, &none);
  EXPECT_EQ(none, MPI_GROUP_EMPTY);
  for (MPI_Group* group : {&world, &first, &rest, &all, &both, &none}) {
    EXPECT_EQ(MPI_Group_free(group), 0);
    EXPECT_EQ(*group, MPI_GROUP_NULL);
  }
}

int g_copies = 0;
int g_deletes = 0;
int copy_attribute(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
  ++g_copies;
  void* next = static_cast<char*>(in) + reinterpret_cast<std::intptr_t>(extra);
  std::memcpy(out, static_cast<const void*>(&next), sizeof next);
  *flag = 1;
  return MPI_SUCCESS;
}
int delete_attribute(MPI_Comm, int, void*, void*) {
  ++g_deletes;
  return MPI_SUCCESS;
}

TEST_F(Groups, attributes_go_where_their_communicator_goes) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, reinterpret_cast<void*>(std::intptr_t{8}));
  MPI_Comm base = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  char place[16];
  MPI_Comm_set_attr(base, key, place);
  MPI_Comm_dup(base, &copy);
  void* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(copy, key, static_cast<void*>(&value), &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(value, place + 8);
  EXPECT_EQ(g_copies, 1);
  MPI_Comm_delete_attr(copy, key);
  EXPECT_EQ(g_deletes, 1);
  MPI_Comm_get_attr(copy, key, static_cast<void*>(&value), &flag);
  EXPECT_EQ(flag, 0);
  MPI_Comm_free(&copy);
  MPI_Comm_free_keyval(&key);
  EXPECT_EQ(key, MPI_KEYVAL_INVALID);
  MPI_Comm_free(&base);
  EXPECT_EQ(g_deletes, 2) << "a key lives as long as an attribute has it";
  int* bound = nullptr;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_GE(*bound, 32767);
}

int g_reported = MPI_SUCCESS;
void report(MPI_Comm*, int* code, ...) { g_reported = *code; }

TEST_F(Groups, errors_go_through_the_handler_of_their_communicator) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(report, &handler);
  MPI_Comm_set_errhandler(copy, handler);
  MPI_Errhandler_free(&handler);
  EXPECT_EQ(handler, MPI_ERRHANDLER_NULL);
  EXPECT_EQ(MPI_Send(nullptr, 0, MPI_INT, size_ + 5, 0, copy), MPI_ERR_RANK);
  EXPECT_EQ(g_reported, MPI_ERR_RANK);
  MPI_Comm_free(&copy);
  int added = 0;
  MPI_Add_error_class(&added);
  EXPECT_GT(added, MPI_ERR_LASTCODE);
  MPI_Add_error_string(added, "no goose");
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(added, text, &length);
  EXPECT_STREQ(text, "no goose");
  MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
  EXPECT_EQ(std::string(text).find("MPI_ERR_TRUNCATE"), 0u);
}

TEST_F(Groups, info_objects_keep_keys_in_order) {
  MPI_Info info = MPI_INFO_NULL, copy = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "b", "1");
  MPI_Info_set(info, "a", "22");
  MPI_Info_set(info, "b", "333");
  MPI_Info_dup(info, &copy);
  MPI_Info_free(&info);
  int count = 0, flag = 0, room = 3;
  MPI_Info_get_nkeys(copy, &count);
  EXPECT_EQ(count, 2);
  char text[MPI_MAX_INFO_VAL];
  MPI_Info_get_nthkey(copy, 0, text);
  EXPECT_STREQ(text, "b");
  MPI_Info_get_string(copy, "b", &room, text, &flag);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(room, 4);
  EXPECT_STREQ(text, "33") << "as much as there is room for";
  MPI_Info_free(&copy);
}

TEST_F(Groups, grids_know_who_is_next_to_whom) {
  int dims[2] = {0, 0};
  ASSERT_EQ(MPI_Dims_create(12, 2, dims), 0);
  EXPECT_EQ(dims[0] * dims[1], 12);
  EXPECT_GE(dims[0], dims[1]);
  const int extents[2] = {1, size_}, periods[2] = {0, 1};
  MPI_Comm grid = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid), 0);
  int kind = 0, source = -1, dest = -1;
  MPI_Topo_test(grid, &kind);
  EXPECT_EQ(kind, MPI_CART);
  MPI_Cart_shift(grid, 1, 1, &source, &dest);
  EXPECT_EQ(source, (self_ + size_ - 1) % size_);
  EXPECT_EQ(dest, (self_ + 1) % size_);
  MPI_Cart_shift(grid, 0, 1, &source, &dest);
  EXPECT_EQ(source, MPI_PROC_NULL);
  EXPECT_EQ(dest, MPI_PROC_NULL);
  int place[2] = {-1, -1}, rank = -1;
  MPI_Cart_coords(grid, self_, 2, place);
  EXPECT_EQ(place[1], self_);
  place[1] = self_ - size_;  // once round
  MPI_Cart_rank(grid, place, &rank);
  EXPECT_EQ(rank, self_);
  const int remain[2] = {1, 0};
  MPI_Comm column = MPI_COMM_NULL;
  MPI_Cart_sub(grid, remain, &column);
  EXPECT_EQ(size_of(column), 1);
  MPI_Comm_free(&column);
  const int number = MPI_Comm_toint(grid);
  EXPECT_EQ(MPI_Comm_fromint(number), grid);
  EXPECT_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  MPI_Comm_free(&grid);
}

}  // namespace
}  // namespace brant::mpi
