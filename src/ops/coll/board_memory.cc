#include "ops/coll/board_memory.h"

#include <utility>

#include "ops/coll/turn_board.h"

namespace brant::coll {

Result<MemoryFileRecord> BoardMemory::make(unsigned members) noexcept {
  Result<MappedFile> file = MappedFile::create("brant-team", TurnBoard::bytes_for(members));
  if (!file) return file.status();
  const Result<MemoryFileRecord> record = file->record();
  if (record) file_.emplace(std::move(*file));
  return record;
}

Status BoardMemory::map(const MemoryFileRecord& record, unsigned members) noexcept {
  Result<MappedFile> file = MappedFile::open(record);
  if (!file) return file.status();
  if (file->bytes().size() < TurnBoard::bytes_for(members)) return Status::invalid_argument;
  file_.emplace(std::move(*file));
  return Status::ok;
}

}  // namespace brant::coll
