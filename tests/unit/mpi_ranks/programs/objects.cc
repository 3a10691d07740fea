// What C++ adds: streams, static objects with destructors, statics of templates and inline functions, exceptions,
// thread-local objects, and threads that have their own.
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// What throws before main ends the process, as it should.
// NOLINTBEGIN(bugprone-throwing-static-initialization)

extern "C" void brant_test_yield() __attribute__((weak));

namespace {

int mine = 0;  // another number in each image

void yield_turn() {
  if (brant_test_yield != nullptr) brant_test_yield();
}

[[noreturn]] void fail(const std::string& what) {
  std::cout << "wrong: " << what << std::endl;
  std::exit(1);
}

void check(bool holds, const char* what) {
  if (!holds) fail(what);
}

/// Its destructor takes a turn of the other ranks: those of a program may call MPI.
struct Object {
  explicit Object(std::string name_in) : name(std::move(name_in)) { yield_turn(); }
  ~Object() {
    yield_turn();
    std::cout << "destroyed " + name + (value == mine ? " right\n" : " wrong\n") << std::flush;
  }
  std::string name;
  int value = 1;
};

Object object("global");
std::map<std::string, std::vector<int>> table = {{"a", {1, 2}}, {"b", {3}}};

}  // namespace

template <typename T>
struct Counted {
  static inline int count = 5;
  static std::vector<T> values;
};
template <typename T>
std::vector<T> Counted<T>::values = {T{1}, T{2}};

inline int& inline_static() {
  static int value = 9;
  return value;
}

Object& local_static() {
  static Object made("local");
  return made;
}

struct Noted {
  Noted() : text("noted") {}
  ~Noted() { std::cout << "thread-local destroyed " + text + '\n' << std::flush; }
  std::string text;
};

thread_local int with_value = 21;
thread_local int without_value;
thread_local std::string text = "initial";
thread_local Noted noted;
thread_local int* pointer = &Counted<int>::count;

class Unusual : public std::runtime_error {
 public:
  explicit Unusual(int number_in) : std::runtime_error("unusual"), number(number_in) {}
  int number;
};

void exceptions() {
  try {
    throw Unusual(mine);
  } catch (const std::exception& outer) {
    yield_turn();  // other ranks are in the same place
    try {
      throw Unusual(mine + 1);
    } catch (const Unusual& inner) {
      yield_turn();
      check(inner.number == mine + 1, "inner exception");
    }
    try {
      throw;
    } catch (const Unusual& again) {
      check(again.number == mine, "exception thrown again");
      yield_turn();
    }
    check(dynamic_cast<const Unusual&>(outer).number == mine, "outer exception");
  }
  check(std::uncaught_exceptions() == 0, "uncaught exceptions");
}

void threads() {
  std::vector<std::thread> all;
  std::mutex mutex;
  int right = 0;
  all.reserve(3);
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&right, &mutex, i] {
      bool holds = with_value == 21 && without_value == 0 && text == "initial" && pointer == &Counted<int>::count;
      with_value = mine + i;
      text += std::to_string(i);
      std::thread([&] {
        if (with_value != 21 || text != "initial") fail("thread of a thread");
      }).join();
      holds = holds && with_value == mine + i && text == "initial" + std::to_string(i);
      const std::lock_guard lock(mutex);
      right += holds ? 1 : 0;
    });
  }
  yield_turn();
  for (std::thread& thread : all) thread.join();
  check(right == 3, "thread-locals of threads");
}

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(argc > 1);
  mine = static_cast<int>(reinterpret_cast<std::size_t>(&object) >> 12 & 0xffff);
  check(object.value == 1 && table.at("a").size() == 2, "static objects");
  check(Counted<int>::count == 5 && Counted<long>::count == 5 && Counted<int>::values.size() == 2, "templates");
  check(inline_static() == 9 && local_static().value == 1, "inline statics");
  check(with_value == 21 && without_value == 0 && text == "initial", "thread-locals");
  object.value = Counted<int>::count = inline_static() = local_static().value = with_value = without_value = mine;
  Counted<int>::values.push_back(mine);
  text = std::to_string(mine);
  noted.text = "of main";
  table["a"].push_back(mine);
  yield_turn();
  check(object.value == mine && Counted<int>::count == mine && inline_static() == mine, "private statics");
  check(local_static().value == mine && Counted<int>::values.size() == 3 && table.at("a").size() == 3, "private");
  check(with_value == mine && without_value == mine && text == std::to_string(mine), "private thread-locals");
  check(pointer == &Counted<int>::count, "pointer");
  exceptions();
  threads();
  std::ostringstream out;
  out << "right " << argc - 1 << ' ' << std::hex << 255 << std::dec << (argc > 1 ? argv[1] : "") << '\n';
  std::cout << out.str() << std::flush;  // at once: threads of other ranks print, too
  if (argc > 1) std::exit(4);
  return 5;
}

// NOLINTEND(bugprone-throwing-static-initialization)
