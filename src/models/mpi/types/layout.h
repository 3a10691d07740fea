#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace brant::mpi {

class Layout;
using LayoutRef = std::shared_ptr<const Layout>;

/// A layout at a place: `offset` bytes behind the address that a type is laid on. Without a layout: no bytes.
struct Placed {
  std::int64_t offset = 0;
  LayoutRef layout;

  [[nodiscard]] bool empty() const noexcept { return layout == nullptr; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// The lowest byte, and the end behind the highest one.
  [[nodiscard]] std::int64_t low() const noexcept;
  [[nodiscard]] std::int64_t high() const noexcept;
};

/// How the bytes of a type lie, and their order: a tree of runs, loops and lists, which describes a regular pattern in
/// a few words however many runs it has. Never changed once made, and shared by all types that contain it.
///
/// A layout starts with its first byte at 0, where loops and lists have their first item. No layout is empty.
class Layout {
 public:
  enum class Form : std::uint8_t {
    run,    ///< Bytes that lie together.
    loop,   ///< One layout, several times, at equal distances.
    runs,   ///< Runs anywhere.
    items,  ///< Layouts anywhere.
  };
  /// Of a list: where it lies, and how many bytes of the list come before the next one.
  struct Run {
    std::int64_t offset;
    std::uint64_t end;
  };
  struct Item {
    std::int64_t offset;
    std::uint64_t end;
    LayoutRef layout;
  };

  Form form = Form::run;
  /// What its bytes are, as the place of a basic type in its table; 0: not told. Lists of items and loops have their
  /// items' own.
  std::uint16_t basic = 0;
  std::uint32_t depth = 1;   ///< Of the tree.
  std::uint64_t bytes = 0;   ///< Of all runs together: 1 to 2^63 - 1.
  std::int64_t low = 0;      ///< The lowest byte.
  std::int64_t high = 0;     ///< The end of the highest one.
  std::uint64_t pieces = 1;  ///< Runs, all counted; at most `bytes`.

  // Of loops.
  std::uint64_t count = 1;
  std::int64_t stride = 0;
  LayoutRef item;
  // Of lists.
  std::vector<Run> runs;
  std::uint64_t equal_run = 0;  ///< Each run has so many bytes; 0: they differ.
  std::vector<Item> items;
};

/// Trees are no deeper than that, so that walking along them needs no more than a small stack.
inline constexpr std::uint32_t kDepthMost = 256;

/// All of these have no value where 63 bits do not hold the sizes or offsets, or the tree would be too deep.
using MaybePlaced = std::optional<Placed>;

/// `bytes` together; 0: nothing.
MaybePlaced make_run(std::uint64_t bytes, std::uint16_t basic);
/// `count` times, `stride` bytes from one to the next. What continues one another becomes one run or one loop.
MaybePlaced make_loop(const Placed& item, std::uint64_t count, std::int64_t stride);
/// The same, so many bytes further.
MaybePlaced moved(const Placed& item, std::int64_t offset);

/// Puts layouts one behind the other, in the order of their bytes. Neighbours that lie together are joined; what turns
/// out to be regular becomes a loop.
class LayoutList {
 public:
  enum class Join : std::uint8_t {
    same,  ///< Runs of the same basic type.
    all,   ///< Runs of any: the list no longer tells what its bytes are.
  };
  explicit LayoutList(Join join) noexcept : join_(join) {}

  void reserve(std::size_t entries) { entries_.reserve(entries); }
  void add(const Placed& item);
  /// So many bytes together, 1 or more, whose end 63 bits hold.
  void add_run(std::int64_t offset, std::uint64_t bytes, std::uint16_t basic);
  [[nodiscard]] MaybePlaced finish();

 private:
  struct Entry {
    std::int64_t offset;
    std::uint64_t bytes;
    std::uint16_t basic;
    LayoutRef layout;  ///< None yet: a run of `bytes`.
  };

  [[nodiscard]] bool all_runs() const;
  [[nodiscard]] std::optional<std::int64_t> regular_stride() const;
  [[nodiscard]] MaybePlaced as_runs();
  [[nodiscard]] MaybePlaced as_items();

  const Join join_;
  std::vector<Entry> entries_;
};

}  // namespace brant::mpi
