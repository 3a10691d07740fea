#include "models/halo/direct.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/engine.h"
#include "models/halo/direct_by_host.h"
#include "models/halo/direct_graph.h"
#include "models/halo/direct_launched.h"
#include "models/halo/direct_resident.h"
#include "models/halo/line_table.h"

namespace brant::halo {

namespace {

/// Shorter rows would go one by one over the link between two devices.
constexpr std::size_t kNarrowRow = 32;
constexpr std::size_t kLandingStep = 128;  ///< Where a warp writes whole lines.

bool is_narrow(const Box& box, std::size_t cell) noexcept {
  return static_cast<std::size_t>(box.high[0] - box.low[0]) * cell < kNarrowRow;
}

std::size_t landing_bytes_of(const Box& box, std::size_t cell) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(box.cells()) * cell;
  return (bytes + kLandingStep - 1) / kLandingStep * kLandingStep;
}

std::size_t bytes_of(std::span<const Link> links) noexcept {
  std::size_t bytes = 0;
  for (const Link& link : links) bytes += link.bytes;
  return bytes;
}

}  // namespace

DirectExchange::DirectExchange(Runtime& runtime, const HaloOptions& options)
    : Exchange(runtime, options), mappings_(MappingTable::of(runtime.worker().engine())), transfers_(runtime, layout_) {
  plan_.neighbours = neighbours_of(layout_);
  add_round(offers_, true);
  add_round(verdicts_, false);
}

// Planned
// -------------------------------------------------------------------------------------------------------------------

/// On a device, narrow rows are written packed into a landing of the neighbour, which copies them on, and all that goes
/// in lines.
bool DirectExchange::lands_packed(const Neighbour& neighbour, const Box& box) const noexcept {
  return by_device_ && (neighbour.words_in_lines != 0 || is_narrow(box, layout_.options().cell_bytes));
}

/// The same at both ends: what kernels that stay send each other, cells of whole words, few of them, and as many one
/// way as the other.
std::size_t DirectExchange::words_in_lines(const Neighbour& neighbour) const noexcept {
  const HaloOptions& options = layout_.options();
  const bool stays = options.mode == HaloMode::resident || (options.mode == HaloMode::direct && options.own_kernels);
  if (!by_device_ || !stays || options.cell_bytes % sizeof(Word) != 0) return 0;
  const std::size_t bytes = bytes_of(neighbour.sends);
  return bytes == bytes_of(neighbour.receives) && bytes <= kInLinesMax ? bytes / sizeof(Word) : 0;
}

std::size_t DirectExchange::plan_sends(const Neighbour& neighbour, std::size_t fields, std::size_t landing) {
  const std::size_t cell = layout_.options().cell_bytes;
  const std::size_t variables = layout_.options().variables;
  std::size_t landed = 0;
  for (const Link& link : neighbour.sends) {
    const std::size_t field = fields + neighbour.place_of(link.message.to);
    for (const Region& region : link.message.regions) {
      const CopyEnd from = Copies::end_in_field(layout_.strides_of(link.message.from), region.from, link.field);
      CopyEnd to = Copies::end_in_field(layout_.strides_of(link.message.to), region.to, field);
      if (lands_packed(neighbour, region.from)) {
        to = Copies::end_packed(layout_.strides_of(link.message.to), region.to, landing, landed);
        landed += landing_bytes_of(region.from, cell * variables);
      }
      plan_.copies.add(from, to, region.from, cell, variables);
    }
  }
  plan_.to.push_back(plan_.copies.end_phase());
  return landed;
}

/// From where they land into the ghosts.
std::size_t DirectExchange::plan_landed(const Neighbour& neighbour, std::size_t landing) {
  const std::size_t cell = layout_.options().cell_bytes;
  const std::size_t variables = layout_.options().variables;
  std::size_t landed = 0;
  for (const Link& link : neighbour.receives) {
    const FieldStrides strides = layout_.strides_of(link.message.to);
    for (const Region& region : link.message.regions) {
      if (!lands_packed(neighbour, region.to)) continue;
      plan_.copies.add(Copies::end_packed(strides, region.to, landing, landed),
                       Copies::end_in_field(strides, region.to, link.field), region.to, cell, variables);
      landed += landing_bytes_of(region.to, cell * variables);
    }
  }
  plan_.landed.push_back(plan_.copies.end_phase());
  return landed;
}

void DirectExchange::plan_copies() {
  if (by_device_ && layout_.options().mode == HaloMode::resident) plan_.turns = 2;
  const std::size_t count = plan_.neighbours.size();
  const auto own = static_cast<std::size_t>(layout_.blocks());
  std::size_t landings = own;
  for (const Neighbour& neighbour : plan_.neighbours) landings += neighbour.blocks.size();
  std::size_t fields = own;
  for (std::size_t n = 0; n < count; ++n) {
    Neighbour& neighbour = plan_.neighbours[n];
    neighbour.words_in_lines = words_in_lines(neighbour);
    neighbour.far_bytes = plan_sends(neighbour, fields, landings + count + n);
    fields += neighbour.blocks.size();
  }
  for (const Link& link : layout_.sends()) {
    if (link.rank == layout_.rank()) plan_.copies.add_within(layout_, link);
  }
  plan_.own = plan_.copies.end_phase();
  for (std::size_t n = 0; n < count; ++n) {
    Neighbour& neighbour = plan_.neighbours[n];
    neighbour.landing_bytes = plan_landed(neighbour, landings + n);
    if (neighbour.landing_bytes == 0) continue;
    const std::size_t bytes = neighbour.landing_size(neighbour.landing_bytes, plan_.turns);
    neighbour.landing = runtime_.allocate(runtime_.device_kind(), bytes);
    if (neighbour.words_in_lines != 0) clear_lines(runtime_, neighbour.landing);
  }
  plan_.bases.resize(plan_.turns * (landings + 2 * count));
}

void DirectExchange::add_round(Round& round, bool with_fields) {
  const auto bytes = [&](std::size_t fields) {
    return with_fields ? sizeof(DirectOffer) + fields * sizeof(FieldOffer) : sizeof(std::uint64_t);
  };
  for (const Neighbour& neighbour : plan_.neighbours) {
    round.heard.emplace_back(bytes(neighbour.blocks.size()));
    round.told.emplace_back(bytes(neighbour.fields.size()));
    round.receives.push_back(&transfers_.add(neighbour.receives, round.heard.back().size(), false));
    round.sends.push_back(&transfers_.add(neighbour.sends, round.told.back().size(), true));
  }
}

std::size_t DirectExchange::messages() const noexcept {
  std::size_t sum = 0;
  for (const Neighbour& neighbour : plan_.neighbours) sum += neighbour.sends.size();
  return sum;
}

std::size_t DirectExchange::message_bytes() const noexcept {
  std::size_t sum = 0;
  for (const Neighbour& neighbour : plan_.neighbours) sum += bytes_of(neighbour.sends);
  return sum;
}

// Bound
// -------------------------------------------------------------------------------------------------------------------

Task<void> DirectExchange::swap(Round& round) {
  const auto whole = [](std::vector<std::byte>& bytes) { return Buffer(bytes.data(), bytes.size(), MemoryKind::host); };
  for (std::size_t n = 0; n < round.heard.size(); ++n) transfers_.post(*round.receives[n], whole(round.heard[n]));
  for (std::size_t n = 0; n < round.told.size(); ++n) transfers_.post(*round.sends[n], whole(round.told[n]));
  co_await transfers_.ended();
}

void DirectExchange::choose_way(std::span<const Buffer> fields) {
  MemoryKind kind = fields[0].kind;
  const Status known = runtime_.worker().engine().memory_kinds().resolve(fields[0].data, fields[0].bytes, kind);
  if (known != Status::ok) throw_error(known, "halo: the first field is no memory of this process");
  const bool by_device = !host_accessible(kind);
  if (way_ != nullptr && by_device != by_device_) {
    throw Error(
        Status::wrong_kind,
        fmt::format("halo: this exchange was bound to fields of {} memory, and now to fields of {} memory: make "
                    "another exchange for those",
                    by_device_ ? "device" : "host", memory_kind_name(kind)));
  }
  by_device_ = by_device;
  if (way_ != nullptr) return;
  if (plan_.bases.empty()) plan_copies();
  const HaloMode mode = layout_.options().mode;
  if (by_device && mode == HaloMode::resident) {
    way_ = std::make_unique<DirectResident>(runtime_, layout_, plan_);
  } else if (by_device && mode == HaloMode::graph) {
    way_ = std::make_unique<DirectGraph>(runtime_, layout_, plan_);
  } else if (by_device) {
    way_ = std::make_unique<DirectLaunched>(runtime_, layout_, plan_);
  } else {
    way_ = std::make_unique<DirectByHost>(plan_, transfers_);
  }
}

void DirectExchange::tell_offers(std::span<const Buffer> fields) {
  for (std::size_t n = 0; n < plan_.neighbours.size(); ++n) {
    DirectOffer offer;
    offer.by_device = by_device_ ? 1 : 0;
    offer.lines = plan_.neighbours[n].words_in_lines;
    way_->offer(n, offer);
    const Neighbour& neighbour = plan_.neighbours[n];
    if (neighbour.landing_bytes != 0) {
      offer.landing = offer_field(runtime_, neighbour.landing, layout_.first_block());
    }
    std::byte* to = offers_.told[n].data();
    std::memcpy(to, &offer, sizeof offer);
    to += sizeof offer;
    for (const std::size_t field : neighbour.fields) {
      const FieldOffer one = offer_field(runtime_, fields[field], layout_.first_block() + static_cast<int>(field));
      std::memcpy(to, &one, sizeof one);
      to += sizeof one;
    }
  }
}

void DirectExchange::accept_offer(std::size_t n) {
  Neighbour& neighbour = plan_.neighbours[n];
  const std::byte* from = offers_.heard[n].data();
  DirectOffer offer;
  std::memcpy(&offer, from, sizeof offer);
  from += sizeof offer;
  if (offer.refused != 0) {
    throw_error(static_cast<Status>(offer.refused),
                fmt::format("halo: rank {} could not bind its fields", neighbour.rank));
  }
  if ((offer.by_device != 0) != by_device_) {
    throw Error(Status::wrong_kind,
                fmt::format("halo: the fields of rank {} are {} memory, and those of this process {} memory: use one "
                            "kind in all processes",
                            neighbour.rank, by_device_ ? "host" : "device", by_device_ ? "device" : "host"));
  }
  if (offer.lines != neighbour.words_in_lines) {
    throw Error(Status::invalid_argument,
                fmt::format("halo: rank {} exchanges {} words with kernels of its own, and this process {}: give "
                            "HaloOptions::own_kernels in all processes or in none",
                            neighbour.rank, offer.lines, neighbour.words_in_lines));
  }
  if (offer.landing.bytes < neighbour.landing_size(neighbour.far_bytes, plan_.turns)) {
    throw Error(Status::internal, fmt::format("halo: rank {} has {} bytes for {} times {} bytes of narrow rows",
                                              neighbour.rank, offer.landing.bytes, plan_.turns, neighbour.far_bytes));
  }
  way_->accept(n, offer);
  if (neighbour.far_bytes != 0) {
    neighbour.far_landing = map_field(runtime_, neighbour.rank, neighbour.blocks[0], offer.landing, by_device_);
  }
  neighbour.mapped.clear();
  for (const int block : neighbour.blocks) {
    FieldOffer one;
    std::memcpy(&one, from, sizeof one);
    from += sizeof one;
    neighbour.mapped.push_back(map_field(runtime_, neighbour.rank, block, one, by_device_));
  }
}

/// Everybody says whether it can begin, so that nobody waits for one that cannot.
Task<void> DirectExchange::agree(Status own) {
  for (std::vector<std::byte>& told : verdicts_.told) {
    const auto verdict = static_cast<std::uint64_t>(own);
    std::memcpy(told.data(), &verdict, sizeof verdict);
  }
  co_await swap(verdicts_);
  for (std::size_t n = 0; n < plan_.neighbours.size(); ++n) {
    std::uint64_t verdict = 0;
    std::memcpy(&verdict, verdicts_.heard[n].data(), sizeof verdict);
    if (verdict != 0 && own == Status::ok) {
      throw_error(static_cast<Status>(verdict),
                  fmt::format("halo: rank {} could not bind its fields, or reach those of this process",
                              plan_.neighbours[n].rank));
    }
  }
}

void DirectExchange::set_bases(std::span<const Buffer> fields) noexcept {
  std::size_t base = 0;
  for (std::size_t turn = 0; turn < plan_.turns; ++turn) {
    for (const Buffer& field : fields) plan_.bases[base++] = static_cast<std::byte*>(field.data);
    for (const Neighbour& neighbour : plan_.neighbours) {
      for (const MappedMemory& mapped : neighbour.mapped) plan_.bases[base++] = mapped.address;
    }
    for (const Neighbour& neighbour : plan_.neighbours) {
      plan_.bases[base++] = static_cast<std::byte*>(neighbour.landing.data()) + turn * neighbour.landing_bytes;
    }
    for (const Neighbour& neighbour : plan_.neighbours) {
      plan_.bases[base++] = neighbour.far_landing.address + turn * neighbour.far_bytes;
    }
  }
}

Task<void> DirectExchange::bind_to(std::span<const Buffer> fields) {
  bound_ = false;
  Status refused = Status::ok;
  std::exception_ptr why;
  const auto attempt = [&](auto step) {
    try {
      if (why == nullptr) step();
    } catch (const Error& error) {
      refused = error.status();
      why = std::current_exception();
    } catch (const std::bad_alloc&) {
      refused = Status::no_memory;
      why = std::current_exception();
    }
  };
  attempt([&] {
    choose_way(fields);
    tell_offers(fields);
  });
  if (why != nullptr) {
    DirectOffer offer;
    offer.refused = static_cast<std::uint64_t>(refused);
    for (std::vector<std::byte>& told : offers_.told) std::memcpy(told.data(), &offer, sizeof offer);
  }
  co_await swap(offers_);
  for (std::size_t n = 0; n < plan_.neighbours.size(); ++n) attempt([&] { accept_offer(n); });
  attempt([&] {
    set_bases(fields);
    way_->bind();
  });
  co_await agree(refused);
  if (why != nullptr) std::rethrow_exception(why);
  bound_ = true;
}

bool DirectExchange::is_bound(std::span<const Buffer> fields) const noexcept {
  return std::equal(fields.begin(), fields.end(), plan_.bases.begin(),
                    [](const Buffer& field, const std::byte* base) { return field.data == base; });
}

// Run
// -------------------------------------------------------------------------------------------------------------------

void DirectExchange::require_ready(std::span<const Buffer> fields) const {
  transfers_.require_open();
  if (layout_.options().own_kernels && layout_.options().mode == HaloMode::direct) {
    throw Error(
        Status::invalid_argument,
        "halo: kernels of the program do the exchanges of HaloOptions::own_kernels: bind and accompany them, or "
        "leave that option off");
  }
  if (way_ != nullptr) way_->require_ready();
  if (!bound_ || is_bound(fields)) return;
  throw Error(Status::invalid_argument,
              "halo: these are not the fields that mode direct is bound to: call bind with them first, in every "
              "process, or give the same ones in each run");
}

Task<void> DirectExchange::exchange_times(std::span<const Buffer> fields, std::uint64_t times) {
  if (!bound_) {
    co_await bind_to(fields);
    way_->require_ready();  // a neighbour may have left meanwhile
  }
  co_await way_->exchange(times);
}

void DirectExchange::require_device() const {
  if (layout_.options().mode != HaloMode::direct) Exchange::require_device();
  if (!bound_) throw Error(Status::invalid_argument, "halo: no kernel can exchange before all processes call bind");
  if (!by_device_) Exchange::require_device();
}

DirectPlan DirectExchange::device(unsigned blocks) {
  require_device();
  return way_->device(blocks);
}

Task<void> DirectExchange::accompany_kernel(PersistentKernel& kernel, std::uint64_t times, Task<bool> work) {
  transfers_.require_open();
  way_->require_ready();
  co_await way_->accompany(kernel, times, std::move(work));
}

void DirectExchange::give_up() noexcept {
  if (way_ != nullptr) way_->give_up();
  transfers_.give_up();
}

}  // namespace brant::halo
