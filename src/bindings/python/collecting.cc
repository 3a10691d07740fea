#include "bindings/python/collecting.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "bindings/python/array.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/team.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

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
  using enum CollectiveKind;
  return kind == reduce || kind == allreduce || kind == reduce_scatter || kind == scan || kind == exscan;
}

/// What is given has one block for each member, or what is got.
bool gives_blocks(CollectiveKind kind) noexcept {
  using enum CollectiveKind;
  return kind == reduce_scatter || kind == alltoall || kind == scatter;
}
bool gets_blocks(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::allgather || kind == CollectiveKind::gather;
}

bool is_complex(std::string_view format) noexcept { return !format.empty() && format[0] == 'Z'; }

}  // namespace

void Collecting::refuse(Status status, const std::string& what) const {
  throw Failure(status, team_.name() + ": " + std::string(collective_name(kind_)) + ": " + what, team_.name());
}

/// Whether this member's array is read, and whether it gets one.
bool Collecting::gives(int root) const noexcept {
  if (kind_ == CollectiveKind::barrier || kind_ == CollectiveKind::broadcast) return false;
  return kind_ != CollectiveKind::scatter || root == team_.rank();
}
bool Collecting::gets(int root) const noexcept {
  if (kind_ == CollectiveKind::barrier) return false;
  return (kind_ != CollectiveKind::gather && kind_ != CollectiveKind::reduce) || root == team_.rank();
}

void Collecting::take_side(Side& side, nb::handle array, View::Access access, bool filled) {
  if (!side.view.take(array.ptr(), access))
    refuse(Status::wrong_kind, "an object of type " + std::string(nb::type_name(array.type()).c_str()) +
                                   " is no array: pass numpy.asarray(value)");
  View& view = side.view;
  if (!view.is_host())
    refuse(Status::not_supported,
           "an array in the memory of a GPU: copy it to the host first (array.get(), "
           "tensor.cpu())");
  side.memory = view.memory();
  if (view.order() == Order::c) return;
  side.packed = std::make_unique_for_overwrite<std::byte[]>(view.bytes());
  side.memory = {side.packed.get(), view.bytes(), MemoryKind::host};
  if (!filled) view.pack(side.packed.get());
}

void Collecting::choose_operation(nb::handle op, Collective& call) {
  const View& view = in_place_ ? out_.view : in_.view;
  if (PyCallable_Check(op.ptr()) != 0) {
    if (view.item_bytes() > kElementMax)
      refuse(Status::not_supported, "a function combines elements of at most 4096 bytes");
    function_ = nb::borrow(op);
    user_ = {&Collecting::combine, this, view.item_bytes()};
    call.op = ReduceOp::user;
    call.user = &user_;
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
  call.op = *found;
  const auto type = std::ranges::find(kTypes, view.format(), &Named::format);
  const bool adds = call.op == ReduceOp::sum || call.op == ReduceOp::average;
  if (type != kTypes.end()) call.type = type->type;
  if (type == kTypes.end() || !can_reduce(call.type, call.op) || (is_complex(view.format()) && !adds))
    refuse(Status::invalid_argument, "'" + std::string(name) + "' does not combine " + view.describe() +
                                         ": convert it, or pass a function of two arrays as op");
}

std::vector<Py_ssize_t> Collecting::shape_of_result(int root) const {
  std::vector<Py_ssize_t> shape(in_.view.shape().begin(), in_.view.shape().end());
  if (gives_blocks(kind_) && gives(root)) {
    if (shape.empty() || shape[0] != team_.size())
      refuse(Status::invalid_argument, in_.view.describe() + ": its first dimension has one block for each of the " +
                                           std::to_string(team_.size()) + " members");
    if (kind_ != CollectiveKind::alltoall) shape.erase(shape.begin());
  }
  if (gets_blocks(kind_)) shape.insert(shape.begin(), team_.size());
  return shape;
}

void Collecting::take_result(nb::handle out, int root) {
  if (!gets(root)) return;
  if (!out.is_none()) {
    take_side(out_, out, View::Access::write, true);
    result_ = nb::borrow(out);
  } else {
    if (!gives(root))
      refuse(Status::invalid_argument, "a member other than the root says by out=array where its block shall land");
    static const nb::handle empty_like = python_function("brant._arrays", "empty_like");
    const View& view = in_.view;
    if (view.format() == "bf16")
      refuse(Status::not_supported, "NumPy has no bfloat16: pass out=tensor, where the result shall land");
    result_ = nb::object(empty_like(nb::str(view.format().data(), view.format().size()),
                                    shape_tuple(shape_of_result(root)), false, view.item_bytes()));
    take_side(out_, result_, View::Access::write, true);
  }
  if (gives(root) && out_.view.format() != in_.view.format())
    refuse(Status::invalid_argument, "from " + in_.view.describe() + " into " + out_.view.describe() +
                                         ": out has the element type of what is given");
  if (!gives(root)) return;
  std::size_t bytes = in_.view.item_bytes();
  for (const Py_ssize_t extent : shape_of_result(root)) bytes *= static_cast<std::size_t>(extent);
  if (out_.view.bytes() != bytes)
    refuse(Status::invalid_argument, "from " + in_.view.describe() + " come " + std::to_string(bytes) +
                                         " bytes, and out is " + out_.view.describe());
}

void Collecting::start(nb::handle array, nb::handle op, int root, nb::handle out, const nb::object& timeout) {
  const double seconds = seconds_of(timeout);
  if (root < 0 || root >= team_.size())
    refuse(Status::invalid_argument,
           "root=" + std::to_string(root) + " is no rank of the team, which has " + std::to_string(team_.size()));
  Collective call{.kind = kind_, .root = root, .in = {}, .out = {}};
  if (kind_ == CollectiveKind::broadcast) {
    in_place_ = true;
    const bool is_root = root == team_.rank();
    take_side(out_, array, is_root ? View::Access::read : View::Access::write, !is_root);
    result_ = nb::borrow(array);
  } else {
    in_place_ =
        gives(root) && !out.is_none() && out.ptr() == array.ptr() && !gives_blocks(kind_) && !gets_blocks(kind_);
    if (in_place_) {
      take_side(out_, out, View::Access::write, false);
      result_ = nb::borrow(out);
    } else {
      if (gives(root)) take_side(in_, array, View::Access::read, false);
      if (gives(root)) static_cast<void>(shape_of_result(root));
      take_result(out, root);
    }
  }
  call.in = in_place_ && kind_ != CollectiveKind::broadcast ? ConstBuffer(out_.memory) : ConstBuffer(in_.memory);
  call.out = out_.memory;
  if (combines(kind_)) choose_operation(op, call);
  start_by([&](Op& operation) { return team_.team().post(call, operation); }, seconds);
}

/// `accumulated` and `next` as arrays, and what the function makes of them into the first. On the worker's thread, with
/// the GIL or without it.
void Collecting::combine(void* self, void* accumulated, const void* next, std::uint64_t count) noexcept {
  auto& collecting = *static_cast<Collecting*>(self);
  const nb::gil_scoped_acquire gil;
  if (collecting.raised_.is_valid()) return;
  const View& view = collecting.in_place_ ? collecting.out_.view : collecting.in_.view;
  const bool went_well = guarded(
      [&] {
        static const nb::handle combine = python_function("brant._arrays", "combine");
        const auto bytes = static_cast<Py_ssize_t>(count * view.item_bytes());
        const nb::object first =
            nb::steal(PyMemoryView_FromMemory(static_cast<char*>(accumulated), bytes, PyBUF_WRITE));
        // Only read: a view that cannot be written shows it.
        const nb::object second =
            nb::steal(PyMemoryView_FromMemory(const_cast<char*>(static_cast<const char*>(next)), bytes, PyBUF_READ));
        combine(collecting.function_, nb::str(view.format().data(), view.format().size()), view.item_bytes(), first,
                second);
        return true;
      },
      false);
  if (!went_well) collecting.raised_ = nb::steal(take_exception());
}

void Collecting::finish() {
  const bool nothing = kind_ == CollectiveKind::exscan && team_.rank() == 0;
  if (!outcome().ok() || nothing) result_ = nb::none();
  if (outcome().ok() && !nothing && out_.packed != nullptr && result_.is_valid())
    out_.view.unpack(out_.packed.get(), Order::c);
  in_.view.clear();
  out_.view.clear();
  in_.packed.reset();
  out_.packed.reset();
}

PyObject* Collecting::take() {
  if (raised_.is_valid()) {
    raise_to_awaiter(raised_.ptr());
    return nullptr;
  }
  if (status() == Status::ok) return Py_NewRef(result_.is_valid() ? result_.ptr() : Py_None);
  const std::string what = std::string(collective_name(kind_)) + " failed";
  Failure error = failure(status(), team_.name(), -1, what);
  const std::string fault = was_given_up() ? std::string() : team_.fault();
  set_python_error(fault.empty() ? error : Failure(status(), std::string(error.what()) + ". " + fault, team_.name()));
  return nullptr;
}

}  // namespace brant::python
