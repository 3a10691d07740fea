#pragma once

#include <cstddef>
#include <string>

namespace brant {

inline constexpr std::size_t kPageFileBytes = 4096;

/// A new file of one page, mapped, which nobody finds until it is shown. It is locked: the mapping keeps the file open,
/// and with it the lock, until the process ends, so those of other pid namespaces know that the process lives. On a
/// file system without locks nobody can tell, and the file stays.
struct DraftPage {
  void* memory = nullptr;
  std::string draft;
  std::string file;  ///< As it will be called.
};

/// Empty, or why there is none in this folder, in words. Its memory is there: a full file system fails here.
std::string make_draft_page(const std::string& folder, const std::string& name, DraftPage& page);
/// Gives it its name. Empty, or why that did not work; then it is gone.
std::string show_draft_page(const DraftPage& page);

}  // namespace brant
