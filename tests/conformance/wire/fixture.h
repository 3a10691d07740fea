#pragma once

#include <gtest/gtest.h>

#include "brant/base/status.h"
#include "conformance/wire/subject.h"

namespace brant::port::test {

/// Opens the subject before each test; skips where this machine cannot.
class WireTest : public testing::TestWithParam<WireSubject> {
 protected:
  void SetUp() override {
    try {
      pair = GetParam().open();
    } catch (const Error& error) {
      if (error.status() != Status::not_found) throw;
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override {
    // In the order in which processes end: one closes while the other still runs.
    pair.left.reset();
    if (pair.right) pair.right->progress();
  }

  [[nodiscard]] const WireCapabilities& caps() const { return pair.left->capabilities(); }

  void send(Tracked& op, std::uint64_t tag, ConstBuffer source) {
    op.posted = pair.left->tag_send(pair.to_right, tag, source, op);
  }
  void recv(Tracked& op, std::uint64_t tag, Buffer landing, std::uint64_t mask = kWholeTag) {
    op.posted = pair.right->tag_recv(tag, mask, landing, op);
  }
  /// Both done, each reported at most once.
  [[nodiscard]] bool finish(Tracked& a, Tracked& b) {
    return pump(pair, [&] { return a.done() && b.done(); }) && a.completions <= 1 && b.completions <= 1;
  }

  WirePair pair;
};

inline std::string name_of(const testing::TestParamInfo<WireSubject>& info) { return info.param.name; }

}  // namespace brant::port::test
