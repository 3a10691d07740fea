#include "port/boot/launcher/frame.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace brant::port::launcher {
namespace {

std::span<const std::byte> body_of(const std::vector<std::byte>& frame) {
  return std::span<const std::byte>(frame).subspan(kHeaderBytes);
}

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 13 + 1);
  return bytes;
}

bool equal(std::span<const std::byte> left, std::span<const std::byte> right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

TEST(Frame, every_message_survives_the_way) {
  Hello hello;
  ASSERT_TRUE(decode(body_of(encode(Hello{.rank = 3, .size = 7, .job_id = "job"})), hello));
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.size, 7);
  EXPECT_EQ(hello.job_id, "job");

  const std::vector<std::byte> value = some_bytes(1000);
  const std::vector<std::byte> put_frame = encode(Put{.key = "key", .value = value});
  Put put;
  ASSERT_TRUE(decode(body_of(put_frame), put));
  EXPECT_EQ(put.key, "key");
  EXPECT_TRUE(equal(put.value, value));

  Fence fence;
  ASSERT_TRUE(decode(body_of(encode(Fence{.id = 1ULL << 60})), fence));
  EXPECT_EQ(fence.id, 1ULL << 60);

  Get get;
  ASSERT_TRUE(decode(body_of(encode(Get{.key = "key", .rank = -5})), get));
  EXPECT_EQ(get.rank, -5);

  Abort abort;
  ASSERT_TRUE(decode(body_of(encode(Abort{.exit_code = 9, .text = "why"})), abort));
  EXPECT_EQ(abort.exit_code, 9);
  EXPECT_EQ(abort.text, "why");

  const std::vector<std::byte> reply_frame =
      encode(Reply{.to = Type::get, .id = 4, .status = Status::not_found, .text = "no", .payload = value});
  Reply reply;
  ASSERT_TRUE(decode(body_of(reply_frame), reply));
  EXPECT_EQ(reply.to, Type::get);
  EXPECT_EQ(reply.id, 4U);
  EXPECT_EQ(reply.status, Status::not_found);
  EXPECT_EQ(reply.text, "no");
  EXPECT_TRUE(equal(reply.payload, value));
}

TEST(Frame, the_header_tells_type_and_size) {
  const std::vector<std::byte> frame = encode(Put{.key = "k", .value = some_bytes(5)});
  Header header;
  ASSERT_TRUE(decode_header(frame, header));
  EXPECT_EQ(header.type, Type::put);
  EXPECT_EQ(header.body_bytes, frame.size() - kHeaderBytes);
  EXPECT_TRUE(decode_header(encode(Finalize{}), header));
  EXPECT_EQ(header.body_bytes, 0U);
}

TEST(Frame, headers_that_are_not_ours_are_refused) {
  Header header;
  std::vector<std::byte> frame = encode(Finalize{});
  frame[4] = std::byte{0};
  EXPECT_FALSE(decode_header(frame, header)) << "type 0";
  frame[4] = std::byte{99};
  EXPECT_FALSE(decode_header(frame, header)) << "type 99";
  frame = encode(Finalize{});
  frame[7] = std::byte{1};
  EXPECT_FALSE(decode_header(frame, header)) << "bytes that should be zero";
  frame = encode(Finalize{});
  frame[3] = std::byte{0x7f};
  EXPECT_FALSE(decode_header(frame, header)) << "a body of two gigabytes";
}

TEST(Frame, every_truncation_of_a_body_is_refused) {
  const std::vector<std::byte> frame = encode(Hello{.rank = 3, .size = 7, .job_id = "job"});
  const auto body = body_of(frame);
  for (std::size_t length = 0; length < body.size(); ++length) {
    Hello hello;
    EXPECT_FALSE(decode(body.first(length), hello)) << length;
  }
  std::vector<std::byte> longer(body.begin(), body.end());
  longer.push_back(std::byte{0});
  Hello hello;
  EXPECT_FALSE(decode(longer, hello)) << "one byte too many";
}

TEST(Frame, a_greeting_of_another_version_is_understood_enough_to_refuse_it_in_words) {
  std::vector<std::byte> frame = encode(Hello{.version = 1000, .job_id = "job"});
  frame.push_back(std::byte{1});
  Hello hello;
  ASSERT_TRUE(decode(body_of(frame), hello));
  EXPECT_EQ(hello.version, 1000U);
  frame[kHeaderBytes] ^= std::byte{1};
  EXPECT_FALSE(decode(body_of(frame), hello)) << "another magic number";
}

TEST(Frame, random_bodies_never_read_outside) {
  std::mt19937 random(20240801);
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<std::byte> body(random() % 40);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    Hello hello;
    Put put;
    Fence fence;
    Get get;
    Abort abort;
    Reply reply;
    static_cast<void>(decode(body, hello));
    if (decode(body, put)) {
      EXPECT_LE(put.key.size() + put.value.size() + 4, body.size());
    }
    if (decode(body, fence)) {
      EXPECT_EQ(body.size(), 8U);
    }
    static_cast<void>(decode(body, get));
    static_cast<void>(decode(body, abort));
    if (decode(body, reply)) {
      EXPECT_LE(reply.text.size() + reply.payload.size(), body.size());
    }
    std::span<const std::byte> rest(body);
    ValueRecord record;
    while (take_record(rest, record)) EXPECT_LE(rest.size() + record.value.size(), body.size());
  }
}

TEST(Frame, long_texts_are_cut_and_long_keys_are_refused) {
  Abort abort;
  ASSERT_TRUE(decode(body_of(encode(Abort{.exit_code = 1, .text = std::string(1 << 20, 'x')})), abort));
  EXPECT_EQ(abort.text.size(), kMaxTextBytes);
  std::vector<std::byte> frame = encode(Get{.key = std::string(kMaxTextBytes, 'k'), .rank = 0});
  const auto more = static_cast<std::uint32_t>(kMaxTextBytes + 4);
  std::memcpy(frame.data() + kHeaderBytes, &more, sizeof more);
  Get get;
  EXPECT_FALSE(decode(body_of(frame), get));
}

TEST(ValueRecord, absent_empty_and_full_are_told_apart) {
  std::vector<std::byte> payload;
  const std::vector<std::byte> value = some_bytes(3);
  append_record(payload, {.present = false, .value = {}});
  append_record(payload, {.present = true, .value = {}});
  append_record(payload, {.present = true, .value = value});
  std::span<const std::byte> rest(payload);
  ValueRecord record;
  ASSERT_TRUE(take_record(rest, record));
  EXPECT_FALSE(record.present);
  ASSERT_TRUE(take_record(rest, record));
  EXPECT_TRUE(record.present && record.value.empty());
  ASSERT_TRUE(take_record(rest, record));
  EXPECT_TRUE(record.present && equal(record.value, value));
  EXPECT_FALSE(take_record(rest, record));
}

}  // namespace
}  // namespace brant::port::launcher
