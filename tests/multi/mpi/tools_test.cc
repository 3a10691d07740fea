// Runs as every rank of a job: what the tools interface says of brant, but for its performance variables.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "around_the_job.h"
#include "mpi_job.h"

namespace brant::mpi {

void test::AroundTheJob::before() { ASSERT_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, nullptr), MPI_SUCCESS); }

void test::AroundTheJob::after() { EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS); }

namespace {

int control_index(const char* name) {
  int index = -1;
  EXPECT_EQ(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS) << name;
  return index;
}

// Texts
// -------------------------------------------------------------------------------------------------------------------

TEST(Tools, give_as_much_of_a_text_as_there_is_room_for) {
  const int index = control_index("BRANT_SLEEP");
  const auto ask = [index](char* place, int* length) {
    return MPI_T_cvar_get_info(index, place, length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  const int whole = static_cast<int>(std::strlen("BRANT_SLEEP")) + 1;
  char text[64];
  std::memset(text, '#', sizeof text);

  int length = 64;
  EXPECT_EQ(ask(text, &length), MPI_SUCCESS);
  EXPECT_STREQ(text, "BRANT_SLEEP");
  EXPECT_EQ(length, whole);
  length = 6;
  EXPECT_EQ(ask(text, &length), MPI_SUCCESS);
  EXPECT_STREQ(text, "BRANT");
  EXPECT_EQ(length, whole);
  length = whole;
  EXPECT_EQ(ask(text, &length), MPI_SUCCESS);
  EXPECT_STREQ(text, "BRANT_SLEEP");

  std::strcpy(text, "kept");
  length = 0;
  EXPECT_EQ(ask(text, &length), MPI_SUCCESS);
  EXPECT_EQ(length, whole);
  length = 64;
  EXPECT_EQ(ask(nullptr, &length), MPI_SUCCESS);
  EXPECT_EQ(length, whole);
  EXPECT_EQ(ask(text, nullptr), MPI_SUCCESS);
  EXPECT_STREQ(text, "kept");
}

// Control variables
// -------------------------------------------------------------------------------------------------------------------

struct Described {
  char name[128] = {}, description[512] = {};
  int verbosity = 0, bind = 0, scope = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  MPI_T_enum names = MPI_T_ENUM_NULL;
};

Described control(int index) {
  Described one;
  int name_length = sizeof one.name, description_length = sizeof one.description;
  EXPECT_EQ(MPI_T_cvar_get_info(index, one.name, &name_length, &one.verbosity, &one.datatype, &one.names,
                                one.description, &description_length, &one.bind, &one.scope),
            MPI_SUCCESS);
  EXPECT_LE(description_length, static_cast<int>(sizeof one.description)) << one.name;
  return one;
}

/// A handle as long as it lives.
class Control {
 public:
  explicit Control(const char* name) {
    EXPECT_EQ(MPI_T_cvar_handle_alloc(control_index(name), nullptr, &handle, &count), MPI_SUCCESS);
  }
  ~Control() {
    EXPECT_EQ(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
    EXPECT_EQ(handle, MPI_T_CVAR_HANDLE_NULL);
  }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  template <typename T>
  [[nodiscard]] T read() const {
    T value{};
    EXPECT_EQ(count, 1);
    EXPECT_EQ(MPI_T_cvar_read(handle, &value), MPI_SUCCESS);
    return value;
  }
  [[nodiscard]] std::string text() const {
    std::vector<char> value(static_cast<std::size_t>(count), '#');
    EXPECT_EQ(MPI_T_cvar_read(handle, value.data()), MPI_SUCCESS);
    return value.data();
  }

  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
};

/// In the environment as long as it lives. The ranks of a process share that, and none waits meanwhile.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) {
    if (const char* set = std::getenv(name); set != nullptr) before_ = set;
    ::setenv(name, value, 1);
  }
  ~Set() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(Tools, describe_all_control_variables) {
  int count = 0;
  ASSERT_EQ(MPI_T_cvar_get_num(&count), MPI_SUCCESS);
  ASSERT_GT(count, 10);
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) {
    const Described one = control(i);
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(control_index(one.name), i);
    EXPECT_NE(one.description[0], 0) << one.name;
    EXPECT_EQ(one.bind, MPI_T_BIND_NO_OBJECT);
    EXPECT_TRUE(one.scope == MPI_T_SCOPE_CONSTANT || one.scope == MPI_T_SCOPE_READONLY) << one.name;
    EXPECT_TRUE(one.names == MPI_T_ENUM_NULL || one.datatype == MPI_INT) << one.name;
    const Control handle(one.name);
    std::vector<char> value(static_cast<std::size_t>(handle.count) * sizeof(MPI_Count));
    EXPECT_EQ(MPI_T_cvar_read(handle.handle, value.data()), MPI_SUCCESS) << one.name;
    EXPECT_EQ(MPI_T_cvar_write(handle.handle, value.data()), MPI_T_ERR_CVAR_SET_NEVER) << one.name;
  }
  EXPECT_EQ(MPI_T_cvar_get_info(count, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_cvar_get_info(-1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_cvar_get_info(0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_SUCCESS);
}

TEST(Tools, read_what_the_environment_says) {
  {
    const Set stall("BRANT_STALL_REPORT_MS", "1234"), sleep("BRANT_SLEEP", "no"), path("BRANT_PATH", "staged");
    const Set ucx("BRANT_UCX", "/opt/ucx");
    EXPECT_EQ(Control("BRANT_STALL_REPORT_MS").read<MPI_Count>(), 1234);
    EXPECT_EQ(Control("BRANT_SLEEP").read<int>(), 0);
    EXPECT_EQ(Control("BRANT_PATH").read<int>(), 3);
    EXPECT_EQ(Control("BRANT_UCX").text(), "/opt/ucx");
  }
  {
    const Set stall("BRANT_STALL_REPORT_MS", ""), sleep("BRANT_SLEEP", ""), path("BRANT_PATH", "");
    const Set log("BRANT_LOG", "loud");
    EXPECT_EQ(Control("BRANT_LOG").read<int>(), 1) << "a value that brant ignores";
    EXPECT_EQ(Control("BRANT_STALL_REPORT_MS").read<MPI_Count>(), 5000);
    EXPECT_EQ(Control("BRANT_SLEEP").read<int>(), 1);
    EXPECT_EQ(Control("BRANT_PATH").read<int>(), 0);
  }
  const std::string longest(10'000, 'x');
  const Set ucx("BRANT_UCX", longest.c_str());
  const Control text("BRANT_UCX");
  EXPECT_EQ(text.text(), longest.substr(0, static_cast<std::size_t>(text.count) - 1));
  EXPECT_EQ(Control("brant_eager_bytes").read<MPI_Count>(), 16 * 1024);
}

TEST(Tools, refuse_values_that_the_start_of_the_job_refuses) {
  const Set stall("BRANT_STALL_REPORT_MS", "soon"), sleep("BRANT_SLEEP", "maybe"), path("BRANT_PATH", "kernel");
  for (const char* name : {"BRANT_STALL_REPORT_MS", "BRANT_SLEEP", "BRANT_PATH"}) {
    MPI_Count value = 77;
    EXPECT_EQ(MPI_T_cvar_read(Control(name).handle, &value), MPI_T_ERR_INVALID) << name;
    EXPECT_EQ(value, 77) << name;
  }
}

TEST(Tools, find_handles_of_control_variables_that_are_none) {
  int count = 0, index = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  char room[64];
  EXPECT_EQ(MPI_T_cvar_get_index("BRANT_NOTHING", &index), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_cvar_get_index(nullptr, &index), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_cvar_get_index("BRANT_PATH", nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_cvar_get_num(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_cvar_handle_alloc(10'000, nullptr, &handle, &count), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_cvar_handle_alloc(0, nullptr, nullptr, &count), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_cvar_handle_free(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_cvar_handle_free(&handle), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_cvar_read(handle, room), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_cvar_write(handle, room), MPI_T_ERR_INVALID_HANDLE);

  ASSERT_EQ(MPI_T_cvar_handle_alloc(control_index("BRANT_SLEEP"), nullptr, &handle, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_cvar_read(handle, nullptr), MPI_T_ERR_INVALID);
  MPI_T_cvar_handle freed = handle;
  EXPECT_EQ(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_cvar_read(freed, room), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_cvar_handle_free(&freed), MPI_T_ERR_INVALID_HANDLE);
}

TEST(Tools, name_the_values_of_variables) {
  MPI_T_enum names = control(control_index("BRANT_PATH")).names;
  ASSERT_NE(names, MPI_T_ENUM_NULL);
  int count = 0, length = 64;
  char text[64];
  ASSERT_EQ(MPI_T_enum_get_info(names, &count, text, &length), MPI_SUCCESS);
  EXPECT_STREQ(text, "brant_path");
  std::map<int, std::string> found;
  for (int i = 0; i < count; ++i) {
    int value = -1;
    length = 64;
    ASSERT_EQ(MPI_T_enum_get_item(names, i, &value, text, &length), MPI_SUCCESS);
    found[value] = text;
  }
  EXPECT_EQ(found.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(found[0], "auto");
  EXPECT_EQ(found[2], "shm");
  EXPECT_EQ(MPI_T_enum_get_item(names, count, nullptr, nullptr, nullptr), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_enum_get_item(names, -1, nullptr, nullptr, nullptr), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_enum_get_item(names, 0, nullptr, nullptr, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &count, nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, nullptr, nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
}

// Categories, sources and events
// -------------------------------------------------------------------------------------------------------------------

TEST(Tools, group_each_variable_once) {
  int count = 0, controls = 0, performance = 0;
  ASSERT_EQ(MPI_T_category_get_num(&count), MPI_SUCCESS);
  MPI_T_cvar_get_num(&controls);
  MPI_T_pvar_get_num(&performance);
  std::set<int> seen_controls, seen_performance, seen_categories{0};
  for (int i = 0; i < count; ++i) {
    char name[128];
    int length = sizeof name, cvars = 0, pvars = 0, below = 0, index = -1, events = -1;
    ASSERT_EQ(MPI_T_category_get_info(i, name, &length, nullptr, nullptr, &cvars, &pvars, &below), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_category_get_index(name, &index), MPI_SUCCESS);
    EXPECT_EQ(index, i);
    EXPECT_EQ(MPI_T_category_get_num_events(i, &events), MPI_SUCCESS);
    EXPECT_EQ(events, 0);
    EXPECT_EQ(MPI_T_category_get_events(i, 0, nullptr), MPI_SUCCESS);
    std::vector<int> indices(static_cast<std::size_t>(std::max({cvars, pvars, below}) + 1), -1);
    const auto collect = [&](int (*get)(int, int, int[]), int expected, std::set<int>& seen) {
      ASSERT_EQ(get(i, static_cast<int>(indices.size()), indices.data()), MPI_SUCCESS);
      for (int k = 0; k < expected; ++k) EXPECT_TRUE(seen.insert(indices[static_cast<std::size_t>(k)]).second) << name;
    };
    collect(&MPI_T_category_get_cvars, cvars, seen_controls);
    collect(&MPI_T_category_get_pvars, pvars, seen_performance);
    collect(&MPI_T_category_get_categories, below, seen_categories);
  }
  EXPECT_EQ(seen_controls.size(), static_cast<std::size_t>(controls));
  EXPECT_EQ(seen_performance.size(), static_cast<std::size_t>(performance));
  EXPECT_EQ(seen_categories.size(), static_cast<std::size_t>(count));
}

TEST(Tools, find_categories_that_are_none) {
  int number = -1, two[2] = {-1, -1};
  EXPECT_EQ(MPI_T_category_get_index("brant", &number), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_category_get_categories(number, 1, two), MPI_SUCCESS);
  EXPECT_GE(two[0], 1);
  EXPECT_EQ(two[1], -1) << "there was room for one";
  EXPECT_EQ(MPI_T_category_get_categories(number, 0, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_category_get_categories(number, 1, nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_category_get_categories(number, -1, two), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_category_get_cvars(99, 1, two), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_category_get_pvars(-1, 1, two), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_category_get_events(99, 1, two), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_category_get_num_events(99, &number), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_category_get_info(99, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_category_get_info(0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_category_get_index("brnat", &number), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_category_get_index(nullptr, &number), MPI_T_ERR_INVALID);
  int stamp = -1, later = -2;
  EXPECT_EQ(MPI_T_category_changed(&stamp), MPI_SUCCESS);
  EXPECT_EQ(MPI_T_category_changed(&later), MPI_SUCCESS);
  EXPECT_EQ(stamp, later);
  EXPECT_EQ(MPI_T_category_changed(nullptr), MPI_T_ERR_INVALID);
}

TEST(Tools, have_the_clock_of_wtime_as_their_source) {
  int count = 0, length = 64;
  char name[64];
  ASSERT_EQ(MPI_T_source_get_num(&count), MPI_SUCCESS);
  EXPECT_EQ(count, 1);
  MPI_T_source_order order{};
  MPI_Count ticks = 0, most = 0, stamp = 0;
  MPI_Info info = MPI_INFO_NULL;
  ASSERT_EQ(MPI_T_source_get_info(0, name, &length, nullptr, nullptr, &order, &ticks, &most, &info), MPI_SUCCESS);
  EXPECT_STREQ(name, "brant_clock");
  EXPECT_EQ(order, MPI_T_SOURCE_ORDERED);
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
  const double before = MPI_Wtime();
  ASSERT_EQ(MPI_T_source_get_timestamp(0, &stamp), MPI_SUCCESS);
  const double after = MPI_Wtime();
  const double seconds = static_cast<double>(stamp) / static_cast<double>(ticks);
  EXPECT_GE(seconds, before - 1e-3);
  EXPECT_LE(seconds, after + 1e-3);
  EXPECT_LT(stamp, most);

  EXPECT_EQ(MPI_T_source_get_num(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_source_get_timestamp(0, nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_source_get_timestamp(1, &stamp), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_source_get_info(1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_source_get_info(0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            MPI_SUCCESS);
}

TEST(Tools, have_no_events) {
  int number = -1;
  EXPECT_EQ(MPI_T_event_get_num(&number), MPI_SUCCESS);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(MPI_T_event_get_num(nullptr), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_event_get_index("something", &number), MPI_T_ERR_INVALID_NAME);
  EXPECT_EQ(MPI_T_event_get_index(nullptr, &number), MPI_T_ERR_INVALID);
  EXPECT_EQ(MPI_T_event_get_info(0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                 nullptr, nullptr),
            MPI_T_ERR_INVALID_INDEX);
  MPI_T_event_registration registration = nullptr;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Count stamp = 0;
  EXPECT_EQ(MPI_T_event_handle_alloc(0, nullptr, MPI_INFO_NULL, &registration), MPI_T_ERR_INVALID_INDEX);
  EXPECT_EQ(MPI_T_event_handle_free(registration, nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_handle_get_info(registration, &info), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_handle_set_info(registration, info), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, info, nullptr, nullptr),
            MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, info), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_set_dropped_handler(registration, nullptr), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_read(nullptr, 0, nullptr), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_copy(nullptr, nullptr), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_get_timestamp(nullptr, &stamp), MPI_T_ERR_INVALID_HANDLE);
  EXPECT_EQ(MPI_T_event_get_source(nullptr, &number), MPI_T_ERR_INVALID_HANDLE);
}

}  // namespace
}  // namespace brant::mpi
