#include "progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

namespace jacobi {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kPeriod = std::chrono::milliseconds(200);
constexpr std::int64_t kWidth = 40;

}  // namespace

ProgressBar::ProgressBar(std::int64_t total, bool shown)
    : total_(total), shown_(shown && ::isatty(STDERR_FILENO) == 1), begin_(Clock::now()), next_(begin_ + kPatience) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressBar::update(std::int64_t done) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kPeriod;
  drawn_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  const double left = std::chrono::duration<double>(now - begin_).count() * (1.0 - share) / share;
  const auto full = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  const std::string bar = std::string(full, '#') + std::string(static_cast<std::size_t>(kWidth) - full, '.');
  fmt::print(stderr, "\r[{}] {} of {}, {:.0f} s left \x1b[K", bar, done, total_, left);
  std::fflush(stderr);
}

}  // namespace jacobi
