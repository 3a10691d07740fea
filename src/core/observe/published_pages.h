#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace brant {

/// Pages by which a layer above the engine lets other processes of this user see what it does, while it does it: a file
/// beside the statistics page of the process, made with the first of them. What lies in a page is written where it is:
/// to publish it costs nothing. The first eight bytes of each say what it holds, and are written last; zero: nothing.
/// Belongs to the worker's thread.
class PublishedPages {
 public:
  static constexpr std::size_t kPagesMax = 64;

  /// `wanted`: false publishes nothing.
  explicit PublishedPages(bool wanted) noexcept : wanted_(wanted) {}
  PublishedPages(const PublishedPages&) = delete;
  PublishedPages& operator=(const PublishedPages&) = delete;
  ~PublishedPages();

  /// A page of kPageFileBytes, all zero. Null: nothing is published, or that many pages are, or it did not work, which
  /// the log says (level info). Microseconds.
  [[nodiscard]] std::byte* add() noexcept;
  /// It is of no use any more, and cleared: the next one who asks gets it. Null is none.
  void drop(std::byte* page) noexcept;

 private:
  std::string publish();
  [[nodiscard]] std::byte* map_next() const noexcept;

  bool wanted_;
  std::string file_;                 ///< Empty: none was asked for.
  std::vector<std::byte*> pages_;    ///< By their place in the file.
  std::vector<std::byte*> dropped_;  ///< Those of them that nobody has.
  int owner_pid_ = 0;                ///< A forked child must not touch its parent's.
};

}  // namespace brant
