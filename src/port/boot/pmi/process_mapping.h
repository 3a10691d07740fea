#pragma once

#include <string_view>
#include <vector>

namespace brant::port::pmi {

/// Which host each rank is on, by numbers of hosts, from the launcher's text: "(vector,(0,2,4))" is four ranks on host
/// 0 and four on host 1; blocks are repeated until all ranks have a host. Empty if the text is no such one.
[[nodiscard]] std::vector<int> hosts_of_ranks(std::string_view text, int size);

}  // namespace brant::port::pmi
