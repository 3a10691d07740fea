#include "base/hmac.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace brant {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte b : digest) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(bytes_of(text));
  return hex(hash.finish());
}

std::string hmac(std::string_view key, std::string_view text) {
  return hex(hmac_sha256(bytes_of(key), bytes_of(text)));
}

TEST(Sha256, gives_what_the_standard_gives) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, does_not_depend_on_how_the_bytes_are_cut) {
  const std::string text(200, 'x');
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.add(bytes_of(text).first(cut));
    hash.add(bytes_of(text).subspan(cut));
    ASSERT_EQ(hex(hash.finish()), sha256(text)) << cut;
  }
}

// RFC 4231, the test cases 1 to 4, 6 and 7.
TEST(Hmac, gives_what_rfc_4231_gives) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  EXPECT_EQ(hmac(counting, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(hmac(long_key, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(long_key,
                 "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
                 "to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Hmac, two_that_differ_anywhere_or_in_length_are_not_equal) {
  const std::vector<std::byte> one(16, std::byte{7});
  EXPECT_TRUE(equal_in_constant_time(one, std::vector<std::byte>(one)));
  EXPECT_FALSE(equal_in_constant_time(one, std::vector<std::byte>(15, std::byte{7})));
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::vector<std::byte> other = one;
    other[i] = std::byte{8};
    EXPECT_FALSE(equal_in_constant_time(one, other)) << i;
  }
}

}  // namespace
}  // namespace brant
