#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/view.h"
#include "brant/brant.h"
#include "brant/coll/team.h"

namespace brant::python {

class PythonTeam;

/// What a program says of a collective; what it does not say is null or None.
struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::none;
  nanobind::object array = {};
  nanobind::object op = {};
  int root = 0;
  nanobind::object out = {};
  nanobind::object counts = {};      ///< Rows of blocks that differ: of each that goes out, or, of a gather, comes in.
  nanobind::object out_counts = {};  ///< Of those that come in, where `counts` are those that go out.
  nanobind::object sources = {};     ///< Of a call of neighbours.
  nanobind::object destinations = {};
};

/// The arrays of one collective as the team takes them, its lists, and its function: held until it has ended. Stays
/// where it is, since the call refers to it.
class CollectiveArrays {
 public:
  CollectiveArrays(const PythonTeam& team, CollectiveKind kind) noexcept : team_(team), kind_(kind) {}
  CollectiveArrays(const CollectiveArrays&) = delete;
  CollectiveArrays& operator=(const CollectiveArrays&) = delete;

  /// What computes the arrays is over then; or it comes before what the stream `before` does from here on, which works
  /// on `out` alone, and where a new array for the result would go too early.
  void take(const CollectiveRequest& request, Stream* before);
  /// Once more, for arrays that were taken before: what computes them, and what lies apart. Throws invalid_argument
  /// where one of them lies elsewhere now.
  void take_again(Stream* before);
  /// The bytes are there: puts them where they belong. What the program gets; a new one, or None.
  nanobind::object deliver();
  /// An exception that the function raised, if it did.
  [[nodiscard]] const nanobind::object& raised() const noexcept { return raised_; }
  void clear_raised() { raised_.reset(); }
  /// Lets go of the arrays.
  void clear() noexcept;

  [[nodiscard]] CollectiveKind kind() const noexcept { return kind_; }
  [[nodiscard]] const Collective& call() const noexcept { return call_; }
  /// Names the team and the call.
  [[noreturn]] void refuse(Status status, const std::string& what) const;

 private:
  /// An array that is given or filled: where its bytes lie together, in C order.
  struct Side {
    View view;
    nanobind::object array;
    std::unique_ptr<std::byte[]> packed;
    Buffer memory;
    bool read = false;  ///< What is in it counts.
  };
  using Shape = std::vector<Py_ssize_t>;

  void take_side(Side& side, nanobind::handle array, View::Access access, bool read);
  void take_side_again(Side& side, View::Access access);
  void require_own_device(nanobind::handle array) const;
  void take_lists(const CollectiveRequest& request);
  void choose_operation(nanobind::handle op);
  /// The array that is filled: `out`, or a new one of the shape that the call gives.
  void take_result(nanobind::handle out);
  /// Checks the shape of what is given, too.
  [[nodiscard]] Shape shape_of_result() const;
  [[nodiscard]] Shape shape_by_rows() const;
  [[nodiscard]] nanobind::object new_result() const;
  void note_block_bytes();

  [[nodiscard]] bool gives() const noexcept;
  [[nodiscard]] bool gets() const noexcept;
  [[nodiscard]] bool is_of_neighbours() const noexcept;
  /// Whether a block goes to each, or comes from each; and how many these are.
  [[nodiscard]] bool gives_blocks() const noexcept;
  [[nodiscard]] bool gets_blocks() const noexcept;
  [[nodiscard]] std::size_t blocks_out() const noexcept;
  [[nodiscard]] std::size_t blocks_in() const noexcept;
  static void combine(void* self, void* accumulated, const void* next, std::uint64_t count) noexcept;

  const PythonTeam& team_;
  const CollectiveKind kind_;
  Collective call_{.in = {}, .out = {}};
  int root_ = 0;
  Stream* before_ = nullptr;  ///< While arrays are taken.
  Side in_;
  Side out_;
  bool in_place_ = false;  ///< `out_` alone counts, and is read too.
  bool by_rows_ = false;   ///< There are counts.
  std::vector<std::uint64_t> counts_, out_counts_;
  std::vector<std::uint64_t> in_block_bytes_, block_bytes_;
  std::vector<std::int32_t> sources_, destinations_;
  nanobind::object function_;
  nanobind::object raised_;
  UserReduce user_;
  nanobind::object result_;
};

}  // namespace brant::python
