#include "port/boot/launcher/frame.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace brant::port::launcher {
namespace {

class Writer {
 public:
  explicit Writer(Type type) : bytes_(kHeaderBytes) {
    const auto number = static_cast<std::uint16_t>(type);
    std::memcpy(bytes_.data() + 4, &number, sizeof number);
  }

  template <typename T>
  Writer& number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
    return *this;
  }
  Writer& text(std::string_view text) {
    text = text.substr(0, kMaxTextBytes);
    number(static_cast<std::uint32_t>(text.size()));
    return raw(std::as_bytes(std::span(text.data(), text.size())));
  }
  Writer& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  std::vector<std::byte> done() {
    const auto body = static_cast<std::uint32_t>(bytes_.size() - kHeaderBytes);
    std::memcpy(bytes_.data(), &body, sizeof body);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> body) : rest_(body) {}

  template <typename T>
  Reader& number(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (rest_.size() < sizeof value) return fail();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return *this;
  }
  Reader& text(std::string& text, std::size_t bound) {
    std::uint32_t bytes = 0;
    number(bytes);
    if (!good_ || bytes > bound || bytes > rest_.size()) return fail();
    text.assign(reinterpret_cast<const char*>(rest_.data()), bytes);
    rest_ = rest_.subspan(bytes);
    return *this;
  }
  Reader& rest(std::span<const std::byte>& bytes, std::size_t bound) {
    if (!good_ || rest_.size() > bound) return fail();
    bytes = std::exchange(rest_, {});
    return *this;
  }
  [[nodiscard]] bool done() const { return good_ && rest_.empty(); }

 private:
  Reader& fail() {
    good_ = false;
    rest_ = {};
    return *this;
  }

  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  return Writer(Type::hello)
      .number(kMagic)
      .number(hello.version)
      .number(hello.rank)
      .number(hello.size)
      .text(hello.job_id)
      .done();
}
std::vector<std::byte> encode(const Put& put) { return Writer(Type::put).text(put.key).raw(put.value).done(); }
std::vector<std::byte> encode(const Fence& fence) { return Writer(Type::fence).number(fence.id).done(); }
std::vector<std::byte> encode_cancel(const Fence& fence) { return Writer(Type::cancel_fence).number(fence.id).done(); }
std::vector<std::byte> encode(const Get& get) { return Writer(Type::get).text(get.key).number(get.rank).done(); }
std::vector<std::byte> encode(const Finalize&) { return Writer(Type::finalize).done(); }
std::vector<std::byte> encode(const Spawn&) { return Writer(Type::spawn).done(); }
std::vector<std::byte> encode(const Abort& abort) {
  return Writer(Type::abort).number(abort.exit_code).text(abort.text).done();
}
std::vector<std::byte> encode(const Reply& reply) {
  return Writer(Type::reply)
      .number(static_cast<std::uint16_t>(reply.to))
      .number(reply.id)
      .number(static_cast<std::int32_t>(reply.status))
      .text(reply.text)
      .raw(reply.payload)
      .done();
}

bool decode(std::span<const std::byte> body, Hello& hello) {
  std::uint32_t magic = 0;
  Reader reader(body);
  reader.number(magic).number(hello.version);
  if (magic != kMagic) return false;
  // A later version may have said more; its number is all that is needed to refuse it in words.
  if (hello.version != kProtocolVersion) return true;
  return reader.number(hello.rank).number(hello.size).text(hello.job_id, kMaxTextBytes).done();
}
bool decode(std::span<const std::byte> body, Put& put) {
  return Reader(body).text(put.key, kMaxTextBytes).rest(put.value, kMaxBodyBytes).done();
}
bool decode(std::span<const std::byte> body, Fence& fence) { return Reader(body).number(fence.id).done(); }
bool decode(std::span<const std::byte> body, Get& get) {
  return Reader(body).text(get.key, kMaxTextBytes).number(get.rank).done();
}
bool decode(std::span<const std::byte> body, Abort& abort) {
  return Reader(body).number(abort.exit_code).text(abort.text, kMaxTextBytes).done();
}
bool decode(std::span<const std::byte> body, Reply& reply) {
  std::uint16_t to = 0;
  std::int32_t status = 0;
  const bool good = Reader(body)
                        .number(to)
                        .number(reply.id)
                        .number(status)
                        .text(reply.text, kMaxTextBytes)
                        .rest(reply.payload, kMaxBodyBytes)
                        .done();
  reply.to = static_cast<Type>(to);
  reply.status = static_cast<Status>(status);
  return good;
}

bool decode_header(std::span<const std::byte> bytes, Header& header) {
  std::uint32_t body = 0;
  std::uint16_t type = 0;
  std::uint16_t zero = 0;
  if (!Reader(bytes.first(kHeaderBytes)).number(body).number(type).number(zero).done()) return false;
  header = {.body_bytes = body, .type = static_cast<Type>(type)};
  return body <= kMaxBodyBytes && zero == 0 && type >= static_cast<std::uint16_t>(Type::hello) &&
         type <= static_cast<std::uint16_t>(Type::spawn);
}

void append_record(std::vector<std::byte>& payload, const ValueRecord& record) {
  const std::uint32_t bytes = record.present ? static_cast<std::uint32_t>(record.value.size()) + 1 : 0;
  const auto* first = reinterpret_cast<const std::byte*>(&bytes);
  payload.insert(payload.end(), first, first + sizeof bytes);
  if (record.present) payload.insert(payload.end(), record.value.begin(), record.value.end());
}

bool take_record(std::span<const std::byte>& payload, ValueRecord& record) {
  std::uint32_t bytes = 0;
  if (payload.size() < sizeof bytes) return false;
  std::memcpy(&bytes, payload.data(), sizeof bytes);
  std::span<const std::byte> rest = payload.subspan(sizeof bytes);
  const std::size_t length = bytes == 0 ? 0 : bytes - 1;
  if (length > rest.size()) return false;
  record = {.present = bytes != 0, .value = rest.first(length)};
  payload = rest.subspan(length);
  return true;
}

}  // namespace brant::port::launcher
