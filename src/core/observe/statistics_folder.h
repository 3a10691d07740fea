#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_mark.h"

/// Where the statistics pages of this user's processes lie, and how their files are called. Set-up only.
namespace brant {

/// Every folder that a process of this user may have chosen, best first: in $XDG_RUNTIME_DIR, /run/user/UID, /dev/shm,
/// $TMPDIR and /tmp. They need not exist. Without repetitions.
std::vector<std::string> statistics_folders();

/// Empty if the folder is there, is no link, and only this user can enter it; else why it cannot be trusted.
std::string why_untrusted(const std::string& folder);

/// Makes the folder, for this user alone, unless it is there. Empty if it can be trusted then; else the reason.
std::string make_statistics_folder(const std::string& folder);

/// "PID-START-NAMESPACE-NUMBER": who wrote the page can be told without reading it. `number` tells the pages of one
/// process apart.
std::string statistics_file_name(const ProcessMark& owner, unsigned number);

/// The same of a file of PublishedPages: that name, and ".pages".
std::string published_pages_name(const ProcessMark& owner, unsigned number);
bool is_published_pages(std::string_view name) noexcept;

/// The writer of a page or of its draft (which has a dot in front), or of such a file; nothing for
/// other names.
std::optional<ProcessMark> owner_of_statistics_file(std::string_view name);

/// Removes the pages of processes that are gone: those whose pid is no more, and of other pid namespaces, where pids
/// say nothing, those that no process holds a lock on. Looks at `kStatisticsFilesMax` files at most. Returns how many
/// it removed. Never throws.
std::size_t remove_leftovers(const std::string& folder) noexcept;

inline constexpr std::size_t kStatisticsFilesMax = 4096;

}  // namespace brant
