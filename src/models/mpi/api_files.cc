#include <cstring>
#include <string>

#include "models/mpi/communicators.h"
#include "models/mpi/files/agreement.h"
#include "models/mpi/files/file_access.h"
#include "models/mpi/files/file_calls.h"
#include "models/mpi/files/opening.h"
#include "models/mpi/memory_alloc_kinds.h"
#include "models/mpi/typed_buffer.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// The program frees what is not predefined.
MPI_Datatype type_for_program(Datatype& type) noexcept {
  DatatypeRef kept(&type);
  if (checks() != nullptr && !type.predefined()) [[unlikely]]
    checks()->census.add(Census::Kind::datatype, &type);
  return kept.release()->handle();
}

void add_hints(File& file, MPI_Info info) {
  if (info == MPI_INFO_NULL) return;
  for (const auto& [key, value] : info_of(info).entries) file.info.set(key, value);
}

/// The size of a file is changed by one member for all.
template <typename Change>
int change_size(const char* function, MPI_File fh, MPI_Offset size, const Change& change) noexcept {
  return on_file(function, fh, [&](File& file) {
    require_same(file.communicator, size, "the size");
    require(size >= 0, MPI_ERR_ARG, "the size {} is negative", size);
    require(!file.has_mode(MPI_MODE_RDONLY), MPI_ERR_READ_ONLY, "the file '{}' is open for reading alone", file.name());
    require_random_access(file);
    do_at_first(file.communicator, [&] { change(file.disk); });
  });
}

/// A view as MPI_File_set_view names it.
FileView view_of(File& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep) {
  require_closable(file);
  const bool from_current = disp == MPI_DISPLACEMENT_CURRENT;
  require(from_current || !file.has_mode(MPI_MODE_SEQUENTIAL), MPI_ERR_ARG,
          "the file '{}' is open with MPI_MODE_SEQUENTIAL: its displacement must be MPI_DISPLACEMENT_CURRENT",
          file.name());
  require(!from_current || file.has_mode(MPI_MODE_SEQUENTIAL), MPI_ERR_ARG,
          "MPI_DISPLACEMENT_CURRENT needs a file that is open with MPI_MODE_SEQUENTIAL, and '{}' is not", file.name());
  require_place(datarep, "datarep");
  DataRepresentationRef representation = current_rank().files.find_representation(datarep);
  require(
      representation != nullptr, MPI_ERR_UNSUPPORTED_DATAREP,
      "there is no data representation '{}': native, internal, external32 and those of MPI_Register_datarep are known",
      datarep);
  if (from_current) disp = file.view.byte_of(file.shared_pointer.value());
  return {disp, datatype_of(etype), datatype_of(filetype), std::move(representation)};
}

void register_representation(const char* name, const ProgramConversions& how) {
  require_place(name, "datarep");
  const std::size_t length = std::strlen(name);
  require(length > 0 && length < MPI_MAX_DATAREP_STRING, MPI_ERR_ARG,
          "the name of the data representation has {} characters, and may have 1 to {}", length,
          MPI_MAX_DATAREP_STRING - 1);
  require(how.extent != nullptr, MPI_ERR_ARG, "the function dtype_file_extent_fn of '{}' is null", name);
  RankFiles& files = current_rank().files;
  require(files.find_representation(name) == nullptr, MPI_ERR_DUP_DATAREP,
          "there is a data representation '{}' already", name);
  files.add_representation(make_program_representation(name, how));
}

}  // namespace

// Opening and closing
// -------------------------------------------------------------------------------------------------------------------

int file_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) noexcept {
  return without_file("MPI_File_open", [&] {
    require_place(static_cast<const void*>(fh), "fh");
    *fh = MPI_FILE_NULL;
    Communicator& communicator = communicator_of(comm);
    require_one_group(communicator);
    if (info != MPI_INFO_NULL) static_cast<void>(info_of(info));
    File& file = open_file(communicator, filename, amode);
    add_hints(file, info);
    *fh = handle_of<MPI_File>(file);
  });
}

/// The handle goes, also where a member has died.
int file_close(MPI_File* fh) noexcept {
  MPI_File handle = fh != nullptr ? *fh : MPI_FILE_NULL;
  bool goes = false;
  const int outcome = on_file("MPI_File_close", handle, [&](File& file) {
    require_closable(file);
    goes = true;
    close_file(file);
  });
  if (!goes) return outcome;
  delete object_of<File>(handle);
  *fh = MPI_FILE_NULL;
  return outcome;
}

int file_delete(const char* filename, MPI_Info info) noexcept {
  return without_file("MPI_File_delete", [&] {
    require(filename != nullptr && *filename != 0, MPI_ERR_BAD_FILE, "the name of the file is null or empty");
    if (info != MPI_INFO_NULL) static_cast<void>(info_of(info));
    delete_disk_file(filename);
  });
}

// Size and contents
// -------------------------------------------------------------------------------------------------------------------

int file_set_size(MPI_File fh, MPI_Offset size) noexcept {
  return change_size("MPI_File_set_size", fh, size, [size](const DiskFile& disk) { disk.resize(size); });
}

int file_preallocate(MPI_File fh, MPI_Offset size) noexcept {
  return change_size("MPI_File_preallocate", fh, size, [size](const DiskFile& disk) { disk.preallocate(size); });
}

int file_get_size(MPI_File fh, MPI_Offset* size) noexcept {
  return on_file("MPI_File_get_size", fh, [&](const File& file) {
    require_place(size, "size");
    *size = file.disk.size();
  });
}

int file_sync(MPI_File fh) noexcept {
  return on_file("MPI_File_sync", fh, [&](File& file) {
    do_together(file.communicator, [&] {
      file.disk.sync();
      file.written = false;
    });
  });
}

int file_set_atomicity(MPI_File fh, int flag) noexcept {
  return on_file("MPI_File_set_atomicity", fh, [&](File& file) {
    require_same(file.communicator, flag != 0 ? 1 : 0, "the flag");
    file.atomic = flag != 0;
  });
}

int file_get_atomicity(MPI_File fh, int* flag) noexcept {
  return on_file("MPI_File_get_atomicity", fh, [&](const File& file) {
    require_place(flag, "flag");
    *flag = file.atomic ? 1 : 0;
  });
}

// Views and pointers
// -------------------------------------------------------------------------------------------------------------------

/// The current displacement is known when all have come.
int file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                  MPI_Info info) noexcept {
  return on_file("MPI_File_set_view", fh, [&](File& file) {
    if (file.has_mode(MPI_MODE_SEQUENTIAL)) agree(file.communicator, std::nullopt);
    FileView view;
    do_together(file.communicator, [&] {
      view = view_of(file, disp, etype, filetype, datarep);
      add_hints(file, info);
    });
    file.view = std::move(view);
    file.pointer = 0;
    if (file.communicator.rank == 0) file.shared_pointer.remove();
    file.shared_pointer.start_over();
  });
}

int file_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) noexcept {
  return on_file("MPI_File_get_view", fh, [&](const File& file) {
    require_place(disp, "disp");
    require_place(static_cast<const void*>(etype), "etype");
    require_place(static_cast<const void*>(filetype), "filetype");
    require_place(datarep, "datarep");
    *disp = file.view.displacement();
    *etype = type_for_program(file.view.etype());
    *filetype = type_for_program(file.view.filetype());
    store_text(file.view.representation().name(), datarep, MPI_MAX_DATAREP_STRING, nullptr);
  });
}

int file_seek(MPI_File fh, MPI_Offset offset, int whence) noexcept {
  return on_file("MPI_File_seek", fh, [&](File& file) {
    require_random_access(file);
    file.pointer = place_of(file, offset, whence, file.pointer);
  });
}

int file_seek_shared(MPI_File fh, MPI_Offset offset, int whence) noexcept {
  return on_file("MPI_File_seek_shared", fh, [&](File& file) {
    require_same(file.communicator, offset, "the offset");
    require_same(file.communicator, whence, "whence");
    require_random_access(file);
    do_at_first(file.communicator, [&] {
      const MPI_Offset current = whence == MPI_SEEK_CUR ? file.shared_pointer.value() : 0;
      file.shared_pointer.set(place_of(file, offset, whence, current));
    });
  });
}

int file_get_position(MPI_File fh, MPI_Offset* offset) noexcept {
  return on_file("MPI_File_get_position", fh, [&](const File& file) {
    require_place(offset, "offset");
    require_random_access(file);
    *offset = file.pointer;
  });
}

int file_get_position_shared(MPI_File fh, MPI_Offset* offset) noexcept {
  return on_file("MPI_File_get_position_shared", fh, [&](File& file) {
    require_place(offset, "offset");
    *offset = file.shared_pointer.value();
  });
}

int file_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) noexcept {
  return on_file("MPI_File_get_byte_offset", fh, [&](const File& file) {
    require_place(disp, "disp");
    *disp = file.view.byte_of(offset);
  });
}

int file_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent) noexcept {
  return on_file("MPI_File_get_type_extent", fh, [&](const File& file) {
    require_place(extent, "extent");
    *extent = file.view.representation().in_file(datatype_of(datatype))->extent();
  });
}

// What a file has
// -------------------------------------------------------------------------------------------------------------------

int file_get_amode(MPI_File fh, int* amode) noexcept {
  return on_file("MPI_File_get_amode", fh, [&](const File& file) {
    require_place(amode, "amode");
    *amode = file.amode;
  });
}

int file_get_group(MPI_File fh, MPI_Group* group) noexcept {
  return on_file("MPI_File_get_group", fh, [&](const File& file) {
    require_place(static_cast<const void*>(group), "group");
    *group = publish_group(file.communicator.members, file.communicator.session);
  });
}

int file_set_info(MPI_File fh, MPI_Info info) noexcept {
  return on_file("MPI_File_set_info", fh, [&](File& file) { add_hints(file, info); });
}

int file_get_info(MPI_File fh, MPI_Info* info_used) noexcept {
  return on_file("MPI_File_get_info", fh, [&](const File& file) {
    require_place(static_cast<const void*>(info_used), "info_used");
    *info_used = publish_used(file.info);
  });
}

int register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                     MPI_Datarep_conversion_function* write_conversion_fn,
                     MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) noexcept {
  return without_file("MPI_Register_datarep", [&] {
    register_representation(datarep, {.read = read_conversion_fn,
                                      .write = write_conversion_fn,
                                      .extent = dtype_file_extent_fn,
                                      .extra_state = extra_state});
  });
}

int register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                       MPI_Datarep_conversion_function_c* write_conversion_fn,
                       MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) noexcept {
  return without_file("MPI_Register_datarep_c", [&] {
    register_representation(datarep, {.read_large = read_conversion_fn,
                                      .write_large = write_conversion_fn,
                                      .extent = dtype_file_extent_fn,
                                      .extra_state = extra_state});
  });
}

// Error handlers
// -------------------------------------------------------------------------------------------------------------------

int file_set_errhandler(MPI_File fh, MPI_Errhandler errhandler) noexcept {
  if (fh == MPI_FILE_NULL) {
    return without_file("MPI_File_set_errhandler",
                        [&] { current_rank().files.set_handler(error_handler_of(errhandler)); });
  }
  return on_file("MPI_File_set_errhandler", fh, [&](File& file) { file.set_handler(error_handler_of(errhandler)); });
}

int file_get_errhandler(MPI_File fh, MPI_Errhandler* errhandler) noexcept {
  const auto give = [&](ErrorHandler& handler) {
    require_place(static_cast<const void*>(errhandler), "errhandler");
    ++handler.users;
    *errhandler = handle_of_handler(handler);
  };
  if (fh == MPI_FILE_NULL)
    return without_file("MPI_File_get_errhandler", [&] { give(current_rank().files.handler()); });
  return on_file("MPI_File_get_errhandler", fh, [&](const File& file) { give(*file.handler); });
}

int file_call_errhandler(MPI_File fh, int errorcode) noexcept {
  const auto tell = [&](File* file) {
    static_cast<void>(
        hand_over(file, "MPI_File_call_errhandler", CallError(errorcode, "the program called the handler")));
  };
  if (fh == MPI_FILE_NULL) return without_file("MPI_File_call_errhandler", [&] { tell(nullptr); });
  return on_file("MPI_File_call_errhandler", fh, [&](File& file) { tell(&file); });
}

}  // namespace brant::mpi::api
