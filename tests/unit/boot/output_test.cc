#include "cli/run/output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include <gtest/gtest.h>

namespace brant::run {
namespace {

/// A file that collects what a sink writes.
class Capture {
 public:
  Capture() : file_(::memfd_create("output", 0)), sink_(file_.get()) {}

  OutputSink& sink() { return sink_; }
  std::string text() {
    while (!sink_.empty()) sink_.on_writable();
    std::string result(static_cast<std::size_t>(::lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file_.get(), result.data(), result.size(), 0), static_cast<ssize_t>(result.size()));
    return result;
  }

 private:
  UniqueFd file_;
  OutputSink sink_;
};

TEST(LineSplitter, puts_the_prefix_before_every_line_however_it_arrives) {
  const std::string text = "one\n\ntwo\nthree";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    Capture capture;
    LineSplitter splitter("[7] ");
    for (std::size_t at = 0; at < text.size(); at += piece)
      splitter.feed(std::string_view(text).substr(at, piece), capture.sink());
    EXPECT_EQ(capture.text(), "[7] one\n[7] \n[7] two\n") << "an unfinished line waits";
    splitter.finish(capture.sink());
    splitter.finish(capture.sink());
    EXPECT_EQ(capture.text(), "[7] one\n[7] \n[7] two\n[7] three\n");
  }
}

TEST(LineSplitter, a_bar_that_is_drawn_goes_on_at_once_and_the_next_line_wipes_it) {
  Capture capture;
  LineSplitter draws("[0] ", true);
  LineSplitter other("[1] ");
  draws.feed("\r[#...] 1 of 4", capture.sink());
  EXPECT_EQ(capture.text(), "\r[#...] 1 of 4");
  other.feed("line\n", capture.sink());
  draws.feed("\r[##..] 2 of 4", capture.sink());
  EXPECT_EQ(capture.text(), "\r[#...] 1 of 4\r\x1b[K[1] line\n\r[##..] 2 of 4");
  Capture plain;
  LineSplitter waits("[0] ");
  waits.feed("\r[#...] 1 of 4", plain.sink());
  EXPECT_EQ(plain.text(), "") << "in a file it would be rubbish";
}

TEST(LineSplitter, lines_of_two_ranks_never_mix) {
  Capture capture;
  LineSplitter left("[0] ");
  LineSplitter right("[1] ");
  left.feed("aa", capture.sink());
  right.feed("bb", capture.sink());
  left.feed("AA\n", capture.sink());
  right.feed("BB\n", capture.sink());
  EXPECT_EQ(capture.text(), "[0] aaAA\n[1] bbBB\n");
}

TEST(LineSplitter, any_bytes_are_fine) {
  Capture capture;
  LineSplitter splitter("");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  splitter.feed(bytes + "\n", capture.sink());
  EXPECT_EQ(capture.text(), bytes + "\n");
}

TEST(LineSplitter, a_very_long_line_goes_on_in_pieces_and_loses_nothing) {
  Capture capture;
  LineSplitter splitter("");
  const std::size_t length = 3 * LineSplitter::kMaxLine + 17;
  const std::string line(length, 'x');
  for (std::size_t at = 0; at < length; at += 1000)
    splitter.feed(std::string_view(line).substr(at, 1000), capture.sink());
  splitter.feed("\nnext\n", capture.sink());
  std::string text = capture.text();
  EXPECT_TRUE(text.ends_with("x\nnext\n"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), 'x')), length + 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST(LineSplitter, a_line_of_exactly_the_bound_is_one_line) {
  Capture capture;
  LineSplitter splitter("");
  splitter.feed(std::string(LineSplitter::kMaxLine - 1, 'x') + "\ny\n", capture.sink());
  const std::string text = capture.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(OutputSink, is_full_until_the_reader_catches_up) {
  Capture capture;
  EXPECT_TRUE(capture.sink().empty());
  while (!capture.sink().full()) capture.sink().append(std::string(1000, 'x'));
  EXPECT_FALSE(capture.sink().empty());
  EXPECT_GE(capture.text().size(), std::size_t{1} << 20);
  EXPECT_FALSE(capture.sink().full());
  EXPECT_TRUE(capture.sink().empty());
}

TEST(OutputSink, a_reader_that_left_breaks_it_and_what_comes_later_is_dropped) {
  ::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UniqueFd write_end(ends[1]);
  ::close(ends[0]);
  OutputSink sink(write_end.get());
  sink.append("text");
  sink.on_writable();
  EXPECT_TRUE(sink.broken());
  EXPECT_TRUE(sink.empty());
  sink.append("more");
  EXPECT_TRUE(sink.empty());
}

TEST(RankStream, reads_to_the_end_and_finishes_the_last_line) {
  Capture capture;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  UniqueFd write_end(ends[1]);
  RankStream stream(UniqueFd(ends[0]), "[0] ", capture.sink());
  EXPECT_TRUE(stream.wants_input());
  ASSERT_EQ(::write(write_end.get(), "a\nb", 3), 3);
  stream.on_readable();
  EXPECT_EQ(capture.text(), "[0] a\n");
  stream.drain();
  EXPECT_TRUE(stream.open()) << "nothing there is not the end";
  write_end.reset();
  stream.drain();
  EXPECT_FALSE(stream.open());
  EXPECT_EQ(capture.text(), "[0] a\n[0] b\n");
}

TEST(RankStream, wants_nothing_while_the_sink_is_full) {
  Capture capture;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  const UniqueFd write_end(ends[1]);
  const RankStream stream(UniqueFd(ends[0]), "", capture.sink());
  while (!capture.sink().full()) capture.sink().append(std::string(1000, 'x'));
  EXPECT_FALSE(stream.wants_input());
  static_cast<void>(capture.text());
  EXPECT_TRUE(stream.wants_input());
}

}  // namespace
}  // namespace brant::run
