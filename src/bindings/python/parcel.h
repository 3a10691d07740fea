#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/python/frame.h"
#include "bindings/python/view.h"

namespace brant::python {

/// Objects of Python as items: what a message of a channel, a call of a chare and an answer are made of. Holds the
/// arrays, and what was packed or pickled.
class Parcel {
 public:
  static constexpr int kNoPeer = -1;

  /// What an item's content is: an array's, or a pickle's, which is an object of type bytes as well.
  struct Content {
    ItemHeader header;
    View view;
    std::unique_ptr<std::byte[]> packed;
    std::optional<Shape> shape;  ///< Of what lies apart on a device, in `memory`.
    [[nodiscard]] ConstBuffer memory() const noexcept;
  };

  /// `subject` and `peer` are for errors: whose message it is. Throws what the array cannot, and InvalidArgument for
  /// what cannot be pickled.
  void add(nanobind::handle object, const std::string& subject, int peer);
  /// As one pickle, whatever it is; the arrays inside travel beside it.
  void add_pickle(nanobind::handle object, const std::string& subject, int peer);

  /// What carries them moves shapes: elements in memory of a device may lie apart.
  void allow_shapes() noexcept { on_device_ = View::OnDevice::apart; }
  /// Arrays that are still computed are taken as well: whoever uses them asks `producers` first.
  void leave_waiting_to(Producers& producers) noexcept { behind_.producers = &producers; }
  [[nodiscard]] const std::deque<Content>& contents() const noexcept { return contents_; }
  /// Arrays in memory of a device, or all, up to so many, are described here and travel beside the message. Whether
  /// there are any.
  bool set_apart(std::size_t most, bool all) noexcept;
  [[nodiscard]] std::size_t description_bytes() const noexcept;
  [[nodiscard]] std::size_t content_bytes() const noexcept;
  [[nodiscard]] bool is_host() const noexcept;
  /// Both return where it ends.
  std::byte* write_descriptions(std::byte* to) const noexcept;
  std::byte* write_contents(std::byte* to) const noexcept;
  /// Copies what lies in memory of a device: `write_contents` takes host memory only.
  void bring_to_host();
  void clear() noexcept { contents_.clear(); }

 private:
  Content& add_content(ItemType type);
  bool add_array(nanobind::handle object, ItemType type);

  std::deque<Content> contents_;
  View::OnDevice on_device_ = View::OnDevice::together;
  Behind behind_;
};

/// New memory for an item, and the object that the program gets.
struct Landing {
  nanobind::object made;             ///< What the program gets, if it gave nothing.
  View* given = nullptr;             ///< What it gave.
  std::unique_ptr<View> view;        ///< Of what was made.
  std::unique_ptr<std::byte[]> raw;  ///< Bytes on their way into strides or another order.
  std::optional<Shape> shape;        ///< Or how the elements lie in `memory`, which is a device's.
  Buffer memory;
};
Landing make_landing(const Item& item);

/// What the items are, once their content has landed: pickles with their buffers become objects.
nanobind::list objects_of(const std::vector<Item>& items, const std::vector<Landing>& landings);

/// The objects of a parcel whose bytes are all here. `apart` gives the array of an item that came beside the message;
/// without one there are none. Throws InvalidArgument where they contradict themselves.
using TakeApart = std::function<nanobind::object(const Item&)>;
nanobind::list unpack(std::span<const std::byte> description, std::size_t items, std::span<const std::byte> content,
                      const TakeApart& apart);

}  // namespace brant::python
