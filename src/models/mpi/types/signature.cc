#include "models/mpi/types/signature.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "models/mpi/types/basic_types.h"

namespace brant::mpi {
namespace {

__extension__ using DoubleWord = unsigned __int128;
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kBase = 0x1234'5678'9abc'def1 % kPrime;

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  const DoubleWord product = DoubleWord{a} * b;
  const std::uint64_t sum = static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61);
  return sum >= kPrime ? sum - kPrime : sum;
}

/// A polynomial in kBase whose coefficients are the elements: that of two sequences, one behind the other, follows from
/// theirs.
struct Sequence {
  std::uint64_t elements = 0;
  std::uint64_t hash = 0;
  std::uint64_t power = 1;  ///< kBase to the number of elements.

  [[nodiscard]] Sequence then(const Sequence& next) const noexcept {
    const std::uint64_t sum = times(hash, next.power) + next.hash;
    return {elements + next.elements, sum >= kPrime ? sum - kPrime : sum, times(power, next.power)};
  }
  [[nodiscard]] Sequence repeated(std::uint64_t count) const noexcept {
    Sequence all;
    for (Sequence doubled = *this; count != 0; count >>= 1, doubled = doubled.then(doubled)) {
      if ((count & 1u) != 0) all = all.then(doubled);
    }
    return all;
  }
};

/// Bytes of one basic type: of a run, or of all runs of a list.
Sequence sequence_of_bytes(std::uint16_t basic, std::uint64_t bytes) noexcept {
  return Sequence{1, basic, kBase}.repeated(bytes / basic_type(basic).bytes);
}

Sequence sequence_of(const Layout& layout) noexcept {
  switch (layout.form) {
    case Layout::Form::run:
    case Layout::Form::runs: return sequence_of_bytes(layout.basic, layout.bytes);
    case Layout::Form::loop: return sequence_of(*layout.item).repeated(layout.count);
    case Layout::Form::items: break;
  }
  Sequence all;
  for (const Layout::Item& item : layout.items) all = all.then(sequence_of(*item.layout));
  return all;
}

/// Of the first elements of a layout that has so many.
Sequence first_of(const Layout& layout, std::uint64_t elements) noexcept;

/// The same of several layouts of one sort behind each other.
Sequence first_of_loop(const Layout& item, std::uint64_t count, std::uint64_t elements) noexcept {
  const Sequence one = sequence_of(item);
  if (one.elements == 0) return one;
  const std::uint64_t whole = std::min(count, elements / one.elements);
  const Sequence all = one.repeated(whole);
  const std::uint64_t rest = elements - all.elements;
  return rest != 0 && whole < count ? all.then(first_of(item, rest)) : all;
}

Sequence first_of(const Layout& layout, std::uint64_t elements) noexcept {
  switch (layout.form) {
    case Layout::Form::run:
    case Layout::Form::runs: return sequence_of_bytes(layout.basic, elements * basic_type(layout.basic).bytes);
    case Layout::Form::loop: return first_of_loop(*layout.item, layout.count, elements);
    case Layout::Form::items: break;
  }
  Sequence all;
  for (const Layout::Item& item : layout.items) {
    const Sequence next = sequence_of(*item.layout);
    if (all.elements + next.elements > elements) return all.then(first_of(*item.layout, elements - all.elements));
    all = all.then(next);
  }
  return all;
}

/// Writes a signature until it is long enough.
class SignatureText {
 public:
  explicit SignatureText(std::size_t most) : most_(most) {}

  void add(const Layout& layout) {
    switch (layout.form) {
      case Layout::Form::run:
      case Layout::Form::runs: return add_bytes(layout.basic, layout.bytes);
      case Layout::Form::loop: return add_times(*layout.item, layout.count);
      case Layout::Form::items: break;
    }
    for (const Layout::Item& item : layout.items) {
      if (&item != layout.items.data()) text_ += ", ";
      if (text_.size() > most_) return;
      add(*item.layout);
    }
  }
  void add_times(const Layout& layout, std::uint64_t count) {
    if (layout.form == Layout::Form::run || layout.form == Layout::Form::runs) {
      return add_bytes(layout.basic, layout.bytes * count);
    }
    if (count == 1) return add(layout);
    text_ += fmt::format("{} x (", count);
    add(layout);
    text_ += ')';
  }
  [[nodiscard]] std::string take() {
    if (text_.size() <= most_) return std::move(text_);
    text_.resize(most_ < 3 ? 0 : most_ - 3);
    return text_ + "...";
  }

 private:
  void add_bytes(std::uint16_t basic, std::uint64_t bytes) {
    const BasicType& type = basic_type(basic);
    if (bytes != type.bytes) text_ += fmt::format("{} x ", bytes / type.bytes);
    text_ += type.name;
  }

  const std::size_t most_;
  std::string text_;
};

}  // namespace

Signature signature_of(const Datatype& type, Count count) noexcept {
  if (type.told_layout().empty() || count <= 0) return {};
  const Sequence all = sequence_of(*type.told_layout().layout).repeated(static_cast<std::uint64_t>(count));
  return {all.elements, all.hash};
}

Signature signature_of_first(const Datatype& type, Count count, std::uint64_t elements) noexcept {
  if (type.told_layout().empty() || count <= 0) return {};
  const Sequence all = first_of_loop(*type.told_layout().layout, static_cast<std::uint64_t>(count), elements);
  return {all.elements, all.hash};
}

std::string signature_text(const Datatype& type, Count count, std::size_t most) {
  if (type.told_layout().empty() || count <= 0) return "nothing";
  SignatureText text(most);
  text.add_times(*type.told_layout().layout, static_cast<std::uint64_t>(count));
  return text.take();
}

}  // namespace brant::mpi
