#include "bench/mpi/mpi_contender.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "bench/runner/check.h"
#include "bench/runner/pattern.h"
#include "bench/runner/us_since.h"

namespace brant::bench::mpi {
namespace {

constexpr int kTag = 1;

std::size_t room_for(const Options& options) {
  return std::max({scratch_bytes(options), options.sizes.back(), kReplyBytes});
}

}  // namespace

void Requests::send(const std::byte* data, std::size_t bytes, int to) {
  require(mpi_.isend(data, static_cast<int>(bytes), mpi_.byte_type, to, kTag, mpi_.world, next()), "MPI_Isend");
}

void Requests::receive(std::byte* data, std::size_t bytes, int from) {
  require(mpi_.irecv(data, static_cast<int>(bytes), mpi_.byte_type, from, kTag, mpi_.world, next()), "MPI_Irecv");
}

void Requests::wait() {
  const auto count = static_cast<int>(std::exchange(count_, 0));
  require(mpi_.waitall(count, requests_.data(), statuses_.data()), "MPI_Waitall");
}

MpiContender::MpiContender(Pairs& pairs, const Options& options, std::string peer)
    : pairs_(pairs),
      mpi_(pairs.mpi()),
      options_(options),
      peer_(std::move(peer)),
      room_(room_for(options)),
      source_(mpi_, options.memory, options.alloc, room_),
      landing_(mpi_, options.memory, options.alloc, room_),
      sends_(mpi_, options.window),
      receives_(mpi_, options.window) {}

// What is measured
// -------------------------------------------------------------------------------------------------------------------

void MpiContender::send(std::size_t bytes) {
  require(mpi_.send(source_.at(0), static_cast<int>(bytes), mpi_.byte_type, pairs_.partner(), kTag, mpi_.world),
          "MPI_Send");
}

void MpiContender::receive(std::size_t bytes) {
  StatusRoom status;
  require(
      mpi_.recv(landing_.at(0), static_cast<int>(bytes), mpi_.byte_type, pairs_.partner(), kTag, mpi_.world, &status),
      "MPI_Recv");
}

void MpiContender::ping_pong(std::size_t bytes, std::span<double> round_trip_us) {
  for (double& sample : round_trip_us) {
    const auto begin = std::chrono::steady_clock::now();
    if (pairs_.leads()) send(bytes);
    receive(bytes);
    if (!pairs_.leads()) send(bytes);
    sample = us_since(begin);
  }
}

void MpiContender::send_window(std::size_t bytes, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) sends_.send(source_.at(0), bytes, pairs_.partner());
  sends_.wait();
  receive(kReplyBytes);
}

void MpiContender::receive_window(std::size_t bytes, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) receives_.receive(landing_.at(0), bytes, pairs_.partner());
  receives_.wait();
  send(kReplyBytes);
}

void MpiContender::exchange_windows(std::size_t bytes, std::size_t window) {
  for (std::size_t i = 0; i < window; ++i) receives_.receive(landing_.at(0), bytes, pairs_.partner());
  for (std::size_t i = 0; i < window; ++i) sends_.send(source_.at(0), bytes, pairs_.partner());
  sends_.wait();
  receives_.wait();
}

void MpiContender::windows(std::size_t bytes, std::size_t window, std::span<double> window_us) {
  for (double& sample : window_us) {
    const auto begin = std::chrono::steady_clock::now();
    if (options_.kind == Kind::bidirectional) {
      exchange_windows(bytes, window);
    } else {
      pairs_.leads() ? send_window(bytes, window) : receive_window(bytes, window);
    }
    sample = us_since(begin);
  }
}

// What is looked at
// -------------------------------------------------------------------------------------------------------------------

std::uint64_t MpiContender::message(bool of_leader, std::uint64_t number) const noexcept {
  return (static_cast<std::uint64_t>(pairs_.pair()) << 41) + (std::uint64_t{of_leader} << 40) + number;
}

void MpiContender::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (host_accessible(options_.memory)) {
    std::memcpy(to, from, bytes);
    return;
  }
  StatusRoom status;
  const auto count = static_cast<int>(bytes);
  require(mpi_.sendrecv(from, count, mpi_.byte_type, pairs_.rank(), kTag, to, count, mpi_.byte_type, pairs_.rank(),
                        kTag, mpi_.world, &status),
          "MPI_Sendrecv");
}

/// What leaves has its pattern, and where another message lands no byte is right by chance.
void MpiContender::fill(const Places& places) {
  std::vector<std::byte> image(places.bytes);
  for (std::size_t i = 0; i < places.count; ++i) {
    fill_pattern(image, message(pairs_.leads(), places.first + i));
    copy(source_.at(i * places.stride), image.data(), image.size());
    fill_poison(image, message(!pairs_.leads(), places.first + i));
    copy(landing_.at(i * places.stride), image.data(), image.size());
  }
}

void MpiContender::transfer(const Places& places, bool sends, bool receives) {
  for (std::size_t i = 0; receives && i < places.count; ++i)
    receives_.receive(landing_.at(i * places.stride), places.bytes, pairs_.partner());
  for (std::size_t i = 0; sends && i < places.count; ++i)
    sends_.send(source_.at(i * places.stride), places.bytes, pairs_.partner());
  sends_.wait();
  receives_.wait();
}

void MpiContender::verify(const Places& places) {
  std::vector<std::byte> image(places.bytes);
  for (std::size_t i = 0; i < places.count; ++i) {
    const std::uint64_t expected = message(!pairs_.leads(), places.first + i);
    copy(image.data(), landing_.at(i * places.stride), image.size());
    if (const std::optional<std::size_t> wrong = first_wrong_byte(image, expected))
      throw wrong_byte({expected, *wrong, image[*wrong]}, image.size(), options_.memory, pairs_.rank());
  }
}

void MpiContender::check(std::size_t bytes, std::size_t times) {
  Places places{places_for(options_, bytes), bytes, std::max(bytes, kReplyBytes), 0};
  const bool both = options_.kind == Kind::bidirectional;
  const auto turn = [&](bool leader_sends) {
    const bool sends = pairs_.leads() == leader_sends;
    fill(places);
    transfer(places, both || sends, both || !sends);
    if (both || !sends) verify(places);
    places.first += places.count;
  };
  for (std::size_t time = 0; time < times; ++time) {
    turn(true);
    if (options_.kind == Kind::bandwidth) places.count = 1, places.bytes = kReplyBytes;
    if (!both) turn(false);
    places.count = places_for(options_, bytes);
    places.bytes = bytes;
  }
}

}  // namespace brant::bench::mpi
