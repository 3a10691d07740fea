#include "bindings/python/receiving.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/channel.h"
#include "bindings/python/errors.h"
#include "bindings/python/pickle_seal.h"
#include "bindings/python/process.h"

namespace nb = nanobind;

namespace brant::python {

Receiving::~Receiving() { FramePool::get().give_back(std::move(frame_)); }

void Receiving::add_landing(nb::handle array) {
  View& view = given_.emplace_back();
  const Behind behind = {.producers = end_.is_raw() ? nullptr : &producers_};  // raw: posted at once, in order
  if (!view.take(array.ptr(), View::Access::write, View::OnDevice::apart, behind))
    throw Error(Status::wrong_kind, end_.name() + ": `out` takes arrays, and an object of type " +
                                        std::string(nb::type_name(array.type()).c_str()) + " is none that can receive");
  given_objects_.push_back(nb::borrow(array));
}

void Receiving::start(double timeout) {
  if (end_.is_raw() && given_.size() != 1)
    throw Failure(Status::invalid_argument, end_.name() + " is raw: it receives into one array, `out`", end_.name(),
                  end_.peer());
  producers_.start(*this);
  hold();
  if (timeout >= 0) set_deadline(timeout);
  if (end_.is_raw()) {
    post_raw();
    if (pending_ == 0) advance();
    return;
  }
  end_.line_up(*this);
  if (stage_ == Stage::frame && pending_ == 0) {
    Process::get().forget(*this);
    advance();
  }
}

void Receiving::post_part(Buffer landing, const std::optional<Shape>& shape) {
  Op& op = ops_.emplace_back();
  op.delivered = {[](void* self, const OpResult& result) noexcept {
                    auto& receiving = *static_cast<Receiving*>(self);
                    receiving.outcome_.join(result);
                    if (--receiving.pending_ == 0) Process::get().ended(receiving);
                  },
                  this};
  const Status posted = shape ? end_.channel().post_recv(landing, *shape, op) : end_.channel().post_recv(landing, op);
  if (posted == Status::in_progress) {
    ++pending_;
  } else {
    outcome_.join({posted, op.result.bytes});
  }
}

void Receiving::post_raw() {
  stage_ = Stage::content;
  Item item;
  item.header.type = ItemType::bytes;
  item.header.bytes = given_.front().bytes();
  landings_.push_back(land_in(given_.front(), item));
  items_.push_back(std::move(item));
  post_part(landings_.front().memory, landings_.front().shape);
}

void Receiving::post_frame() {
  stage_ = Stage::frame;
  number_ = end_.next_number();
  frame_ = FramePool::get().take();
  post_part({frame_.get(), kFrameBytes, MemoryKind::host});
  if (pending_ == 0) Process::get().ended(*this);  // not at once: a hundred thousand that fail must not nest
}

bool Receiving::waits_for_landings() const noexcept {
  return producers_.are_busy() && pending_ == 0 && outcome_.ok() &&
         (stage_ == Stage::frame || stage_ == Stage::description);
}

void Receiving::advance() {
  if (stage_ == Stage::ended) return;
  const nb::object keeps = nb::borrow(self());
  if (pending_ != 0 || stage_ == Stage::in_line || stage_ == Stage::inheriting || waits_for_landings()) {
    if (is_overdue() && !has_answer()) return give_up(Status::timed_out);
    if (stage_ == Stage::inheriting && inherits_->here) take_over();
    return;
  }
  if (!outcome_.ok() && status_ == Status::ok) {
    const bool first = stage_ != Stage::content;
    if (stage_ == Stage::description) end_.give_up_order();
    end(outcome_.status, {});
    if (first) end_.next_turn();
    return;
  }
  if (stage_ == Stage::frame) return on_frame();
  if (stage_ == Stage::description) return on_description(apart_, {});
  finish();
}

void Receiving::on_frame() {
  const std::size_t got = outcome_.bytes;
  const std::span<const std::byte> frame(frame_.get(), got);
  if (got >= sizeof header_) std::memcpy(&header_, frame.data(), sizeof header_);
  const bool apart = (header_.flags & FrameHeader::kApart) != 0;
  if (got < sizeof header_ || header_.magic != FrameHeader::kMagic ||
      (!apart && header_.description_bytes > got - sizeof header_)) {
    end_.give_up_order();
    return refuse(Status::invalid_argument, "what came was not sent by a channel of Python of this version");
  }
  if ((header_.flags & FrameHeader::kEnd) != 0) {
    if (header_.items >= end_.opening()) return refuse(Status::canceled, "the other end was closed");
    outcome_ = {};
    FramePool::get().give_back(std::move(frame_));
    return post_frame();
  }
  if (apart) {
    stage_ = Stage::description;
    apart_.resize(header_.description_bytes);
    outcome_ = {};
    post_part({apart_.data(), apart_.size(), MemoryKind::host});
    if (pending_ == 0) advance();
    return;
  }
  const auto rest = frame.subspan(sizeof header_);
  on_description(rest.first(header_.description_bytes), rest.subspan(header_.description_bytes));
}

void Receiving::on_description(std::span<const std::byte> description, std::span<const std::byte> content) {
  outcome_ = {};
  const auto of_calls = [](const Item& item) { return item.header.type == ItemType::apart; };
  if (!read_items(description, header_.items, items_) || std::ranges::any_of(items_, of_calls)) {
    end_.give_up_order();
    return refuse(Status::invalid_argument, "what came contradicts itself");
  }
  const bool within = (header_.flags & FrameHeader::kContent) != 0;
  std::string unfit = why_unfit();
  const Status landing = producers_.status();
  if (landing != Status::ok) unfit = "the stream that works with `out` failed: " + std::string(status_text(landing));
  const bool pickled = std::ranges::any_of(items_, [](const Item& item) {
    return item.header.type == ItemType::object || item.header.type == ItemType::buffer;
  });
  const bool stranger = pickled && end_.is_joined();
  if (stranger) unfit = "a pickle came from a process that is not of this job, and is not read";
  const bool unsealed = !stranger && !std::ranges::all_of(items_, may_be_read);
  if (unsealed) unfit = kUnsealed;
  if (unfit.empty()) {
    try {
      make_landings();
    } catch (nb::python_error& error) {
      unfit = nb::cast<std::string>(nb::str(error.value()));
    } catch (const std::exception& error) {
      unfit = error.what();
    }
  }
  if (!unfit.empty()) {
    status_ = stranger || unsealed ? Status::peer_rejected : landing != Status::ok ? landing : Status::invalid_argument;
    why_ = std::move(unfit);
    landings_.clear();
  }
  if (within) {
    take_content(content);
    stage_ = Stage::content;
    end_.next_turn();
    return finish();
  }
  post_content();
}

std::string Receiving::why_unfit() const {
  if (given_.empty()) return {};
  if (given_.size() != items_.size())
    return "a message of " + std::to_string(items_.size()) + " items came, and `out` has room for " +
           std::to_string(given_.size());
  for (std::size_t at = 0; at < items_.size(); ++at) {
    const Item& item = items_[at];
    const View& view = given_[at];
    const bool is_raw = view.format() == "B" && view.shape().size() <= 1;
    if (item.header.type == ItemType::object || item.header.type == ItemType::buffer)
      return "an object came, and no array: receive it without `out`";
    const bool same = is_raw || item.header.type == ItemType::bytes
                          ? item.header.bytes == view.bytes()
                          : item.format == view.format() && std::ranges::equal(item.shape, view.shape());
    if (!same) return item.describe() + " came, and `out` is " + view.describe();
  }
  return {};
}

void Receiving::make_landings() {
  for (std::size_t at = 0; at < items_.size(); ++at)
    landings_.push_back(given_.empty() ? make_landing(items_[at]) : land_in(given_[at], items_[at]));
}

Landing Receiving::land_in(View& given, const Item& item) {
  Landing landing;
  landing.given = &given;
  const bool flat = item.header.type == ItemType::bytes || item.shape.size() <= 1;
  if (given.order() == item.header.order || (flat && given.order() != Order::strided)) {
    landing.memory = given.memory();
    return landing;
  }
  if (!given.is_host()) {
    landing.memory = given.extent();
    landing.shape = given.shape_in(item.header.order);
    return landing;
  }
  landing.raw = std::make_unique_for_overwrite<std::byte[]>(item.header.bytes);
  landing.memory = {landing.raw.get(), item.header.bytes, MemoryKind::host};
  return landing;
}

/// A small message that came within its frame. What lies apart is copied run by run: for more than a frame kernels do
/// it.
void Receiving::copy_to_device(const Landing& landing, std::span<const std::byte> content) {
  const auto copy = [](std::byte* to, MemoryKind kind, std::span<const std::byte> from) {
    Process::get().runtime().copy(Buffer(to, from.size(), kind),
                                  ConstBuffer(from.data(), from.size(), MemoryKind::host));
  };
  auto* const base = static_cast<std::byte*>(landing.memory.data);
  try {
    if (!landing.shape) return copy(base, landing.memory.kind, content);
    const Shape& shape = *landing.shape;
    for (std::size_t at = 0, run = 0; at < content.size(); at += shape.run(), ++run) {
      auto offset = static_cast<std::ptrdiff_t>(shape.first());
      std::size_t rest = run;
      for (const ShapeDim& dim : shape.dims()) {
        offset += static_cast<std::ptrdiff_t>(rest % dim.count) * dim.stride;
        rest /= dim.count;
      }
      copy(base + offset, landing.memory.kind, content.subspan(at, shape.run()));
    }
  } catch (const Error& error) {
    status_ = error.status();
    why_ = error.what();
  }
}

void Receiving::take_content(std::span<const std::byte> content) {
  for (std::size_t at = 0; at < landings_.size(); ++at) {
    const std::size_t bytes = items_[at].header.bytes;
    if (bytes > content.size()) {
      status_ = Status::invalid_argument;
      why_ = "what came contradicts itself";
      return;
    }
    const Buffer landing = landings_[at].memory;
    const bool on_device = landings_[at].given != nullptr && !landings_[at].given->is_host();
    if (on_device && bytes != 0) {
      copy_to_device(landings_[at], content.first(bytes));
    } else if (bytes != 0) {
      std::memcpy(landing.data, content.data(), bytes);
    }
    content = content.subspan(bytes);
  }
}

/// Also of a message that nobody can use: its transfers must be received, into nothing.
void Receiving::post_content() {
  stage_ = Stage::content;
  for (std::size_t at = 0; at < items_.size(); ++at) {
    if (items_[at].header.bytes == 0) continue;
    Buffer memory = landings_.empty() ? Buffer(nullptr, 0, MemoryKind::host) : landings_[at].memory;
    if (landings_.empty() || !landings_[at].shape) memory.bytes = landings_.empty() ? 0 : items_[at].header.bytes;
    post_part(memory, landings_.empty() ? std::nullopt : landings_[at].shape);
  }
  end_.next_turn();
  if (pending_ == 0) finish();
}

void Receiving::finish() {
  if (status_ == Status::ok && !outcome_.ok()) status_ = outcome_.status;
  if (status_ == Status::ok) {
    try {
      for (std::size_t at = 0; at < landings_.size(); ++at) {
        const Landing& landing = landings_[at];
        if (landing.raw != nullptr && items_[at].header.bytes != 0)
          landing.given->unpack(landing.raw.get(), items_[at].header.order);
      }
    } catch (nb::python_error& error) {
      status_ = Status::internal;
      why_ = error.what();
    }
  }
  end(status_, std::move(why_));
}

void Receiving::refuse(Status status, std::string why) {
  end(status, std::move(why));
  end_.next_turn();
}

void Receiving::end(Status status, std::string why) {
  stage_ = Stage::ended;
  status_ = status;
  why_ = std::move(why);
  given_.clear();
  for (Landing& landing : landings_) landing.view.reset();
  FramePool::get().give_back(std::move(frame_));
  ops_.clear();
  producers_.drop();
  answer();
  if (left_ != nullptr) fill_left();
  release();
}

bool Receiving::abandon(Status status) {
  const bool unheard = stage_ == Stage::in_line || waits_for_landings();
  if (unheard) end(status, {});
  return unheard;
}

// Receives that are given up
// -------------------------------------------------------------------------------------------------------------------

bool Receiving::is_withdrawable() const noexcept {
  if (stage_ == Stage::in_line) return true;
  return (stage_ == Stage::frame || end_.is_raw()) && !ops_.back().due() && ops_.back().pending();
}

void Receiving::withdraw() {
  if (stage_ != Stage::in_line) ops_.back().detach();
  pending_ = 0;
  if (!end_.is_raw()) end_.step_out(*this);
}

void Receiving::give_up(Status status) {
  if (has_answer()) return;
  const nb::object keeps = nb::borrow(self());
  if (stage_ == Stage::inheriting) {
    inherits_->heir = nullptr;
    end_.pass_on(std::exchange(inherits_, nullptr), *this);
    return end(status, {});
  }
  if (is_withdrawable()) {
    withdraw();
    return end(status, {});
  }
  if (end_.is_raw()) return;  // its message has come
  given_up_ = status;
  answer();
  leave_message();
}

void Receiving::pass_by() {
  if (taken_ || left_ != nullptr || status_ != Status::ok || given_up_ != Status::ok || end_.is_raw()) return;
  given_up_ = Status::canceled;
  leave_message();
}

/// What comes, or has come, is for another receive. Its arrays stay held here until it is there.
void Receiving::leave_message() {
  left_ = std::make_shared<LeftMessage>();
  left_->number = number_;
  if (stage_ == Stage::ended) fill_left();
  end_.pass_on(left_, *this);
}

void Receiving::fill_left() {
  LeftMessage& left = *left_;
  left.here = true;
  left.status = status_;
  left.why = why_;
  left.items = std::move(items_);
  for (Item& item : left.items) item.format = {};  // it was in the frame
  left.landings = std::move(landings_);
  left.given = std::move(given_objects_);
  if (left.heir != nullptr) left.heir->take_over();
}

void Receiving::inherit(std::shared_ptr<LeftMessage> message) {
  stage_ = Stage::inheriting;
  number_ = message->number;
  message->heir = this;
  inherits_ = std::move(message);
  if (inherits_->here) take_over();
}

/// The message that it inherits has come, or failed. One that did not fit is gone, and the next is waited for.
void Receiving::take_over() {
  if (producers_.are_busy()) return;  // `advance` comes back
  const nb::object keeps = nb::borrow(self());
  const std::shared_ptr<LeftMessage> message = std::exchange(inherits_, nullptr);
  if (message->status == Status::invalid_argument) {
    stage_ = Stage::in_line;
    return end_.line_up(*this);
  }
  if (message->status != Status::ok) return end(message->status, message->why);
  items_ = std::move(message->items);
  if (given_.empty()) {
    landings_ = std::move(message->landings);
    given_objects_ = std::move(message->given);
    return end(Status::ok, {});
  }
  std::vector<nb::object> sources = std::move(message->given);
  if (sources.empty()) {
    for (const Landing& landing : message->landings) sources.push_back(landing.made);
  }
  Status copied = Status::ok;
  const bool went_well = guarded([&] { return copied = copy_left(sources), true; }, false);
  if (!went_well) why_ = nb::cast<std::string>(nb::str(nb::steal(take_exception())));
  end(went_well ? copied : Status::internal, std::move(why_));
}

/// From where a message lies into the arrays that this receive was given.
Status Receiving::copy_left(const std::vector<nb::object>& sources) {
  std::deque<View> views(sources.size());
  const auto is_raw = [&](std::size_t at) { return !std::ranges::equal(views[at].shape(), items_[at].shape); };
  for (std::size_t at = 0; at < sources.size(); ++at) {
    views[at].take(sources[at].ptr(), View::Access::read, View::OnDevice::apart);
    // As bytes it has lost the name of its type.
    items_[at].format = is_raw(at) && at < given_.size() ? given_[at].format() : views[at].format();
  }
  why_ = why_unfit();
  if (!why_.empty()) return Status::invalid_argument;
  for (std::size_t at = 0; at < sources.size(); ++at) {
    const View& from = views[at];
    const View& to = given_[at];
    if (sources[at].is(given_objects_[at]) || from.bytes() == 0) continue;
    const Order order = items_[at].header.order;
    const auto lies_so = [&](const View& view) {
      return view.order() == order || (view.order() != Order::strided && view.shape().size() <= 1);
    };
    Runtime& runtime = Process::get().runtime();
    if (lies_so(from) && lies_so(to)) {
      runtime.copy(to.memory(), from.memory());
      continue;
    }
    if ((!lies_so(from) && !from.is_host()) || (!lies_so(to) && !to.is_host())) {
      why_ =
          "a message whose receive was given up is or goes where elements on a device lie apart: it cannot be copied";
      return Status::not_supported;
    }
    const auto bytes = std::make_unique_for_overwrite<std::byte[]>(from.bytes());
    const Buffer packed(bytes.get(), from.bytes(), MemoryKind::host);
    lies_so(from) ? runtime.copy(packed, from.memory()) : from.pack(bytes.get(), order);
    lies_so(to) ? runtime.copy(to.memory(), packed) : to.unpack(bytes.get(), order);
  }
  return Status::ok;
}

nb::object Receiving::result() {
  if (end_.is_raw()) return nb::int_(outcome_.bytes);
  if (!given_objects_.empty()) {
    if (given_objects_.size() == 1) return given_objects_.front();
    nb::list all;
    for (const nb::object& object : given_objects_) all.append(object);
    return nb::tuple(all);
  }
  const nb::list objects = objects_of(items_, landings_);
  return objects.size() == 1 ? nb::object(objects[0]) : nb::object(nb::tuple(objects));
}

PyObject* Receiving::take() {
  const Status status = given_up_ != Status::ok ? given_up_ : status_;
  taken_ = true;
  if (status == Status::ok) return result().release().ptr();
  if (iterates_ && status == Status::canceled) {
    PyErr_SetNone(PyExc_StopAsyncIteration);
  } else if (why_.empty() || given_up_ != Status::ok) {
    set_python_error(failure(status, end_.name(), end_.peer(), "no message was received"));
  } else {
    set_python_error(Failure(status_, end_.name() + ": " + why_, end_.name(), end_.peer()));
  }
  return nullptr;
}

}  // namespace brant::python
