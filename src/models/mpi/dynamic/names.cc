#include "models/mpi/dynamic/names.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "models/mpi/call_error.h"
#include "models/mpi/dynamic/meeting_folder.h"
#include "models/mpi/dynamic/ports.h"

namespace brant::mpi {

namespace {

constexpr std::size_t kNameMax = 120;

/// The name of the file: any text may name a service.
std::string file_of(const char* name) {
  require(name != nullptr && *name != 0, MPI_ERR_ARG, "the name of the service is null or empty");
  const std::string_view text(name);
  require(text.size() <= kNameMax, MPI_ERR_ARG, "the name of a service has {} characters: {} are the most", text.size(),
          kNameMax);
  std::string file = "n";
  for (const char each : text) file += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return file;
}

/// A port of brant that is open, or any other text.
bool is_alive(const std::string& port) {
  return port.rfind("brant-port:", 0) != 0 ||
         !error_in([&] { static_cast<void>(address_of_port(PortName::parse(port))); });
}

}  // namespace

void publish_service(const char* name, const std::string& port) {
  const MeetingFolder folder;
  remove_stale_files(folder);
  const std::string file = file_of(name);
  if (folder.write(file, port)) return;
  const std::optional<std::string> known = folder.read(file);
  require(!known || !is_alive(*known), MPI_ERR_SERVICE, "the service '{}' is published already, with the port {}", name,
          known.value_or(""));
  static_cast<void>(folder.remove(file));
  require(folder.write(file, port), MPI_ERR_SERVICE, "another process has just published the service '{}'", name);
}

void unpublish_service(const char* name, const std::string& port) {
  const MeetingFolder folder;
  const std::string file = file_of(name);
  const std::optional<std::string> known = folder.read(file);
  require(known.has_value(), MPI_ERR_SERVICE, "nobody has published the service '{}'", name);
  require(*known == port, MPI_ERR_SERVICE, "the service '{}' was published with another port, {}", name, *known);
  require(folder.remove(file), MPI_ERR_SERVICE, "the service '{}' was unpublished meanwhile", name);
}

std::string look_up_service(const char* name) {
  const MeetingFolder folder;
  remove_stale_files(folder);
  const std::string file = file_of(name);
  const std::optional<std::string> port = folder.read(file);
  require(port.has_value(), MPI_ERR_NAME, "nobody has published the service '{}'", name);
  if (is_alive(*port)) return *port;
  static_cast<void>(folder.remove(file));
  fail(MPI_ERR_NAME, "the process that has published the service '{}' has ended, or has closed its port", name);
}

}  // namespace brant::mpi
