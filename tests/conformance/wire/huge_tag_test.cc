// Messages whose size does not fit into 32 bits.
#include <chrono>

#include "conformance/wire/fixture.h"
#include "support/available_memory.h"

namespace brant::port::test {
namespace {

using HugeTag = WireTest;

TEST_P(HugeTag, more_than_4_gib_in_one_message) {
  const std::size_t bytes = (std::size_t{4} << 30) + 4097;
  if (brant::test::available_memory() < 3 * bytes)
    GTEST_SKIP() << "needs " << (3 * bytes >> 30) << " GB of free memory";
  std::vector<std::byte> out(bytes), in(bytes);
  for (std::size_t i = 0; i < bytes; i += 4096) out[i] = static_cast<std::byte>(i >> 12 ^ i >> 24);
  out.back() = std::byte{0x77};
  Tracked sent, received;
  recv(received, 1, host(in));
  send(sent, 1, host(out));
  ASSERT_TRUE(pump(pair, [&] { return sent.done() && received.done(); }, std::chrono::seconds(100)));
  EXPECT_EQ(received.bytes, bytes);
  EXPECT_TRUE(in == out);
}

/// The loopback's orders do not depend on sizes: once is enough.
std::vector<WireSubject> adapters() {
  std::vector<WireSubject> all = subjects();
  std::erase_if(all, [](const WireSubject& each) { return each.name != "loopback" && each.name != "ucx"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Wire, HugeTag, testing::ValuesIn(adapters()), name_of);

}  // namespace
}  // namespace brant::port::test
