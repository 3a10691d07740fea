#include "models/mpi/dynamic/meeting.h"

#include <utility>

#include "base/bytes.h"
#include "base/random_bytes.h"
#include "models/mpi/call_error.h"
#include "models/mpi/communicators.h"
#include "models/mpi/dynamic/connections.h"
#include "models/mpi/dynamic/talk.h"
#include "models/mpi/process.h"

namespace brant::mpi {

namespace {

/// What the root has heard of the other group, for its own.
struct Heard {
  int error = kSuccess;
  std::string text{};  ///< Of the error.
  std::uint64_t label = 0;
  std::vector<Contact> others{};
};

std::vector<std::byte> pack(const Heard& heard) {
  ByteWriter writer;
  writer.number(heard.error);
  writer.text(heard.text);
  writer.number(heard.label);
  writer.run(mpi::pack(heard.others));
  return writer.bytes();
}

Heard unpack_heard(std::span<const std::byte> packed) {
  ByteReader reader(packed);
  Heard heard;
  heard.error = reader.number<int>();
  heard.text = reader.text();
  heard.label = reader.number<std::uint64_t>();
  heard.others = unpack_contacts(reader.run());
  return heard;
}

std::uint64_t random_label() {
  std::uint64_t label = 0;
  fill_with_random_bytes(std::as_writable_bytes(std::span(&label, 1)), "a connection of MPI");
  return label | 1;
}

/// The two roots tell each other of their groups; the label is the sum of what each has chosen.
void tell_of_groups(Heard& heard, Talk& talk, std::span<const Contact> own) {
  const Heard said{.label = random_label(), .others = {own.begin(), own.end()}};
  Heard got = unpack_heard(talk.swap(pack(said)));
  heard.label = (said.label ^ got.label) | 1;
  heard.others = std::move(got.others);
}

/// The root does its part; the others hear of it, also where it fails.
template <typename Body>
Heard hear(Communicator& local, int root, const Body& body) {
  Heard heard;
  if (local.rank == root) {
    const auto error = error_in([&] { body(heard); });
    if (error) heard = {.error = error->error_class(), .text = error->what()};
  }
  heard = unpack_heard(spread_bytes(local, root, pack(heard)));
  require(heard.error == kSuccess, heard.error, "{}", heard.text);
  return heard;
}

}  // namespace

std::vector<Contact> gather_contacts(Communicator& local) {
  const Contact own = process()->connections().own_contact();
  std::vector<Contact> contacts;
  for (const auto& packed : gather_bytes(local, mpi::pack(std::span(&own, 1))))
    contacts.push_back(unpack_contacts(packed).at(0));
  return contacts;
}

std::unique_ptr<Communicator> make_between(Communicator& local, std::span<const Contact> others, std::uint64_t label,
                                           bool calls) {
  auto remote = std::make_shared<Members>(process()->connections().meet(others, calls, label));
  for (const RankId id : local.members->ids()) {
    require(remote->find(id) == MPI_UNDEFINED, MPI_ERR_GROUP,
            "a process is in both groups: it cannot connect with itself");
  }
  const Making making{Communicator::kMeeting, static_cast<std::int32_t>(label & kTagMax)};
  return make_communicator(current_rank(), local.members, std::move(remote), making, label);
}

std::unique_ptr<Communicator> accept_group(Communicator& local, int root, const Admit& admit) {
  const std::vector<Contact> own = gather_contacts(local);
  const Heard heard = hear(local, root, [&](Heard& news) {
    const Ports::Guest guest = admit();
    Talk talk(current_rank(), RankId{guest.process.value}, guest.tag);
    tell_of_groups(news, talk, own);
  });
  return make_between(local, heard.others, heard.label, false);
}

std::unique_ptr<Communicator> connect_group(Communicator& local, int root, const Destination& to) {
  const std::vector<Contact> own = gather_contacts(local);
  const Heard heard = hear(local, root, [&](Heard& news) {
    const Where where = to();
    const PortName name = PortName::parse(where.port);
    const std::string address = address_of_port(name);
    Connections& connections = process()->connections();
    RankId other;
    if (const auto error = error_in([&] { other = connections.call(address, where.limit); })) {
      const bool gone = error->error_class() == MPI_ERR_PROC_ABORTED || error->error_class() == MPI_ERR_OTHER;
      fail(gone ? MPI_ERR_PORT : error->error_class(), "the port {} leads nowhere: {}", where.port, error->what());
    }
    const std::int32_t tag = connections.ports().knock(Process::process_of(other), name, where.limit);
    Talk talk(current_rank(), other, tag);
    tell_of_groups(news, talk, own);
  });
  return make_between(local, heard.others, heard.label, true);
}

std::unique_ptr<Communicator> introduce_group(Communicator& local, int leader, const std::function<Talk()>& talk) {
  const std::vector<Contact> own = gather_contacts(local);
  const Heard heard = hear(local, leader, [&](Heard& news) {
    Talk leaders = talk();
    tell_of_groups(news, leaders, own);
  });
  return make_between(local, heard.others, heard.label, own.front().name < heard.others.front().name);
}

}  // namespace brant::mpi
