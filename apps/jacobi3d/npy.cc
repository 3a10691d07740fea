#include "npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "brant/base/status.h"

namespace jacobi {
namespace {

[[noreturn]] void fail_on(const std::string& name, const char* what, int error) {
  const brant::Status status = error == ENOENT ? brant::Status::not_found : brant::Status::io_error;
  throw brant::Error(status, fmt::format("{}: could not {}: {}", name, what, std::generic_category().message(error)));
}

/// Maps a whole file; the descriptor is not needed afterwards.
std::span<const std::byte> map_file(const std::string& name) {
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_on(name, "open it for reading", errno);
  struct stat facts{};
  const bool regular = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  void* data = regular && bytes > 0 ? ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = regular && bytes > 0 ? errno : EINVAL;
  ::close(file);
  if (data == MAP_FAILED) {
    if (error == EINVAL)
      throw brant::Error(brant::Status::invalid_argument, fmt::format("{}: it is empty or no regular file", name));
    fail_on(name, "map it", error);
  }
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

NpyReader::NpyReader(const std::string& name) : file_(map_file(name)) {
  try {
    header_ = parse_npy_header(file_, name);
    const Extent& shape = header_.shape;
    const auto wanted = static_cast<std::uint64_t>(shape.x * shape.y * shape.z) * sizeof(double);
    if (file_.size() - header_.data_offset < wanted) {
      throw brant::Error(
          brant::Status::invalid_argument,
          fmt::format("{}: its shape ({}, {}, {}) needs {} bytes of data, but it has {}: the file was cut off", name,
                      shape.x, shape.y, shape.z, wanted, file_.size() - header_.data_offset));
    }
  } catch (...) {
    ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
    throw;
  }
}

NpyReader::~NpyReader() { ::munmap(const_cast<std::byte*>(file_.data()), file_.size()); }

void NpyReader::read_row(std::int64_t x, std::int64_t y, std::int64_t z, std::span<double> row) const noexcept {
  const std::byte* data = file_.data() + header_.data_offset;  // not aligned in files of other writers: hence memcpy
  const auto element = [&](std::int64_t at) { return data + static_cast<std::size_t>(at) * sizeof(double); };
  if (header_.fortran_order) {
    std::memcpy(row.data(), element(header_.at(x, y, z)), row.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::memcpy(&row[i], element(header_.at(x + static_cast<std::int64_t>(i), y, z)), sizeof(double));
  }
}

NpyWriter::NpyWriter(const std::string& name, const Extent& shape)
    : name_(name), temporary_(fmt::format("{}.{}.part", name, ::getpid())) {
  const std::string header = make_npy_header(shape);
  header_ = {shape, true, header.size()};
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail("create it", errno);
  const auto bytes =
      static_cast<off_t>(header.size()) + shape.x * shape.y * shape.z * static_cast<off_t>(sizeof(double));
  int error = ::posix_fallocate(file_, 0, bytes);
  if (error == 0 && ::pwrite(file_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()))
    error = errno;
  if (error != 0) {
    ::close(file_);
    ::unlink(temporary_.c_str());
    fail(error == ENOSPC ? "reserve its space" : "write it", error);
  }
}

NpyWriter::~NpyWriter() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void NpyWriter::fail(const char* what, int error) const { fail_on(name_, what, error); }

void NpyWriter::write_row(std::int64_t x, std::int64_t y, std::int64_t z, std::span<const double> row) {
  const auto* data = reinterpret_cast<const char*>(row.data());
  auto at = static_cast<off_t>(header_.data_offset) + header_.at(x, y, z) * static_cast<off_t>(sizeof(double));
  for (std::size_t left = row.size_bytes(); left > 0;) {
    const ssize_t written = ::pwrite(file_, data, left, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write it", written < 0 ? errno : EIO);
    data += written;
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

void NpyWriter::commit() {
  if (::fsync(file_) != 0) fail("write it", errno);
  if (::rename(temporary_.c_str(), name_.c_str()) != 0) fail("put it in place", errno);
  ::close(file_);
  file_ = -1;
}

}  // namespace jacobi
