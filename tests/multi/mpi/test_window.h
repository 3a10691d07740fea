#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "brant/core/runtime.h"
#include "mpi_job.h"

namespace brant::mpi::test {

/// In what ways the memory of a window comes about.
enum class WindowSort : std::uint8_t { of_the_heap, allocated, shared, dynamic, of_a_device };

inline std::string name_of(WindowSort sort) {
  switch (sort) {
    case WindowSort::of_the_heap: return "a window of the heap";
    case WindowSort::allocated: return "an allocated window";
    case WindowSort::shared: return "a shared window";
    case WindowSort::dynamic: return "a dynamic window";
    case WindowSort::of_a_device: return "a window of device memory";
  }
  return {};
}

/// Those that this job can have. Ranks that take themselves for others' hosts share nothing.
inline std::vector<WindowSort> window_sorts() {
  std::vector<WindowSort> sorts{WindowSort::of_the_heap, WindowSort::allocated, WindowSort::dynamic};
  if (!kOwnHost || size() == 1) sorts.push_back(WindowSort::shared);
  if (runtime().device_kind() != MemoryKind::host) sorts.push_back(WindowSort::of_a_device);
  return sorts;
}

/// A window over MPI_COMM_WORLD of so many bytes, whatever way it comes about, with displacements of bytes. Errors of
/// it are returned.
class TestWindow {
 public:
  TestWindow(WindowSort sort, std::size_t bytes)
      : sort_(sort), bytes_(bytes), addresses_(static_cast<std::size_t>(size())) {
    const auto size_of_it = static_cast<MPI_Aint>(bytes);
    void* place = static_cast<void*>(&base_);
    switch (sort) {
      case WindowSort::allocated:
        EXPECT_EQ(MPI_Win_allocate(size_of_it, 1, MPI_INFO_NULL, MPI_COMM_WORLD, place, &win), 0);
        break;
      case WindowSort::shared:
        EXPECT_EQ(MPI_Win_allocate_shared(size_of_it, 1, MPI_INFO_NULL, MPI_COMM_WORLD, place, &win), 0);
        break;
      case WindowSort::of_the_heap:
        heap_.resize(bytes);
        base_ = heap_.data();
        EXPECT_EQ(MPI_Win_create(base_, size_of_it, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0);
        break;
      case WindowSort::dynamic:
        EXPECT_EQ(MPI_Alloc_mem(size_of_it, MPI_INFO_NULL, place), 0);
        EXPECT_EQ(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0);
        EXPECT_EQ(MPI_Win_attach(win, base_, size_of_it), 0);
        break;
      case WindowSort::of_a_device:
        memory_ = runtime().allocate(runtime().device_kind(), bytes);
        base_ = memory_.data();
        EXPECT_EQ(MPI_Win_create(base_, size_of_it, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), 0);
        break;
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    fill(std::vector<std::byte>(bytes));
    MPI_Aint own = 0;
    if (sort == WindowSort::dynamic) MPI_Get_address(base_, &own);
    MPI_Allgather(&own, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
  }
  ~TestWindow() {
    if (sort_ == WindowSort::dynamic) {
      MPI_Barrier(MPI_COMM_WORLD);
      EXPECT_EQ(MPI_Win_detach(win, base_), 0);
    }
    EXPECT_EQ(MPI_Win_free(&win), 0);
    EXPECT_EQ(win, MPI_WIN_NULL);
    if (sort_ == WindowSort::dynamic) MPI_Free_mem(base_);
  }
  TestWindow(const TestWindow&) = delete;
  TestWindow& operator=(const TestWindow&) = delete;

  /// The displacement of a byte at a rank.
  [[nodiscard]] MPI_Aint at(int rank_in, std::size_t byte) const {
    return addresses_[static_cast<std::size_t>(rank_in)] + static_cast<MPI_Aint>(byte);
  }
  template <typename T>
  void fill(const std::vector<T>& values) {
    const std::size_t length = values.size() * sizeof(T);
    runtime().copy(Buffer(base_, length, MemoryKind::detect), ConstBuffer(values.data(), length, MemoryKind::host));
  }
  /// What this rank's own memory has.
  template <typename T>
  [[nodiscard]] std::vector<T> values(std::size_t count, std::size_t from_byte = 0) const {
    std::vector<T> found(count);
    const ConstBuffer from(static_cast<std::byte*>(base_) + from_byte, count * sizeof(T), MemoryKind::detect);
    if (count != 0) runtime().copy(Buffer(found.data(), count * sizeof(T), MemoryKind::host), from);
    return found;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] void* base() const { return base_; }

  MPI_Win win = MPI_WIN_NULL;

 private:
  const WindowSort sort_;
  const std::size_t bytes_;
  std::vector<MPI_Aint> addresses_;
  void* base_ = nullptr;
  std::vector<std::byte> heap_;
  Memory memory_;
};

/// Runs a body with a window of each sort.
template <typename Body>
void on_each_sort(std::size_t bytes, const Body& body) {
  for (const WindowSort sort : window_sorts()) {
    SCOPED_TRACE(name_of(sort));
    TestWindow window(sort, bytes);
    body(window);
  }
}

}  // namespace brant::mpi::test
