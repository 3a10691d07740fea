#include "cli/doctor/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace brant::cli::doctor {
namespace {

namespace fs = std::filesystem;

/// The numbers of the sockets that this process has open.
std::set<std::string> own_sockets() {
  constexpr std::string_view kPrefix = "socket:[";
  std::set<std::string> numbers;
  std::error_code no_proc;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd", no_proc)) {
    std::error_code closed_meanwhile;
    const std::string target = fs::read_symlink(entry.path(), closed_meanwhile).string();
    if (target.starts_with(kPrefix)) numbers.insert(target.substr(kPrefix.size(), target.size() - kPrefix.size() - 1));
  }
  return numbers;
}

void add_listeners_in(const char* table, std::vector<std::string>& found) {
  const std::set<std::string> own = own_sockets();
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, number;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> number;
    if (state == "0A" && own.contains(number)) found.push_back(address_text(local));  // 0A: TCP_LISTEN
  }
}

std::optional<std::uint32_t> number_of(std::string_view hexadecimal) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(hexadecimal.data(), hexadecimal.data() + hexadecimal.size(), value, 16);
  if (error != std::errc() || end != hexadecimal.data() + hexadecimal.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> own_listeners() {
  std::vector<std::string> found;
  add_listeners_in("/proc/self/net/tcp", found);
  add_listeners_in("/proc/self/net/tcp6", found);
  return found;
}

std::string address_text(const std::string& hexadecimal) {
  constexpr std::size_t kWordDigits = 8;
  const std::size_t colon = hexadecimal.find(':');
  if (colon != kWordDigits && colon != 4 * kWordDigits) return {};
  std::array<std::uint32_t, 4> words{};  // each as it lies in memory
  for (std::size_t i = 0; i < colon / kWordDigits; ++i) {
    const auto word = number_of(std::string_view(hexadecimal).substr(i * kWordDigits, kWordDigits));
    if (!word) return {};
    words[i] = *word;
  }
  const auto port = number_of(std::string_view(hexadecimal).substr(colon + 1));
  if (!port) return {};
  const bool v4 = colon == kWordDigits;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(v4 ? AF_INET : AF_INET6, words.data(), text.data(), text.size()) == nullptr) return {};
  return fmt::format("{}{}{}:{}", v4 ? "" : "[", text.data(), v4 ? "" : "]", *port);
}

}  // namespace brant::cli::doctor
