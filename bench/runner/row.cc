#include "bench/runner/row.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"

namespace brant::bench {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

double Row::messages() const noexcept { return static_cast<double>(window) * (kind == Kind::bidirectional ? 2 : 1); }

double Row::gb_s() const noexcept { return rate() * static_cast<double>(bytes) / 1e3; }

double Row::rate() const noexcept { return us.p50 > 0 ? messages() / us.p50 : 0; }

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json to_json(const Summary& us) {
  return {{"min", rounded(us.min)}, {"p50", rounded(us.p50)}, {"p99", rounded(us.p99)}};
}

void add_machine(Json& row, const std::string& peer, const Machine& machine) {
  row["peer"] = text_or_null(peer);
  row["brant"] = machine.brant;
  row["ucx"] = text_or_null(machine.ucx);
  row["cuda"] = text_or_null(machine.cuda);
  row["gpu"] = text_or_null(machine.gpu);
  row["cpu"] = machine.cpu;
  row["host"] = machine.host;
}

std::string to_json(const Row& row, const Machine& machine) {
  Json json;
  json["bench"] = kind_name(row.kind);
  json["model"] = model_name(row.model);
  json["memory"] = memory_kind_name(row.memory);
  json["alloc"] = alloc_name(row.alloc);
  json["trigger"] = trigger_name(row.trigger);
  json["path"] = row.path;
  json["bytes"] = row.bytes;
  json["window"] = row.window;
  json["ranks"] = row.ranks;
  json["n"] = row.us.n;
  json["us"] = to_json(row.us);
  json["gb_s"] = rounded(row.gb_s());
  if (row.kind != Kind::latency) json["m_s"] = rounded(row.rate());
  add_machine(json, row.peer, machine);
  if (!row.peer_version.empty()) json["peer_version"] = row.peer_version;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RowFile::RowFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw Error(Status::io_error, fmt::format("--json {}: {}", path, std::strerror(errno)));
}

RowFile::~RowFile() {
  if (fd_ >= 0) ::close(fd_);
}

void RowFile::append(const std::string& line) {
  if (fd_ < 0) return;
  const std::string whole = line + "\n";
  if (::write(fd_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    throw Error(Status::io_error,
                fmt::format("--json {}: a row could not be written: {}", path_, std::strerror(errno)));
  }
}

}  // namespace brant::bench
