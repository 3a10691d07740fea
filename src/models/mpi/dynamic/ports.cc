#include "models/mpi/dynamic/ports.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "base/host_name.h"
#include "base/process_mark.h"
#include "base/random_bytes.h"
#include "core/join_address.h"
#include "core/observe/statistics_folder.h"
#include "models/mpi/dynamic/meeting_folder.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

constexpr std::string_view kScheme = "brant-port:";
constexpr auto kLookAtPort = std::chrono::milliseconds(20);

std::int32_t random_tag() {
  std::uint32_t number = 0;
  fill_with_random_bytes(std::as_writable_bytes(std::span(&number, 1)), "a connection of MPI");
  return static_cast<std::int32_t>(number >> 1);
}

/// Of the file of a port: the process that has opened it has ended, as far as can be told here.
bool has_ended(std::string_view file, const ProcessMark& own) {
  const auto owner = file.starts_with('p') ? owner_of_statistics_file(file.substr(1)) : std::nullopt;
  return owner && owner->pid_namespace == own.pid_namespace && check_process(*owner) == Status::peer_lost;
}

/// A file of the folder says nothing of use any more: a port, or the name of a service with its port in it.
bool is_stale(const MeetingFolder& folder, const std::string& file, const ProcessMark& own) {
  if (!file.starts_with('n')) return has_ended(file, own);
  const std::string port = folder.read(file).value_or("");
  return port.starts_with(kScheme) && has_ended(PortName::parse(port).file, own);
}

}  // namespace

void remove_stale_files(const MeetingFolder& folder) noexcept {
  static bool done = false;
  if (std::exchange(done, true) || !folder.is_of_host()) return;
  try {
    const Result<ProcessMark> own = own_process_mark();
    std::error_code fault;
    for (std::filesystem::directory_iterator entry(folder.path(), fault), end; own.ok() && !fault && entry != end;
         entry.increment(fault)) {
      const std::string file = entry->path().filename().string();
      if (is_stale(folder, file, *own)) static_cast<void>(folder.remove(file));
    }
  } catch (const std::exception&) {
    return;  // others will come
  }
}

PortName PortName::parse(std::string_view text) {
  const std::size_t behind_host = text.starts_with(kScheme) ? text.find(':', kScheme.size()) : text.npos;
  require(behind_host != text.npos && text.size() < MPI_MAX_PORT_NAME, MPI_ERR_PORT,
          "'{}' is no port of brant: those of MPI_Open_port begin with {}", text.substr(0, 80), kScheme);
  PortName name{std::string(text.substr(kScheme.size(), behind_host - kScheme.size())),
                std::string(text.substr(behind_host + 1))};
  require(name.file.starts_with('p') && name.file.find('/') == std::string::npos, MPI_ERR_PORT,
          "'{}' is no port of brant: its last part names no file", text);
  return name;
}

std::uint64_t PortName::number() const noexcept {
  return checksum_of(std::as_bytes(std::span(file.data(), file.size())));
}

std::string address_of_port(const PortName& name) {
  const MeetingFolder folder;
  const std::optional<std::string> address = folder.read(name.file);
  const bool elsewhere = folder.is_of_host() && name.host != host_name();
  require(
      address.has_value(), MPI_ERR_PORT, "the port {} is not open, or not any more: there is no {}/{}{}", name.text(),
      folder.path(), name.file,
      elsewhere ? ". It is of another host: BRANT_MPI_PORTS names a folder that hosts share, for both programs" : "");
  const std::optional<ProcessMark> owner = owner_of_statistics_file(std::string_view(name.file).substr(1));
  const bool told_here = owner && name.host == host_name();
  if (told_here && check_process(*owner) == Status::peer_lost) {
    static_cast<void>(folder.remove(name.file));
    fail(MPI_ERR_PORT, "the process that has opened the port {} has ended", name.text());
  }
  return *address;
}

Ports::~Ports() {
  try {
    const MeetingFolder folder;
    for (const auto& [number, port] : ports_) static_cast<void>(folder.remove(port.name.file));
  } catch (const std::exception&) {
    return;  // whoever reads the file sees that this process has ended
  }
}

std::string Ports::open() {
  const std::string address = process_.runtime().address();
  const MeetingFolder folder;
  const Result<ProcessMark> own = own_process_mark();
  require(own.ok(), MPI_ERR_OTHER, "a port needs /proc, which is not there");
  Port port{{host_name(), "p" + statistics_file_name(*own, opened_++)}, {}};
  remove_stale_files(folder);
  require(folder.write(port.name.file, address), MPI_ERR_OTHER, "the file {} of a port is in use", port.name.file);
  std::string text = port.name.text();
  require(text.size() < MPI_MAX_PORT_NAME, MPI_ERR_OTHER, "the name of this host is too long for that of a port");
  const std::uint64_t number = port.name.number();
  ports_.emplace(number, std::move(port));
  return text;
}

void Ports::close(std::string_view text) {
  const PortName name = PortName::parse(text);
  const auto found = ports_.find(name.number());
  require(found != ports_.end(), MPI_ERR_PORT, "this process has not opened the port {}", text);
  static_cast<void>(MeetingFolder().remove(name.file));
  for (const Guest& guest : found->second.guests) answer(guest, false);
  ports_.erase(found);
}

bool Ports::wait(Limit limit, const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + limit.value_or(std::chrono::hours(24 * 365));
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    static_cast<void>(process_.runtime().worker().wait_until([&]() noexcept { return done(); }, kLookAtPort));
  }
  return true;
}

std::optional<Ports::Guest> Ports::admit(std::string_view text, Limit limit, const std::function<bool()>& goes_on) {
  const std::uint64_t number = PortName::parse(text).number();
  require(ports_.contains(number), MPI_ERR_PORT,
          "this process has not opened the port {}: the root of MPI_Comm_accept does, by MPI_Open_port", text);
  // Another thread may close the port meanwhile.
  const auto guests = [&] { return ports_.contains(number) ? &ports_[number].guests : nullptr; };
  const auto come = [&] { return guests() == nullptr || !guests()->empty(); };
  awaited_ = "for somebody who connects to the port " + std::string(text);
  static_cast<void>(wait(limit, [&] { return come() || !goes_on(); }));
  awaited_.clear();
  require(guests() != nullptr, MPI_ERR_PORT, "the port {} was closed while MPI_Comm_accept waited at it", text);
  if (guests()->empty()) return std::nullopt;
  const Guest guest = guests()->front();
  guests()->pop_front();
  answer(guest, true);
  return guest;
}

std::int32_t Ports::knock(Rank process, const PortName& name, Limit limit) {
  require(process.value != process_.engine().job().rank, MPI_ERR_PORT,
          "this process has opened the port {} itself, and cannot wait for itself", name.text());
  std::int32_t tag = random_tag();
  while (asked_.contains(tag)) tag = random_tag();
  asked_[tag] = std::nullopt;
  const DoorWord word{.port = name.number(), .tag = tag};
  Status status = Status::limit_reached;
  static_cast<void>(wait(std::chrono::seconds(10), [&] {
    if (status == Status::limit_reached) status = process_.transport().tell(process, Word::knock, word);
    return status != Status::limit_reached;
  }));
  awaited_ = "until the program that has opened it accepts at the port " + name.text();
  const auto is_lost = [&] { return process_.transport().is_lost(RankId{process.value}); };
  const bool in_time = status != Status::ok || wait(limit, [&] { return asked_[tag].has_value() || is_lost(); });
  awaited_.clear();
  const bool admitted = asked_[tag].value_or(false);
  const bool refused = asked_[tag].has_value() && !admitted;
  asked_.erase(tag);
  require(!refused, MPI_ERR_PORT, "the port {} is not open, or not any more", name.text());
  require(in_time, MPI_ERR_PORT, "nobody has accepted a connection at the port {} in time", name.text());
  require(admitted, MPI_ERR_PORT, "the process that has opened the port {} has ended", name.text());
  return tag;
}

void Ports::answer(const Guest& guest, bool opened) noexcept {
  static_cast<void>(
      process_.transport().tell(guest.process, Word::answered, {.tag = guest.tag, .opened = opened ? 1u : 0u}));
}

void Ports::hear(Rank from, Word word, const DoorWord& body) {
  if (word == Word::answered) {
    if (const auto asked = asked_.find(body.tag); asked != asked_.end()) asked->second = body.opened != 0;
    return;
  }
  const auto port = ports_.find(body.port);
  if (port == ports_.end()) return answer({from, body.tag}, false);
  port->second.guests.push_back({from, body.tag});
}

void Ports::forget(Rank process) noexcept {
  for (auto& [number, port] : ports_)
    std::erase_if(port.guests, [process](const Guest& guest) { return guest.process == process; });
}

}  // namespace brant::mpi
