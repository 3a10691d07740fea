#include "bindings/python/halo.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/errors.h"
#include "bindings/python/halo_run.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "brant/halo/halo_modes.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

struct NamedMessages {
  std::string_view name;
  HaloMessages messages;
};
constexpr std::array kMessages = {NamedMessages{"per_process", HaloMessages::per_process},
                                  NamedMessages{"per_block", HaloMessages::per_block},
                                  NamedMessages{"all", HaloMessages::all}};

/// What stands for a name; throws invalid_argument with the names that there are.
template <typename Named, std::size_t count>
const Named& named(const std::array<Named, count>& all, const std::string& name, const char* what) {
  std::string names;
  for (const Named& one : all) {
    if (one.name == name) return one;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Error(Status::invalid_argument, "halo: " + std::string(what) + "='" + name + "': use " + names);
}

/// Those to be closed when the program ends.
std::set<Halo*>& open_halos() {
  static auto* const halos = new std::set<Halo*>;  // never destroyed, as Process
  return *halos;
}

template <typename T>
std::string triple(const std::array<T, 3>& of) {
  return "(" + std::to_string(of[0]) + ", " + std::to_string(of[1]) + ", " + std::to_string(of[2]) + ")";
}

std::string describe(const HaloOptions& options, const std::string& format, const std::string& mode,
                     const std::string& messages) {
  return "grid=" + triple(options.grid) + " divide=" + triple(options.divide) +
         " periodic=" + triple(options.periodic) + " ghost=" + triple(options.ghost) +
         " variables=" + std::to_string(options.variables) + " dtype=" + format + " of " +
         std::to_string(options.cell_bytes) + " bytes mode=" + mode + " messages=" + messages;
}

constexpr std::size_t kTextBytes = 512;  ///< Of options, as they travel.
using Text = std::array<char, kTextBytes>;

Text text_of(const std::string& described) {
  Text text{};
  std::copy_n(described.begin(), std::min(described.size(), text.size() - 1), text.begin());
  return text;
}

}  // namespace

Halo::Halo(const HaloOptions& options, std::string format) : options_(options), format_(std::move(format)) {
  held_->exchange = std::make_unique<HaloExchange>(Process::get().runtime(), options);
  const auto mode = std::ranges::find(kHaloModes, options.mode, &NamedHaloMode::mode);
  const auto messages = std::ranges::find(kMessages, options.messages, &NamedMessages::messages);
  described_ = describe(options, format_, std::string(mode->name), std::string(messages->name));
  open_halos().insert(this);
}

Halo::~Halo() {
  open_halos().erase(this);
  Process& process = Process::get();
  if (process.has_ended() || !process.is_owner()) process.bury(std::move(held_));
}

HaloExchange& Halo::exchange() const {
  static_cast<void>(Process::get().runtime());  // this thread's
  if (!is_open()) throw Error(Status::invalid_argument, "halo: the exchange is closed: make another one");
  return *held_->exchange;
}

std::vector<Py_ssize_t> Halo::array_of(int i) const {
  const auto [x, y, z] = exchange().array_of(i);
  return {static_cast<Py_ssize_t>(options_.variables), z, y, x};
}

bool Halo::writes_into_others() const noexcept { return is_bound(options_.mode); }

// Fields
// -------------------------------------------------------------------------------------------------------------------

void Halo::take_field(View& view, nb::handle field, int i) const {
  const std::string name = "halo: the field of block " + std::to_string(exchange().first_block() + i);
  if (!view.take(field.ptr(), View::Access::write, View::OnDevice::apart))
    throw Error(Status::wrong_kind, name + " is an object of type " + nb::type_name(field.type()).c_str() +
                                        ", and no array whose elements could travel");
  const std::vector<Py_ssize_t> wanted = array_of(i);
  const std::span<const Py_ssize_t> shape = view.shape();
  const bool fits = std::ranges::equal(shape, wanted) ||
                    (options_.variables == 1 && std::ranges::equal(shape, std::span(wanted).subspan(1)));
  if (!fits || view.format() != format_ || view.item_bytes() != options_.cell_bytes)
    throw Error(Status::invalid_argument, name + " is " + view.describe() + ", and takes elements of " + format_ +
                                              " and shape " + nb::cast<std::string>(nb::repr(shape_tuple(wanted))) +
                                              " (variables, z, y, x): see array_of");
  if (view.order() != Order::c)
    throw Error(Status::invalid_argument,
                name + " does not lie together in C order: make it contiguous first (numpy.ascontiguousarray)");
}

std::shared_ptr<std::deque<View>> Halo::take_fields(const nb::sequence& fields) const {
  const std::size_t count = nb::len(fields);
  if (count != static_cast<std::size_t>(exchange().blocks()))
    throw Error(Status::invalid_argument, "halo: " + std::to_string(count) + " fields for the " +
                                              std::to_string(exchange().blocks()) +
                                              " blocks of this process: give one each, in a list");
  auto views = std::make_shared<std::deque<View>>();
  for (std::size_t i = 0; i < count; ++i) {
    take_field(views->emplace_back(), fields[i], static_cast<int>(i));
    if (views->back().is_host() != views->front().is_host())
      throw Error(Status::wrong_kind,
                  "halo: some fields lie in host memory and some on a device: use one kind of memory for all");
  }
  return views;
}

// Run
// -------------------------------------------------------------------------------------------------------------------

brant::Task<void> Halo::agree() {
  Runtime& runtime = Process::get().runtime();
  const int ranks = runtime.size(), rank = runtime.rank().value;
  if (ranks == 1) co_return;
  const Rank next{(rank + 1) % ranks}, before{(rank + ranks - 1) % ranks};
  // Ids behind those of the exchange itself, which has one for each process and chooses them likewise.
  const auto open = [&](Rank peer) {
    const auto sum = static_cast<std::uint32_t>(ranks + (rank + peer.value) % ranks);
    return Channel::open(runtime, peer, ChannelId{options_.first_channel.value + sum});
  };
  Channel to = open(next);
  Channel apart;
  if (next.value != before.value) apart = open(before);
  Channel& from = apart.is_open() ? apart : to;
  const Text mine = text_of(described_);
  Text theirs{};
  const auto require = [](const OpResult& outcome, Rank peer) {
    if (outcome.ok()) return;
    const std::string subject = "halo exchange with rank " + std::to_string(peer.value);
    throw failure(outcome.status, subject, peer.value, "its options could not be compared");
  };
  Operation sent = to.send({mine.data(), mine.size(), MemoryKind::host});
  Operation heard = from.recv({theirs.data(), theirs.size(), MemoryKind::host});
  require(co_await heard, before);
  require(co_await sent, next);
  if (theirs != mine)
    throw Error(Status::invalid_argument, "halo: rank " + std::to_string(before.value) + " makes its exchange with " +
                                              theirs.data() + ", and rank " + std::to_string(rank) + " with " +
                                              mine.data() + ": give the same in all processes");
}

brant::Task<void> Halo::steps(std::vector<Buffer> fields, bool binds, std::uint64_t times) {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (!agreed_) {
    try {
      co_await agree();
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
  agreed_ = true;
  if (binds) {
    co_await held_->exchange->bind(fields);
  } else {
    co_await held_->exchange->run(fields, times);
  }
}

nb::object Halo::start(const nb::sequence& fields, bool binds, std::uint64_t times) {
  static_cast<void>(exchange());
  if (running_ != nullptr)
    throw Error(Status::invalid_argument, "halo: an exchange is under way: await it before the next one");
  std::shared_ptr<std::deque<View>> views = take_fields(fields);
  const MemoryKind kind = views->front().is_host() ? MemoryKind::host : Process::get().runtime().device_kind();
  if (!views->front().is_host() && kind == MemoryKind::host)
    throw Error(Status::wrong_kind,
                "halo: the fields lie in the memory of a GPU, and this process works without one: set BRANT_GPU=cuda");
  std::vector<Buffer> buffers;
  for (const View& view : *views) buffers.emplace_back(view.memory().data, view.bytes(), kind);
  const bool tells = writes_into_others() && (binds || (held_->bound == nullptr && times != 0));
  auto [result, run] = make<HaloRun>(*this, nb::borrow(nb::find(*this)), std::move(views), tells);
  run->start(steps(std::move(buffers), binds, times));
  return std::move(result);
}

nb::object Halo::run(const nb::sequence& fields, std::uint64_t times) { return start(fields, false, times); }
nb::object Halo::bind(const nb::sequence& fields) { return start(fields, true, 0); }

/// Until then the kernel of mode resident has the fields before them, and others write into those.
void Halo::keep(std::shared_ptr<std::deque<View>> fields, bool known) noexcept {
  if (known) {
    held_->bound = std::move(fields);
    held_->told.reset();
  } else if (held_->told == nullptr) {  // what fails later was told to nobody
    held_->told = std::move(fields);
  }
}

void Halo::close() {
  if (!is_open() || Process::get().has_ended()) return;
  static_cast<void>(Process::get().runtime());
  const auto held = held_;  // the run that is given up may be the last that has this object
  if (running_ != nullptr) running_->give_up(Status::canceled);
  held->exchange.reset();
  held->bound.reset();
  held->told.reset();
}

void close_halos() {
  std::set<Halo*>& halos = open_halos();
  while (!halos.empty()) halos.extract(halos.begin()).value()->close();
}

void bind_halo(nb::module_& module) {
  using Cells = std::array<std::int64_t, 3>;
  nb::class_<Halo>(module, "Halo", nb::is_weak_referenceable())
      .def("__init__",
           [](Halo* self, const Cells& grid, const std::array<int, 3>& divide, const std::array<bool, 3>& periodic,
              const Cells& ghost, std::size_t variables, const std::string& format, std::size_t item_bytes,
              std::uint32_t first_channel, const std::string& path, const std::string& mode,
              const std::string& messages, double patience) {
             HaloOptions options{.grid = grid, .divide = divide, .periodic = periodic, .ghost = ghost};
             options.variables = variables;
             options.cell_bytes = item_bytes;
             options.first_channel = ChannelId{first_channel};
             if (!path.empty() && !path_from_name(path, options.path))
               throw Error(Status::invalid_argument, "halo: '" + path + "' is no path: use " + requestable_path_list());
             options.mode = named(kHaloModes, mode, "mode").mode;
             options.messages = named(kMessages, messages, "messages").messages;
             options.patience = patience < 0 ? Worker::kForever
                                             : std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   std::chrono::duration<double>(std::min(patience, 1e9)));
             new (self) Halo(options, std::string(plain_format(format)));
           })
      .def("run", &Halo::run)
      .def("bind", &Halo::bind)
      .def("close", &Halo::close)
      .def("array_of", [](const Halo& self, int i) { return shape_tuple(self.array_of(i)); })
      .def("phases",
           [](const Halo& self) {
             const HaloPhases took = self.exchange().phases();
             return std::tuple(took.pack, took.sync, took.comm, took.unpack);
           })
      .def_prop_ro("first_block", [](const Halo& self) { return self.exchange().first_block(); })
      .def_prop_ro("blocks", [](const Halo& self) { return self.exchange().blocks(); })
      .def_prop_ro("messages", [](const Halo& self) { return self.exchange().messages(); })
      .def_prop_ro("message_bytes", [](const Halo& self) { return self.exchange().message_bytes(); })
      .def_prop_ro("is_open", &Halo::is_open);
  const nb::class_<HaloRun, Awaitable> run(module, "HaloRun");
}

}  // namespace brant::python
