#include "core/held_messages.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "port/wire/loopback/loopback.h"

namespace brant {
namespace {

/// A wire that sends to itself.
class HeldMessagesTest : public testing::Test {
 protected:
  void send(unsigned id, const std::string& text) {
    port::WireOp op;
    op.on_complete = [](port::WireOp&) noexcept {};
    const ConstBuffer payload{text.data(), text.size(), MemoryKind::host};
    const Status status = wire_->am_send(self_, id, std::as_bytes(std::span(&id, 1)), payload, op);
    ASSERT_TRUE(status == Status::ok || status == Status::in_progress);
    while (wire_->progress() + wire_->deliver(16) != 0) {
    }
  }
  static void hear(void* heard, port::AmMessage& message) noexcept {
    unsigned id = 0;
    ASSERT_EQ(message.header.size(), sizeof(id));
    std::memcpy(&id, message.header.data(), sizeof(id));
    static_cast<std::vector<std::string>*>(heard)->push_back(
        std::to_string(id) + std::string(reinterpret_cast<const char*>(message.data), message.bytes));
  }

  std::unique_ptr<port::Wire> wire_ = port::open_loopback_wire();
  port::WireEndpoint* self_ = *wire_->connect(wire_->address());
  HeldMessages messages_{*wire_};
  std::vector<std::string> heard_;
};

TEST_F(HeldMessagesTest, are_handed_over_in_order_to_whoever_claims_them) {
  send(3, "first");
  send(4, "of another");
  send(3, "second");
  messages_.claim(3, &HeldMessagesTest::hear, &heard_);
  EXPECT_EQ(heard_, (std::vector<std::string>{"3first", "3second"}));
  send(3, "third");
  EXPECT_EQ(heard_.back(), "3third") << "what comes later goes to the claimant itself";
  messages_.claim(4, &HeldMessagesTest::hear, &heard_);
  EXPECT_EQ(heard_.back(), "4of another");
}

TEST_F(HeldMessagesTest, are_bounded) {
  for (std::size_t sent = 0; sent < HeldMessages::kHeldMax + 1; ++sent) send(3, "");
  messages_.claim(3, &HeldMessagesTest::hear, &heard_);
  EXPECT_EQ(heard_.size(), HeldMessages::kHeldMax);
}

TEST_F(HeldMessagesTest, drop_what_waits_at_its_sender) {
  send(3, std::string(wire_->capabilities().am_eager_bytes_max + 1, 'x'));
  send(3, "short");
  messages_.claim(3, &HeldMessagesTest::hear, &heard_);
  EXPECT_EQ(heard_, std::vector<std::string>{"3short"});
}

}  // namespace
}  // namespace brant
