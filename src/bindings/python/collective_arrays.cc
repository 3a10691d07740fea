#include "bindings/python/collective_arrays.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "bindings/python/array.h"
#include "bindings/python/dlpack.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/team.h"
#include "brant/device.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

using enum CollectiveKind;

struct Named {
  std::string_view format;
  DataType type;
};
constexpr std::array kTypes = {
    Named{"?", DataType::boolean}, Named{"b", DataType::i8},   Named{"B", DataType::u8},      Named{"h", DataType::i16},
    Named{"H", DataType::u16},     Named{"i", DataType::i32},  Named{"I", DataType::u32},     Named{"l", DataType::i64},
    Named{"L", DataType::u64},     Named{"e", DataType::f16},  Named{"bf16", DataType::bf16}, Named{"f", DataType::f32},
    Named{"d", DataType::f64},     Named{"Zf", DataType::f32}, Named{"Zd", DataType::f64},
};

constexpr std::array kOps = {
    ReduceOp::sum,     ReduceOp::prod,        ReduceOp::min,        ReduceOp::max,
    ReduceOp::average, ReduceOp::logical_and, ReduceOp::logical_or, ReduceOp::logical_xor,
    ReduceOp::bit_and, ReduceOp::bit_or,      ReduceOp::bit_xor,
};
constexpr std::size_t kElementMax = 4096;

bool combines(CollectiveKind kind) noexcept {
  return kind == reduce || kind == allreduce || kind == reduce_scatter || kind == scan || kind == exscan;
}

bool is_complex(std::string_view format) noexcept { return !format.empty() && format[0] == 'Z'; }

bool is_given(const nb::object& object) noexcept { return object.is_valid() && !object.is_none(); }

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::size_t bytes_of(const std::vector<Py_ssize_t>& shape, std::size_t item_bytes) noexcept {
  for (const Py_ssize_t extent : shape) item_bytes *= static_cast<std::size_t>(extent);
  return item_bytes;
}

}  // namespace

void CollectiveArrays::refuse(Status status, const std::string& what) const {
  throw Failure(status, team_.name() + ": " + std::string(collective_name(kind_)) + ": " + what, team_.name());
}

/// Whether this member's array is read, and whether it gets one.
bool CollectiveArrays::gives() const noexcept {
  if (kind_ == barrier || kind_ == broadcast) return false;
  return kind_ != scatter || root_ == team_.rank();
}
bool CollectiveArrays::gets() const noexcept {
  if (kind_ == barrier) return false;
  return (kind_ != gather && kind_ != reduce) || root_ == team_.rank();
}
bool CollectiveArrays::is_of_neighbours() const noexcept {
  return kind_ == neighbour_allgather || kind_ == neighbour_alltoall;
}
bool CollectiveArrays::gives_blocks() const noexcept {
  return kind_ == reduce_scatter || kind_ == alltoall || kind_ == scatter || kind_ == neighbour_alltoall;
}
bool CollectiveArrays::gets_blocks() const noexcept {
  return kind_ == allgather || kind_ == gather || kind_ == neighbour_allgather;
}
std::size_t CollectiveArrays::blocks_out() const noexcept {
  return is_of_neighbours() ? destinations_.size() : static_cast<std::size_t>(team_.size());
}
std::size_t CollectiveArrays::blocks_in() const noexcept {
  return is_of_neighbours() ? sources_.size() : static_cast<std::size_t>(team_.size());
}

/// Where an array tells. One of another GPU would be reached by luck.
void CollectiveArrays::require_own_device(nb::handle array) const {
  if (PyObject_CheckBuffer(array.ptr()) != 0) return;  // in host memory
  if (nb::isinstance<Array>(array) || !nb::hasattr(array, "__dlpack_device__")) return;
  const auto [type, ordinal] = nb::cast<std::pair<int, int>>(array.attr("__dlpack_device__")());
  if (type != kDlCuda) return;
  const DeviceInfo device = Process::get().runtime().device().info();
  if (device.kind == MemoryKind::cuda && device.ordinal != ordinal)
    refuse(Status::invalid_argument, "an array on GPU " + std::to_string(ordinal) +
                                         ", and this process works with GPU " + std::to_string(device.ordinal) +
                                         ": move it there");
}

void CollectiveArrays::take_side(Side& side, nb::handle array, View::Access access, bool read) {
  side.read = read;
  require_own_device(array);  // first, since PyTorch refuses to show an array of another GPU
  if (!side.view.take(array.ptr(), access, View::OnDevice::together, {.stream = before_}))
    refuse(Status::wrong_kind, "an object of type " + std::string(nb::type_name(array.type()).c_str()) +
                                   " is no array: pass numpy.asarray(value)");
  View& view = side.view;
  side.array = nb::borrow(array);
  side.memory = view.memory();
  if (view.order() == Order::c) return;
  if (!view.is_host())
    refuse(Status::not_supported,
           "an array in device memory that is not in C order: make it so first (cupy.ascontiguousarray, "
           "tensor.contiguous())");
  if (before_ != nullptr) refuse(Status::not_supported, "a stream takes arrays in C order whose elements lie together");
  side.packed = std::make_unique_for_overwrite<std::byte[]>(view.bytes());
  side.memory = {side.packed.get(), view.bytes(), MemoryKind::host};
  if (read) view.pack(side.packed.get());
}

void CollectiveArrays::take_side_again(Side& side, View::Access access) {
  if (!side.array.is_valid()) return;
  if (side.packed != nullptr) {
    if (side.read) side.view.pack(side.packed.get());
    return;
  }
  if (side.view.is_host() || nb::isinstance<Array>(side.array)) return;
  View now;
  static_cast<void>(now.take(side.array.ptr(), access, View::OnDevice::together, {.stream = before_}));
  if (now.memory().data != side.memory.data || now.bytes() != side.memory.bytes)
    refuse(Status::invalid_argument, "an array lies elsewhere than when the call was prepared: prepare another one");
}

void CollectiveArrays::choose_operation(nb::handle op) {
  const View& view = in_place_ ? out_.view : in_.view;
  if (PyCallable_Check(op.ptr()) != 0) {
    if (view.item_bytes() > kElementMax)
      refuse(Status::not_supported, "a function combines elements of at most 4096 bytes");
    function_ = nb::borrow(op);
    user_ = {&CollectiveArrays::combine, this, view.item_bytes()};
    call_.op = ReduceOp::user;
    call_.user = &user_;
    return;
  }
  if (!nb::isinstance<nb::str>(op))
    refuse(Status::invalid_argument, "op is a name as 'sum', or a function of two arrays");
  const std::string_view name = nb::borrow<nb::str>(op).c_str();
  const auto found = std::ranges::find(kOps, name, &reduce_op_name);
  if (found == kOps.end()) {
    std::string names;
    for (const ReduceOp known : kOps) names += (names.empty() ? "" : ", ") + std::string(reduce_op_name(known));
    refuse(Status::invalid_argument, "op='" + std::string(name) + "' is none of " + names);
  }
  call_.op = *found;
  const auto type = std::ranges::find(kTypes, view.format(), &Named::format);
  const bool adds = call_.op == ReduceOp::sum || call_.op == ReduceOp::average;
  if (type != kTypes.end()) call_.type = type->type;
  if (type == kTypes.end() || !can_reduce(call_.type, call_.op) || (is_complex(view.format()) && !adds))
    refuse(Status::invalid_argument, "'" + std::string(name) + "' does not combine " + view.describe() +
                                         ": convert it, or pass a function of two arrays as op");
}

void CollectiveArrays::take_lists(const CollectiveRequest& request) {
  if (is_of_neighbours()) {
    sources_ = nb::cast<std::vector<std::int32_t>>(request.sources);
    destinations_ = nb::cast<std::vector<std::int32_t>>(request.destinations);
  }
  by_rows_ = is_given(request.counts);
  const bool has_two = kind_ == alltoall || kind_ == neighbour_alltoall;
  if (is_given(request.out_counts) != (by_rows_ && has_two))
    refuse(Status::invalid_argument, has_two ? "counts and out_counts go together" : "this call has no out_counts");
  if (!by_rows_) return;
  const auto list = [this](const nb::object& given, std::size_t blocks, const char* name) {
    auto counts = nb::cast<std::vector<std::uint64_t>>(given);
    const bool by_root = (kind_ == gather || kind_ == scatter) && root_ != team_.rank();
    if (counts.size() != blocks && !(by_root && counts.empty()))
      refuse(Status::invalid_argument, std::string(name) + " has " + std::to_string(counts.size()) +
                                           " numbers of rows, and there are " + std::to_string(blocks) + " blocks");
    return counts;
  };
  counts_ = list(request.counts, gives_blocks() ? blocks_out() : blocks_in(), "counts");
  if (has_two) out_counts_ = list(request.out_counts, blocks_in(), "out_counts");
}

/// With counts a block is some rows of the first dimension, and blocks lie one behind the other.
CollectiveArrays::Shape CollectiveArrays::shape_by_rows() const {
  Shape shape(in_.view.shape().begin(), in_.view.shape().end());
  const auto self = static_cast<std::size_t>(team_.rank());
  const bool own_counts = (kind_ == allgather || kind_ == gather) && !counts_.empty();
  const bool any = kind_ == neighbour_allgather || (!gives_blocks() && !own_counts);
  const std::uint64_t rows = own_counts ? counts_[self] : sum_of(counts_);
  if (shape.empty() || (!any && static_cast<std::uint64_t>(shape[0]) != rows))
    refuse(Status::invalid_argument,
           in_.view.describe() + ": counts say that it has " + std::to_string(rows) + " rows");
  if (kind_ == alltoall || kind_ == neighbour_alltoall) {
    shape[0] = static_cast<Py_ssize_t>(sum_of(out_counts_));
  } else {
    shape[0] = static_cast<Py_ssize_t>(gives_blocks() ? counts_[self] : sum_of(counts_));
  }
  return shape;
}

CollectiveArrays::Shape CollectiveArrays::shape_of_result() const {
  if (by_rows_) return shape_by_rows();
  Shape shape(in_.view.shape().begin(), in_.view.shape().end());
  if (gives_blocks()) {
    const std::size_t blocks = blocks_out();
    if (shape.empty() || static_cast<std::size_t>(shape[0]) != blocks)
      refuse(Status::invalid_argument, in_.view.describe() + ": its first dimension has one block for each of the " +
                                           std::to_string(blocks) +
                                           (is_of_neighbours() ? " destinations" : " members"));
    if (kind_ == reduce_scatter || kind_ == scatter) {
      shape.erase(shape.begin());
    } else {
      shape[0] = static_cast<Py_ssize_t>(blocks_in());
    }
  }
  if (gets_blocks()) shape.insert(shape.begin(), static_cast<Py_ssize_t>(blocks_in()));
  return shape;
}

nb::object CollectiveArrays::new_result() const {
  const View& view = in_.view;
  const std::string format(view.format());
  if (!view.is_host()) return new_array(shape_of_result(), format, view.item_bytes(), landing_kind(view.kind()));
  static const nb::handle empty_like = python_function("brant._arrays", "empty_like");
  if (format == "bf16")
    refuse(Status::not_supported, "NumPy has no bfloat16: pass out=tensor, where the result shall land");
  return nb::object(
      empty_like(nb::str(format.data(), format.size()), shape_tuple(shape_of_result()), false, view.item_bytes()));
}

void CollectiveArrays::take_result(nb::handle out) {
  if (!gets()) return;
  if (out.is_none()) {
    if (!gives())
      refuse(Status::invalid_argument, "a member other than the root says by out=array where its block shall land");
    if (before_ != nullptr)
      refuse(Status::invalid_argument,
             "a call of a stream takes out=array, where the result shall land: nobody could tell how long a new array "
             "is in use");
    result_ = new_result();
  } else {
    result_ = nb::borrow(out);
  }
  take_side(out_, result_, View::Access::write, false);
  if (!gives()) return;
  if (out_.view.format() != in_.view.format())
    refuse(Status::invalid_argument, "from " + in_.view.describe() + " into " + out_.view.describe() +
                                         ": out has the element type of what is given");
  const std::size_t bytes = bytes_of(shape_of_result(), in_.view.item_bytes());
  if (out_.view.bytes() != bytes)
    refuse(Status::invalid_argument, "from " + in_.view.describe() + " come " + std::to_string(bytes) +
                                         " bytes, and out is " + out_.view.describe());
}

void CollectiveArrays::note_block_bytes() {
  if (!by_rows_) return;
  const View& view = gives() ? in_.view : out_.view;
  Shape row(view.shape().begin(), view.shape().end());
  if (row.empty())
    refuse(Status::invalid_argument, "counts are numbers of rows, and an array of no dimension has none");
  row[0] = 1;
  const std::uint64_t row_bytes = bytes_of(row, view.item_bytes());
  const auto in_bytes = [row_bytes](std::vector<std::uint64_t> counts) {
    for (std::uint64_t& count : counts) count *= row_bytes;
    return counts;
  };
  (gives_blocks() ? in_block_bytes_ : block_bytes_) = in_bytes(counts_);
  if (!out_counts_.empty()) block_bytes_ = in_bytes(out_counts_);
  const bool is_root = root_ == team_.rank();
  if ((kind_ == gather || kind_ == scatter) && !is_root) {  // only the root's count
    in_block_bytes_.clear();
    block_bytes_.clear();
  }
  call_.in_block_bytes = in_block_bytes_;
  call_.block_bytes = block_bytes_;
  call_.uneven = kind_ != allgather && kind_ != reduce_scatter;
}

void CollectiveArrays::take(const CollectiveRequest& request, Stream* before) {
  before_ = before;
  root_ = request.root;
  if (root_ < 0 || root_ >= team_.size())
    refuse(Status::invalid_argument,
           "root=" + std::to_string(root_) + " is no rank of the team, which has " + std::to_string(team_.size()));
  call_.kind = kind_;
  call_.root = root_;
  take_lists(request);
  if (kind_ == broadcast) {
    in_place_ = true;
    const bool is_root = root_ == team_.rank();
    take_side(out_, request.array, is_root ? View::Access::read : View::Access::write, is_root);
    result_ = request.array;
  } else if (kind_ != barrier) {
    const nb::object out = is_given(request.out) ? request.out : nb::none();
    in_place_ = gives() && !out.is_none() && out.ptr() == request.array.ptr() && !gives_blocks() && !gets_blocks();
    if (in_place_) {
      take_side(out_, out, View::Access::write, true);
      result_ = out;
    } else {
      if (gives()) {
        take_side(in_, request.array, View::Access::read, true);
        static_cast<void>(shape_of_result());
      }
      take_result(out);
    }
    note_block_bytes();
  }
  call_.in = in_place_ && kind_ != broadcast ? ConstBuffer(out_.memory) : ConstBuffer(in_.memory);
  call_.out = out_.memory;
  if (is_of_neighbours()) call_.neighbours = {sources_, destinations_};
  if (combines(kind_)) choose_operation(request.op);
  before_ = nullptr;
}

void CollectiveArrays::take_again(Stream* before) {
  if (before != nullptr && (in_.packed != nullptr || out_.packed != nullptr))
    refuse(Status::not_supported, "a stream takes arrays in C order whose elements lie together");
  before_ = before;
  const bool only_read = kind_ == broadcast && root_ == team_.rank();
  take_side_again(in_, View::Access::read);
  take_side_again(out_, only_read ? View::Access::read : View::Access::write);
  before_ = nullptr;
}

/// `accumulated` and `next` as arrays, and what the function makes of them into the first. On the worker's thread, with
/// the GIL or without it.
void CollectiveArrays::combine(void* self, void* accumulated, const void* next, std::uint64_t count) noexcept {
  auto& arrays = *static_cast<CollectiveArrays*>(self);
  const nb::gil_scoped_acquire gil;
  if (arrays.raised_.is_valid()) return;
  const View& view = arrays.in_place_ ? arrays.out_.view : arrays.in_.view;
  const bool went_well = guarded(
      [&] {
        static const nb::handle combine = python_function("brant._arrays", "combine");
        const auto bytes = static_cast<Py_ssize_t>(count * view.item_bytes());
        const nb::object first =
            nb::steal(PyMemoryView_FromMemory(static_cast<char*>(accumulated), bytes, PyBUF_WRITE));
        // Only read: a view that cannot be written shows it.
        const nb::object second =
            nb::steal(PyMemoryView_FromMemory(const_cast<char*>(static_cast<const char*>(next)), bytes, PyBUF_READ));
        combine(arrays.function_, nb::str(view.format().data(), view.format().size()), view.item_bytes(), first,
                second);
        return true;
      },
      false);
  if (!went_well) arrays.raised_ = nb::steal(take_exception());
}

nb::object CollectiveArrays::deliver() {
  if (!result_.is_valid() || (kind_ == exscan && team_.rank() == 0)) return nb::none();
  const bool came = kind_ != broadcast || root_ != team_.rank();
  if (out_.packed != nullptr && came) out_.view.unpack(out_.packed.get(), Order::c);
  return result_;
}

void CollectiveArrays::clear() noexcept {
  for (Side* side : {&in_, &out_}) {
    side->view.clear();
    side->packed.reset();
    side->array.reset();
  }
  result_.reset();
}

}  // namespace brant::python
