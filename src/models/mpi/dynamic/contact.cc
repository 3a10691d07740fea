#include "models/mpi/dynamic/contact.h"

#include "base/bytes.h"
#include "models/mpi/call_error.h"

namespace brant::mpi {

std::vector<std::byte> pack(std::span<const Contact> contacts) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(contacts.size()));
  for (const Contact& contact : contacts) {
    writer.number(contact.name);
    writer.text(contact.address);
  }
  return writer.bytes();
}

std::vector<Contact> unpack_contacts(std::span<const std::byte> packed) {
  ByteReader reader(packed);
  std::vector<Contact> contacts;
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) {
    Contact& contact = contacts.emplace_back();
    contact.name = reader.number<std::uint64_t>();
    contact.address = reader.text();
  }
  require(!reader.failed(), MPI_ERR_INTERN, "what the other group tells of its processes is damaged");
  return contacts;
}

}  // namespace brant::mpi
