#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "port/boot/pmi/process_mapping.h"
#include "port/boot/pmi/wire.h"

namespace brant::port::pmi {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ProcessMapping, blocks_say_which_host_each_rank_is_on) {
  EXPECT_THAT(hosts_of_ranks("(vector,(0,1,4))", 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(hosts_of_ranks("(vector,(0,2,2))", 4), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(hosts_of_ranks("(vector,(0,2,1),(0,1,2))", 4), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(hosts_of_ranks("(vector,(0,2,1))", 5), ElementsAre(0, 1, 0, 1, 0)) << "they are repeated";
}

TEST(ProcessMapping, what_is_none_is_empty) {
  for (const char* text : {"", "(vector)", "(vector,", "(vector,(0,2))", "(vector,(0,0,1))", "(vector,(0,1,0))",
                           "(vector,(0,1,1)", "(matrix,(0,1,1))", "(vector,(x,1,1))", "(vector,(-1,1,1))"})
    EXPECT_THAT(hosts_of_ranks(text, 2), IsEmpty()) << text;
}

TEST(PmiWords, values_may_have_blanks_and_equals_signs) {
  const Words words = words_of("cmd=get_result rc=0 msg=all is well value=a=b");
  EXPECT_EQ(words.at("cmd"), "get_result");
  EXPECT_EQ(words.at("msg"), "all is well");
  EXPECT_EQ(words.at("value"), "a=b");
}

/// A wire, and the launcher's end of it.
class PmiWire : public testing::Test {
 protected:
  PmiWire() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds_.data()), 0); }
  ~PmiWire() override {
    for (const int fd : fds_) ::close(fd);
  }
  void say(std::string_view text) {
    EXPECT_EQ(::write(fds_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void leave() {
    ::close(fds_[1]);
    fds_[1] = -1;
  }
  static Wire::Clock::time_point soon() { return Wire::Clock::now() + 50ms; }

  std::array<int, 2> fds_{};
  Words words_;
};

TEST_F(PmiWire, an_answer_may_come_in_parts_or_with_the_next_one) {
  Wire wire(fds_[0]);
  say("cmd=put_result rc=0\ncmd=barr");
  EXPECT_EQ(wire.receive("put_result", words_, soon()), Status::ok);
  EXPECT_EQ(wire.receive("barrier_out", words_, soon()), Status::timed_out);
  say("ier_out\n");
  EXPECT_EQ(wire.receive("barrier_out", words_, soon()), Status::ok) << "a fence is waited for again";
}

TEST_F(PmiWire, a_refusal_is_an_error_that_says_why_and_leaves_the_wire_usable) {
  Wire wire(fds_[0]);
  say("cmd=get_result rc=-1 msg=key not found\ncmd=get_result rc=0 value=7\n");
  EXPECT_EQ(wire.ask("cmd=get key=a", "get_result", words_, soon()), Status::io_error);
  EXPECT_THAT(wire.error(), HasSubstr("'cmd=get key=a': key not found"));
  EXPECT_EQ(wire.ask("cmd=get key=b", "get_result", words_, soon()), Status::ok);
  EXPECT_EQ(words_["value"], "7");
}

TEST_F(PmiWire, no_answer_to_a_command_ends_in_time_and_for_good) {
  Wire wire(fds_[0]);
  const auto start = Wire::Clock::now();
  EXPECT_EQ(wire.ask("cmd=get_maxes", "maxes", words_, soon()), Status::timed_out);
  EXPECT_LT(Wire::Clock::now() - start, 5s);
  say("cmd=maxes\n");
  EXPECT_EQ(wire.ask("cmd=get_my_kvsname", "my_kvsname", words_, soon()), Status::timed_out);
}

TEST_F(PmiWire, an_answer_of_another_kind_is_refused) {
  Wire wire(fds_[0]);
  say("cmd=surprise\n");
  EXPECT_EQ(wire.receive("barrier_out", words_, soon()), Status::io_error);
  EXPECT_THAT(wire.error(), HasSubstr("cmd=surprise"));
}

TEST_F(PmiWire, a_launcher_that_is_gone_is_a_lost_peer) {
  Wire wire(fds_[0]);
  leave();
  EXPECT_EQ(wire.ask("cmd=init", "response_to_init", words_, soon()), Status::peer_lost);
  EXPECT_EQ(wire.receive("barrier_out", words_, soon()), Status::peer_lost);
}

}  // namespace
}  // namespace brant::port::pmi
