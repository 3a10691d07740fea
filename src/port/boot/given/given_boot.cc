#include "port/boot/given/given_boot.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/host_name.h"
#include "base/place.h"
#include "port/boot/key_values.h"

namespace brant::port {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMagic = 0x31616976'746e7262;  // "brntvia1": tells our records from whatever else was gathered
constexpr auto kPause = 50us;

/// What each process says of itself at the beginning.
struct Hello {
  int rank = 0;
  int size = 0;
  std::string place;   ///< Equal in processes of one host.
  std::string job_id;  ///< That of rank 0 counts.
};

Bytes pack(const Hello& hello) {
  ByteWriter writer;
  writer.number(kMagic);
  writer.number(hello.rank);
  writer.number(hello.size);
  writer.text(hello.place);
  writer.text(hello.job_id);
  return writer.bytes();
}

bool unpack(std::span<const std::byte> bytes, Hello& hello) {
  ByteReader reader(bytes);
  const bool ours = reader.number<std::uint64_t>() == kMagic;
  hello.rank = reader.number<int>();
  hello.size = reader.number<int>();
  hello.place = reader.text();
  hello.job_id = reader.text();
  return ours && !reader.failed() && reader.left() == 0;
}

std::string place_of_host() {
  const Place place = own_place();
  return place.known ? place.host + "/" + place.pid_namespace : host_name();
}

class GivenBoot final : public Boot {
 public:
  explicit GivenBoot(Exchange& exchange) : exchange_(exchange) {
    try {
      meet();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(Status::io_error,
                  fmt::format("the exchange that the program gave to brant failed: {}", error.what()));
    }
  }

  const JobInfo& job() const noexcept override { return job_; }
  Status put(const std::string& key, std::span<const std::byte> value) noexcept override;
  Status fence(std::chrono::milliseconds timeout) noexcept override;
  Result<Bytes> get(int rank, const std::string& key) noexcept override;
  std::string last_error() const override { return error_; }
  void finalize() noexcept override {}
  void abort(int exit_code, const std::string& message) noexcept override { abort_alone(exit_code, message); }

 private:
  void meet();
  std::vector<Bytes> gather(std::span<const std::byte> mine);
  bool wait_for_all(Clock::time_point deadline);
  Status fence_or_throw(std::chrono::milliseconds timeout);

  Exchange& exchange_;
  JobInfo job_;
  bool waiting_ = false;  ///< A barrier has begun.
  KeyValues staged_;
  std::vector<KeyValues> values_;  ///< By rank.
  std::string error_;
};

std::vector<Bytes> GivenBoot::gather(std::span<const std::byte> mine) {
  std::vector<Bytes> all = exchange_.allgather(mine);
  if (all.size() != static_cast<std::size_t>(job_.size)) {
    throw Error(
        Status::invalid_argument,
        fmt::format("the exchange that the program gave to brant has {} processes, and its allgather brought {} "
                    "records",
                    job_.size, all.size()));
  }
  return all;
}

void GivenBoot::meet() {
  job_.rank = exchange_.rank();
  job_.size = exchange_.size();
  job_.launcher = "the program's own exchange";
  if (job_.size < 1 || job_.rank < 0 || job_.rank >= job_.size) {
    throw Error(
        Status::invalid_argument,
        fmt::format("the exchange that the program gave to brant says rank {} of {}: it should be 0 to size - 1",
                    job_.rank, job_.size));
  }
  const Hello own{.rank = job_.rank, .size = job_.size, .place = place_of_host(), .job_id = "given-" + random_job_id()};
  const std::vector<Bytes> records = gather(pack(own));
  job_.local_size = 0;
  for (int rank = 0; rank < job_.size; ++rank) {
    Hello other;
    const bool good = unpack(records[static_cast<std::size_t>(rank)], other);
    if (!good || other.rank != rank || other.size != job_.size) {
      throw Error(
          Status::invalid_argument,
          fmt::format("the exchange that the program gave to brant (rank {} of {}) brought as the record of rank "
                      "{} {}: allgather has to bring what each gave, in order of rank",
                      job_.rank, job_.size, rank,
                      good ? fmt::format("that of rank {} of {}", other.rank, other.size) : "something else"));
    }
    if (rank == 0) job_.job_id = other.job_id;
    if (other.place != own.place) continue;
    if (rank < job_.rank) ++job_.local_rank;
    ++job_.local_size;
  }
  values_.resize(static_cast<std::size_t>(job_.size));
}

Status GivenBoot::put(const std::string& key, std::span<const std::byte> value) noexcept {
  try {
    return stage(staged_, key, value, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

bool GivenBoot::wait_for_all(Clock::time_point deadline) {
  if (!waiting_) exchange_.start_barrier();
  waiting_ = true;
  while (!exchange_.barrier_done()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  waiting_ = false;
  return true;
}

/// First the barrier, which can be left and taken up again, and then the values, for which all are there.
Status GivenBoot::fence_or_throw(std::chrono::milliseconds timeout) {
  timeout = std::clamp<std::chrono::milliseconds>(timeout, 0ms, kLongestFence);
  error_.clear();
  if (!wait_for_all(Clock::now() + timeout)) {
    error_ = fmt::format(
        "the fence took longer than {} ms: a process of the exchange that the program gave has ended, or "
        "is slow (BRANT_BOOT_TIMEOUT_MS gives it longer)",
        timeout.count());
    return Status::timed_out;
  }
  const std::vector<Bytes> all = gather(port::pack(staged_));
  staged_.clear();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (port::unpack(all[rank], values_[rank])) continue;
    error_ = fmt::format("allgather brought something else than what rank {} gave", rank);
    return Status::peer_rejected;
  }
  return Status::ok;
}

Status GivenBoot::fence(std::chrono::milliseconds timeout) noexcept {
  try {
    return fence_or_throw(timeout);
  } catch (const Error& error) {
    error_ = error.what();
    return error.status();
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  } catch (const std::exception& error) {
    error_ = fmt::format("the exchange that the program gave to brant failed: {}", error.what());
    return Status::io_error;
  }
}

Result<Bytes> GivenBoot::get(int rank, const std::string& key) noexcept {
  try {
    error_ = question_fault(rank, job_.size, key);
    if (!error_.empty()) return Status::invalid_argument;
    return find_value(values_[static_cast<std::size_t>(rank)], rank, key, error_);
  } catch (...) {
    return Status::no_memory;
  }
}

}  // namespace

std::unique_ptr<Boot> open_given_boot(Exchange& exchange) { return std::make_unique<GivenBoot>(exchange); }

}  // namespace brant::port
