#include "port/boot/tcp_store/client.h"

#include <bit>
#include <cstring>

namespace brant::port::tcp_store {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel in the order of the machine");

/// The names of the questions, as PyTorch numbers them since 2.1.
enum class Ask : std::uint8_t {
  validate = 0,
  set = 1,
  compare_set = 2,
  add = 4,
  check = 5,
  wait = 6,
  multi_get = 10,
  cancel_wait = 12,
};

constexpr std::uint32_t kValidation = 0x3C85F7CE;

constexpr std::uint8_t kReady = 0, kNotReady = 1;
constexpr std::uint8_t kStopWaiting = 0, kWaitCanceled = 1;

/// Longer than any answer to set_once.
constexpr std::size_t kMaxText = 4096;

constexpr const char* kNoStore = "what it answers is not what torch's TCPStore says";

class Question {
 public:
  explicit Question(Ask ask) : bytes_{static_cast<std::byte>(ask)} {}
  template <typename Number>
  Question& number(Number value) {
    return raw(std::as_bytes(std::span(&value, 1)));
  }
  Question& run(std::span<const std::byte> bytes) { return number(std::uint64_t{bytes.size()}).raw(bytes); }
  Question& text(std::string_view text) { return run(std::as_bytes(std::span(text.data(), text.size()))); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  Question& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

Status Client::connect(const std::string& host, int port, Clock::time_point deadline) {
  const Status status = stream_.connect(host, port, deadline);
  if (status != Status::ok) return status;
  return stream_.send(Question(Ask::validate).number(kValidation).bytes(), deadline);
}

Status Client::ask(std::span<const std::byte> question, Clock::time_point deadline) {
  const Status status = stop_waiting(deadline);
  return status == Status::ok ? stream_.send(question, deadline) : status;
}

Status Client::receive_byte(std::uint8_t largest, std::uint8_t& byte, Clock::time_point deadline) {
  const Status status = stream_.receive(std::as_writable_bytes(std::span(&byte, 1)), deadline);
  return status == Status::ok && byte > largest ? stream_.reject(kNoStore) : status;
}

Status Client::receive_run(std::size_t longest, Bytes& run, Clock::time_point deadline) {
  std::uint64_t length = 0;
  const Status status = stream_.receive(std::as_writable_bytes(std::span(&length, 1)), deadline);
  if (status != Status::ok) return status;
  if (length > longest) return stream_.reject(kNoStore);
  run.resize(length);
  return stream_.receive(run, deadline);
}

Status Client::set(std::string_view key, std::span<const std::byte> value, Clock::time_point deadline) {
  return ask(Question(Ask::set).text(prefix_ + std::string(key)).run(value).bytes(), deadline);
}

Status Client::set_once(std::string_view key, std::string& value, Clock::time_point deadline) {
  Status status =
      ask(Question(Ask::compare_set).text(prefix_ + std::string(key)).text("").text(value).bytes(), deadline);
  Bytes now;
  if (status == Status::ok) status = receive_run(kMaxText, now, deadline);
  if (status == Status::ok) value.assign(reinterpret_cast<const char*>(now.data()), now.size());
  return status;
}

Status Client::increment(std::string_view key, std::int64_t& value, Clock::time_point deadline) {
  const Status status =
      ask(Question(Ask::add).text(prefix_ + std::string(key)).number(std::int64_t{1}).bytes(), deadline);
  if (status != Status::ok) return status;
  return stream_.receive(std::as_writable_bytes(std::span(&value, 1)), deadline);
}

Status Client::check(std::span<const std::string> keys, std::vector<bool>& exist, Clock::time_point deadline) {
  exist.clear();
  for (const std::string& key : keys) {
    Status status = ask(Question(Ask::check).number(std::uint64_t{1}).text(prefix_ + key).bytes(), deadline);
    std::uint8_t answer = kNotReady;
    if (status == Status::ok) status = receive_byte(kNotReady, answer, deadline);
    if (status != Status::ok) return status;
    exist.push_back(answer == kReady);
  }
  return Status::ok;
}

Status Client::get(std::span<const std::string> keys, std::vector<Bytes>& values, Clock::time_point deadline) {
  Question question(Ask::multi_get);
  question.number(std::uint64_t{keys.size()});
  for (const std::string& key : keys) question.text(prefix_ + key);
  Status status = ask(question.bytes(), deadline);
  values.assign(keys.size(), {});
  for (std::size_t i = 0; status == Status::ok && i < keys.size(); ++i)
    status = receive_run(kMaxValue, values[i], deadline);
  return status;
}

Status Client::wait(std::string_view key, Clock::time_point deadline) {
  if (!waiting_) {
    const Status status =
        stream_.send(Question(Ask::wait).number(std::uint64_t{1}).text(prefix_ + std::string(key)).bytes(), deadline);
    if (status != Status::ok) return status;
    waiting_ = true;
  }
  std::uint8_t answer = kStopWaiting;
  const Status status = receive_byte(kStopWaiting, answer, deadline);
  if (status == Status::ok) waiting_ = false;
  return status;
}

Status Client::stop_waiting(Clock::time_point deadline) {
  if (!waiting_) return Status::ok;
  const Question cancel(Ask::cancel_wait);
  Status status = stream_.send(cancel.bytes(), deadline);
  std::uint8_t answer = kStopWaiting;
  // It may have answered just before: then both answers come.
  for (int answers = 0; status == Status::ok && answer != kWaitCanceled; ++answers) {
    if (answers == 2) return stream_.reject(kNoStore);
    status = receive_byte(kWaitCanceled, answer, deadline);
  }
  if (status == Status::ok) waiting_ = false;
  return status;
}

}  // namespace brant::port::tcp_store
