#include "models/mpi/files/file_view.h"

#include <utility>

#include "models/mpi/call_error.h"

namespace brant::mpi {

namespace {

void require_committed(const Datatype& type, const char* what) {
  require(type.committed(), MPI_ERR_TYPE, "the {} {} is not committed: call MPI_Type_commit first", what, type.name());
}

}  // namespace

FileView::FileView()
    : FileView(0, *find_datatype(MPI_BYTE), *find_datatype(MPI_BYTE), standard_representation("native")) {}

FileView::FileView(MPI_Offset displacement, Datatype& etype, Datatype& filetype, DataRepresentationRef representation)
    : displacement_(displacement), etype_(&etype), filetype_(&filetype), representation_(std::move(representation)) {
  require(displacement >= 0, MPI_ERR_ARG, "the displacement {} is negative", displacement);
  require_committed(etype, "etype");
  require_committed(filetype, "filetype");
  const DatatypeRef stored_etype = representation_->in_file(etype);
  const DatatypeRef stored = representation_->in_file(filetype);
  etype_bytes_ = stored_etype->size();
  require(etype_bytes_ > 0 && etype.size() > 0, MPI_ERR_TYPE,
          "the etype {} has no bytes, so nothing can be counted in it", etype.name());
  require(stored->size() % etype_bytes_ == 0, MPI_ERR_TYPE,
          "the filetype {} of {} bytes does not consist of etypes of {} bytes", filetype.name(), stored->size(),
          etype_bytes_);
  const char* const reason = FileLayout::unfit(*stored);
  require(reason == nullptr, MPI_ERR_TYPE, "the datatype {} is no filetype: {}", filetype.name(),
          reason != nullptr ? reason : "");
  layout_ = FileLayout(displacement, *stored);
}

MPI_Offset FileView::etypes_in(Count count, const Datatype& type) const {
  const Count bytes = type.bytes_of(count);
  require(bytes % etype_->size() == 0, MPI_ERR_TYPE,
          "{} elements of {} bytes are no whole number of etypes of {} bytes, which the view of the file consists of",
          count, type.size(), etype_->size());
  return bytes / etype_->size();
}

std::uint64_t FileView::position_of(MPI_Offset etype) const {
  MPI_Offset position = 0;
  const bool fits = !__builtin_mul_overflow(etype, etype_bytes_, &position) && etype >= 0;
  require(fits && layout_.reaches(static_cast<std::uint64_t>(position)), MPI_ERR_ARG,
          "the offset {} is {} in the view of the file", etype, etype < 0 ? "negative" : "further than files reach");
  return static_cast<std::uint64_t>(position);
}

MPI_Offset FileView::byte_of(MPI_Offset etype) const { return layout_.offset_of(position_of(etype)); }

MPI_Offset FileView::etype_at(MPI_Offset byte) const noexcept {
  const std::uint64_t position = layout_.position_at(byte);
  const auto each = static_cast<std::uint64_t>(etype_bytes_);
  return static_cast<MPI_Offset>(position / each + (position % each != 0 ? 1 : 0));
}

}  // namespace brant::mpi
