// Runs as every rank of a job, which spawns others of the same program: those run the tests of `Children` alone.
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "mpi_job.h"
#include "support/effort.h"

namespace brant::mpi {
namespace {

MPI_Comm parent() {
  MPI_Comm comm = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_get_parent(&comm), 0);
  return comm;
}

int remote_size(MPI_Comm comm) {
  int size = -1;
  EXPECT_EQ(MPI_Comm_remote_size(comm, &size), 0);
  return size;
}

int size_of(MPI_Comm comm) {
  int size = -1;
  EXPECT_EQ(MPI_Comm_size(comm, &size), 0);
  return size;
}

int rank_in(MPI_Comm comm) {
  int rank = -1;
  EXPECT_EQ(MPI_Comm_rank(comm, &rank), 0);
  return rank;
}

std::string own_program() {
  std::array<char, 4096> path{};
  EXPECT_GT(::readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  return path.data();
}

/// A child that runs one of the tests of `Children`.
struct Child {
  explicit Child(const char* test) : filter(std::string("--gtest_filter=Children.") + test) {}
  char** arguments() { return words.data(); }

  std::string program = own_program();
  std::string filter;
  std::string quiet = "--gtest_brief=1";
  std::vector<char*> words = {filter.data(), quiet.data(), nullptr};
};

MPI_Comm spawn(const char* test, int processes, MPI_Comm comm = MPI_COMM_WORLD, MPI_Info info = MPI_INFO_NULL) {
  Child child(test);
  MPI_Comm children = MPI_COMM_NULL;
  std::vector<int> codes(static_cast<std::size_t>(processes), -1);
  EXPECT_EQ(MPI_Comm_spawn(child.program.c_str(), child.arguments(), processes, info, 0, comm, &children, codes.data()),
            0);
  for (const int code : codes) EXPECT_EQ(code, MPI_SUCCESS);
  EXPECT_EQ(remote_size(children), processes);
  return children;
}

/// What the two groups of a communicator do with each other, by each of its members.
void expect_to_work_together(MPI_Comm between) {
  const int others = remote_size(between);
  for (int i = 0; i < others; ++i) {
    int sent = rank_in(between) * 100 + i, got = -1;
    MPI_Status status;
    ASSERT_EQ(MPI_Sendrecv(&sent, 1, MPI_INT, i, 5, &got, 1, MPI_INT, i, 5, between, &status), 0);
    EXPECT_EQ(got, i * 100 + rank_in(between));
  }
  const std::vector<std::uint8_t> large = test::pattern(300'000, 3);
  std::vector<std::uint8_t> landed(large.size());
  const int peer = rank_in(between) % others;
  if (others == size_of(between)) {
    ASSERT_EQ(MPI_Sendrecv(large.data(), 300'000, MPI_BYTE, peer, 6, landed.data(), 300'000, MPI_BYTE, MPI_ANY_SOURCE,
                           MPI_ANY_TAG, between, MPI_STATUS_IGNORE),
              0);
    EXPECT_EQ(landed, large);
  }
  int sum = -1, one = 1;
  ASSERT_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between), 0);
  EXPECT_EQ(sum, others);
}

void expect_a_window_to_work(MPI_Comm all) {
  const int size = size_of(all), self = rank_in(all);
  int* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  ASSERT_EQ(MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int) * static_cast<std::size_t>(size + 1)), sizeof(int),
                             MPI_INFO_NULL, all, static_cast<void*>(&memory), &window),
            0);
  for (int i = 0; i <= size; ++i) memory[i] = 0;
  MPI_Win_fence(0, window);
  const int value = self + 1;
  for (int i = 0; i < size; ++i) {
    MPI_Put(&value, 1, MPI_INT, i, self, 1, MPI_INT, window);
    MPI_Accumulate(&value, 1, MPI_INT, i, size, 1, MPI_INT, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < size; ++i) EXPECT_EQ(memory[i], i + 1);
  EXPECT_EQ(memory[size], size * (size + 1) / 2);
  MPI_Win_free(&window);
}

/// Merges the groups, and does with all what programs do with the ranks of one job.
void expect_a_merged_one_to_work(MPI_Comm between, int high) {
  MPI_Comm all = MPI_COMM_NULL, copy = MPI_COMM_NULL, part = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Intercomm_merge(between, high, &all), 0);
  const int size = size_of(all), self = rank_in(all);
  ASSERT_EQ(size, size_of(between) + remote_size(between));
  EXPECT_EQ(self, rank_in(between) + (high != 0 ? remote_size(between) : 0));
  std::vector<double> sums(5000, 0), ones(5000, self + 1.0);
  ASSERT_EQ(MPI_Allreduce(ones.data(), sums.data(), 5000, MPI_DOUBLE, MPI_SUM, all), 0);
  EXPECT_EQ(sums[4999], size * (size + 1) / 2.0);
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Comm_idup(all, &copy, &request), 0);
  ASSERT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), 0);
  int token = self == 0 ? 42 : -1;
  ASSERT_EQ(MPI_Bcast(&token, 1, MPI_INT, 0, copy), 0);
  EXPECT_EQ(token, 42);
  ASSERT_EQ(MPI_Comm_split(all, self % 2, -self, &part), 0);
  EXPECT_EQ(size_of(part), self % 2 == 0 ? (size + 1) / 2 : size / 2);
  ASSERT_EQ(MPI_Barrier(part), 0);
  expect_a_window_to_work(all);
  const int right = (self + 1) % size, left = (self + size - 1) % size;
  const std::size_t bytes = 50'000;
  Memory out = runtime().allocate(runtime().device_kind(), bytes),
         in = runtime().allocate(runtime().device_kind(), bytes);
  std::vector<std::uint8_t> data = test::pattern(bytes, self), got(bytes);
  runtime().copy(out, ConstBuffer(data.data(), bytes, MemoryKind::host));
  ASSERT_EQ(MPI_Sendrecv(out.data(), static_cast<int>(bytes), MPI_BYTE, right, 1, in.data(), static_cast<int>(bytes),
                         MPI_BYTE, left, 1, all, MPI_STATUS_IGNORE),
            0);
  runtime().copy(Buffer(got.data(), bytes, MemoryKind::host), in);
  EXPECT_EQ(got, test::pattern(bytes, left));
  MPI_Comm_disconnect(&part);
  MPI_Comm_disconnect(&copy);
  MPI_Comm_disconnect(&all);
}

class Spawning : public testing::Test {
 protected:
  void SetUp() override {
    if (parent() != MPI_COMM_NULL) GTEST_SKIP() << "for those that nobody has spawned";
  }
};

class Children : public testing::Test {
 protected:
  void SetUp() override {
    if (parent() == MPI_COMM_NULL) GTEST_SKIP() << "for those that were spawned";
  }
};

// Each of those that are spawned has a part for the parents and one for the children.
// -------------------------------------------------------------------------------------------------------------------

TEST_F(Spawning, one_child_works_with_its_parents) {
  MPI_Comm children = spawn("work", 1);
  expect_to_work_together(children);
  expect_a_merged_one_to_work(children, 0);
  EXPECT_EQ(MPI_Comm_disconnect(&children), 0);
}

TEST_F(Spawning, three_children_are_a_world_of_their_own) {
  if (test::size() > 1) GTEST_SKIP() << "four processes are enough";
  MPI_Comm children = spawn("work", 3);
  expect_to_work_together(children);
  expect_a_merged_one_to_work(children, 0);
  EXPECT_EQ(MPI_Comm_disconnect(&children), 0);
}

TEST_F(Children, work) {
  EXPECT_EQ(size_of(MPI_COMM_WORLD), size_of(parent()));
  MPI_Comm parents = parent();
  expect_to_work_together(parents);
  expect_a_merged_one_to_work(parents, 1);
  EXPECT_EQ(MPI_Comm_disconnect(&parents), 0);
  EXPECT_EQ(parents, MPI_COMM_NULL);
  EXPECT_EQ(parent(), MPI_COMM_NULL);
}

TEST_F(Spawning, children_that_do_not_disconnect_end_together_with_their_parents) {
  MPI_Comm children = spawn("stay", 1);
  expect_to_work_together(children);
  EXPECT_EQ(MPI_Comm_free(&children), 0);  // which does not disconnect
}

TEST_F(Children, stay) { expect_to_work_together(parent()); }

TEST_F(Spawning, children_spawn_children) {
  if (test::size() > 1) GTEST_SKIP() << "four processes are enough";
  MPI_Comm children = spawn("spawn_others", 1);
  int depth = -1;
  ASSERT_EQ(MPI_Recv(&depth, 1, MPI_INT, 0, 1, children, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(depth, 2);
  EXPECT_EQ(MPI_Comm_disconnect(&children), 0);
}

TEST_F(Children, spawn_others) {
  MPI_Comm parents = parent();
  MPI_Comm others = spawn("say_one", 1, MPI_COMM_SELF);
  int depth = 0;
  ASSERT_EQ(MPI_Recv(&depth, 1, MPI_INT, 0, 1, others, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_Comm_disconnect(&others), 0);
  ++depth;
  ASSERT_EQ(MPI_Send(&depth, 1, MPI_INT, 0, 1, parents), 0);
  EXPECT_EQ(MPI_Comm_disconnect(&parents), 0);
}

TEST_F(Children, say_one) {
  MPI_Comm parents = parent();
  const int one = 1;
  ASSERT_EQ(MPI_Send(&one, 1, MPI_INT, 0, 1, parents), 0);
  EXPECT_EQ(MPI_Comm_disconnect(&parents), 0);
}

TEST_F(Spawning, several_commands_make_one_world) {
  Child first("tell_of_themselves"), second("tell_of_themselves");
  std::array<char*, 2> commands = {first.program.data(), second.program.data()};
  std::array<char**, 2> arguments = {first.arguments(), second.arguments()};
  const std::array<int, 2> counts = {1, 1};
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "wdir", "/");
  MPI_Info_set(info, "env", "BRANT_TEST_SPAWNED=yes\n");
  const std::array<MPI_Info, 2> infos = {MPI_INFO_NULL, info};
  std::array<int, 2> codes = {-1, -1};
  MPI_Comm children = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_spawn_multiple(2, commands.data(), arguments.data(), counts.data(), infos.data(), 0,
                                    MPI_COMM_WORLD, &children, codes.data()),
            0);
  EXPECT_EQ(codes, (std::array<int, 2>{0, 0}));
  for (int child = 0; test::rank() == 0 && child < 2; ++child) {
    std::array<int, 3> told{};
    ASSERT_EQ(MPI_Recv(told.data(), 3, MPI_INT, child, 1, children, MPI_STATUS_IGNORE), 0);
    EXPECT_EQ(told, (std::array<int, 3>{child, child, 2}));
  }
  MPI_Info_free(&info);
  EXPECT_EQ(MPI_Comm_disconnect(&children), 0);
}

TEST_F(Children, tell_of_themselves) {
  int flag = 0;
  int* number = nullptr;
  ASSERT_EQ(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, static_cast<void*>(&number), &flag), 0);
  std::array<char, 4096> folder{};
  const bool moved = ::getcwd(folder.data(), folder.size()) != nullptr && std::strcmp(folder.data(), "/") == 0;
  const bool told = std::getenv("BRANT_TEST_SPAWNED") != nullptr;
  EXPECT_EQ(moved, told);
  const std::array<int, 3> words = {*number, moved ? 1 : 0, size_of(MPI_COMM_WORLD)};
  MPI_Comm parents = parent();
  ASSERT_EQ(MPI_Send(words.data(), 3, MPI_INT, 0, 1, parents), 0);
  EXPECT_EQ(MPI_Comm_disconnect(&parents), 0);
}

TEST_F(Spawning, what_cannot_be_started_is_an_error_of_the_call) {
  test::ErrorsReturned returned(MPI_COMM_WORLD);
  for (const char* command : {"no-such-program-of-brant", "/etc/passwd", "/bin/false", "/bin/true"}) {
    MPI_Comm children = MPI_COMM_WORLD;
    std::array<int, 2> codes = {-1, -1};
    int error_class = 0;
    MPI_Error_class(
        MPI_Comm_spawn(command, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes.data()),
        &error_class);
    EXPECT_EQ(error_class, MPI_ERR_SPAWN) << command;
    EXPECT_EQ(children, MPI_COMM_NULL);
    EXPECT_EQ(codes, (std::array<int, 2>{MPI_ERR_SPAWN, MPI_ERR_SPAWN}));
  }
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "host", "a-host-of-nobody");
  MPI_Comm children = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE),
            MPI_ERR_SPAWN);
  MPI_Info_free(&info);
}

TEST_F(Spawning, soft_numbers_allow_fewer) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "soft", "1,8:16:4");
  Child child("stay");
  MPI_Comm children = MPI_COMM_NULL;
  std::array<int, 3> codes = {-1, -1, -1};
  ASSERT_EQ(
      MPI_Comm_spawn(child.program.c_str(), child.arguments(), 3, info, 0, MPI_COMM_WORLD, &children, codes.data()), 0);
  EXPECT_EQ(remote_size(children), 1);
  EXPECT_EQ(codes, (std::array<int, 3>{MPI_SUCCESS, MPI_ERR_SPAWN, MPI_ERR_SPAWN}));
  expect_to_work_together(children);
  EXPECT_EQ(MPI_Comm_free(&children), 0);
  MPI_Info_free(&info);
}

/// The child knows rank 0 alone; the others are introduced.
TEST_F(Spawning, groups_that_have_not_met_make_a_communicator_through_those_that_have) {
  MPI_Comm child = MPI_COMM_NULL, both = MPI_COMM_NULL, introduced = MPI_COMM_NULL;
  if (test::rank() == 0) {
    child = spawn("meet_the_others", 1, MPI_COMM_SELF);
    ASSERT_EQ(MPI_Intercomm_merge(child, 0, &both), 0);
  }
  ASSERT_EQ(MPI_Intercomm_create(MPI_COMM_WORLD, 0, both, 1, 7, &introduced), 0);
  expect_to_work_together(introduced);
  EXPECT_EQ(MPI_Comm_disconnect(&introduced), 0);
  if (test::rank() != 0) return;
  MPI_Comm_disconnect(&both);
  MPI_Comm_disconnect(&child);
}

TEST_F(Children, meet_the_others) {
  MPI_Comm parents = parent(), both = MPI_COMM_NULL, introduced = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Intercomm_merge(parents, 1, &both), 0);
  ASSERT_EQ(MPI_Intercomm_create(MPI_COMM_WORLD, 0, both, 0, 7, &introduced), 0);
  expect_to_work_together(introduced);
  EXPECT_EQ(MPI_Comm_disconnect(&introduced), 0);
  MPI_Comm_disconnect(&both);
  MPI_Comm_disconnect(&parents);
}

int open_files() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// KiB of this process that are in memory.
long resident() {
  long pages = 0;
  long all = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): before main, or not at all
const int kTimes = brant::test::effort(100, 15);

TEST_F(Spawning, connections_come_and_go_and_leave_nothing) {
  MPI_Comm children = spawn("come_and_go", 1);
  std::array<char, MPI_MAX_PORT_NAME> port{};
  if (test::rank() == 0) {
    ASSERT_EQ(MPI_Open_port(MPI_INFO_NULL, port.data()), 0);
    ASSERT_EQ(MPI_Send(port.data(), static_cast<int>(port.size()), MPI_CHAR, 0, 1, children), 0);
  }
  EXPECT_EQ(MPI_Comm_disconnect(&children), 0);
  int before = 0;
  long memory = 0;
  for (int i = 0; i < kTimes; ++i) {
    MPI_Comm client = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Comm_accept(port.data(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &client), 0);
    expect_to_work_together(client);
    ASSERT_EQ(MPI_Comm_disconnect(&client), 0);
    if (i == kTimes / 4) {
      before = open_files();
      memory = resident();
    }
  }
  EXPECT_LE(open_files(), before);
  if (!brant::test::kSanitized) {
    EXPECT_LE(resident(), memory + 1024);
  }
  if (test::rank() == 0) {
    EXPECT_EQ(MPI_Close_port(port.data()), 0);
  }
}

TEST_F(Children, come_and_go) {
  MPI_Comm parents = parent();
  std::array<char, MPI_MAX_PORT_NAME> port{};
  ASSERT_EQ(MPI_Recv(port.data(), static_cast<int>(port.size()), MPI_CHAR, 0, 1, parents, MPI_STATUS_IGNORE), 0);
  EXPECT_EQ(MPI_Comm_disconnect(&parents), 0);
  for (int i = 0; i < kTimes; ++i) {
    MPI_Comm server = MPI_COMM_NULL;
    ASSERT_EQ(MPI_Comm_connect(port.data(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &server), 0);
    expect_to_work_together(server);
    ASSERT_EQ(MPI_Comm_disconnect(&server), 0);
  }
}

// Within one job
// -------------------------------------------------------------------------------------------------------------------

TEST_F(Spawning, services_are_found_by_name_until_they_are_unpublished) {
  test::ErrorsReturned returned(MPI_COMM_SELF);
  const std::string service = "brant test " + std::to_string(::getpid());
  std::array<char, MPI_MAX_PORT_NAME> port{}, found{};
  EXPECT_EQ(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found.data()), MPI_ERR_NAME);
  ASSERT_EQ(MPI_Open_port(MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port.data()), MPI_ERR_SERVICE);
  EXPECT_EQ(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found.data()), 0);
  EXPECT_STREQ(found.data(), port.data());
  EXPECT_EQ(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, "another"), MPI_ERR_SERVICE);
  EXPECT_EQ(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port.data()), MPI_ERR_SERVICE);
  EXPECT_EQ(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found.data()), MPI_ERR_NAME);
  EXPECT_EQ(MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Close_port(port.data()), 0);
  EXPECT_EQ(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found.data()), MPI_ERR_NAME);
}

TEST_F(Spawning, ports_that_are_none_are_errors) {
  test::ErrorsReturned world(MPI_COMM_WORLD), self(MPI_COMM_SELF);
  MPI_Comm comm = MPI_COMM_WORLD;
  std::array<char, MPI_MAX_PORT_NAME> port{};
  ASSERT_EQ(MPI_Open_port(MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Comm_connect(port.data(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm), MPI_ERR_PORT);  // its own
  EXPECT_EQ(MPI_Close_port(port.data()), 0);
  EXPECT_EQ(MPI_Close_port(port.data()), MPI_ERR_PORT);
  for (const char* none : {static_cast<const char*>(port.data()), "", "tcp://somewhere", "brant-port:host:../x"}) {
    EXPECT_EQ(MPI_Comm_connect(none, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm), MPI_ERR_PORT) << none;
    EXPECT_EQ(MPI_Comm_accept(none, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm), MPI_ERR_PORT) << none;
    EXPECT_EQ(comm, MPI_COMM_NULL);
  }
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "timeout", "0.1");
  ASSERT_EQ(MPI_Open_port(MPI_INFO_NULL, port.data()), 0);
  EXPECT_EQ(MPI_Comm_accept(port.data(), info, 0, MPI_COMM_SELF, &comm), MPI_ERR_PORT);  // nobody comes
  MPI_Info_free(&info);
  EXPECT_EQ(MPI_Close_port(port.data()), 0);
}

TEST_F(Spawning, ranks_of_one_job_connect_by_a_port_too) {
  if (test::size() != 2) GTEST_SKIP() << "for two";
  std::array<char, MPI_MAX_PORT_NAME> port{};
  MPI_Comm other = MPI_COMM_NULL;
  if (test::rank() == 0) {
    ASSERT_EQ(MPI_Open_port(MPI_INFO_NULL, port.data()), 0);
  }
  MPI_Bcast(port.data(), static_cast<int>(port.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  if (test::rank() == 0) {
    ASSERT_EQ(MPI_Comm_accept(port.data(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), 0);
    EXPECT_EQ(MPI_Close_port(port.data()), 0);
  } else {
    ASSERT_EQ(MPI_Comm_connect(port.data(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), 0);
  }
  expect_to_work_together(other);
  EXPECT_EQ(MPI_Comm_disconnect(&other), 0);
}

TEST_F(Spawning, two_processes_join_by_a_socket) {
  if (test::size() != 2) GTEST_SKIP() << "for two";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int name = static_cast<int>(::getpid());
  MPI_Bcast(&name, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::string text = "brant-join-" + std::to_string(name);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (test::rank() == 0) {
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::listen(fd, 1), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const int listening = fd;
    fd = ::accept(listening, nullptr, nullptr);
    ::close(listening);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  MPI_Comm other = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_join(fd, &other), 0);
  expect_to_work_together(other);
  EXPECT_EQ(MPI_Comm_disconnect(&other), 0);
  test::ErrorsReturned returned(MPI_COMM_SELF);
  if (test::rank() == 0) ::shutdown(fd, SHUT_RDWR);
  EXPECT_EQ(MPI_Comm_join(fd, &other), MPI_ERR_OTHER);
  ::close(fd);
  EXPECT_EQ(MPI_Comm_join(fd, &other), MPI_ERR_ARG);
}

}  // namespace
}  // namespace brant::mpi
