#include "bindings/torch/backend.h"

#include <ATen/Functions.h>
#include <c10/core/StreamGuard.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "bindings/torch/coalesced_work.h"
#include "bindings/torch/store_meeting.h"

namespace brant::distributed {
namespace {

using c10d::OpType;

constexpr std::int64_t kTagOfBlocks = INT64_MIN;  // of alltoall with blocks of different sizes
constexpr std::chrono::milliseconds kPartingMax = std::chrono::seconds(20);  // for calls on streams to run

std::mutex g_mutex;
std::weak_ptr<Job> g_job;  // of the default group that was made last

/// The program may need the interpreter while this thread waits: calls of its own on other threads, for example.
class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

/// Whether the caller waits for the call at once. PyTorch before 2.7 does not say.
template <typename Options>
bool waits(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return !options.asyncOp;
  } else {
    return false;
  }
}

void require_one(std::size_t count, const char* what) {
  TORCH_CHECK(count == 1, "brant: ", what, " takes one tensor of each rank, and got ", count);
}

/// What the host has done to tensors of a GPU: what is left of it is done on `stream`.
void finish_on(const c10::Stream& stream, Tensors& tensors, BrantWork& work, Outcome outcome) {
  const c10::StreamGuard on_stream(stream);
  try {
    if (outcome.status == Status::ok) tensors.finish();
    auto end = std::make_shared<c10::Event>(stream.device_type());
    end->record(stream);
    work.note_end(std::move(end));
  } catch (const std::exception& error) {
    outcome.status = Status::device_failed;
    outcome.text = std::string("process group: ") + tensors.what() + ": the GPU reports a fault: " + error.what();
  }
  work.finish_with(outcome);
}

std::vector<at::Tensor> rows_of(const at::Tensor& tensor, const std::vector<std::int64_t>& sizes, int members) {
  const std::int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  std::vector<at::Tensor> parts;
  std::int64_t at = 0;
  for (int member = 0; member < members; ++member) {
    const std::int64_t size = sizes.empty() ? rows / members : sizes[static_cast<std::size_t>(member)];
    parts.push_back(tensor.narrow(0, at, size));
    at += size;
  }
  TORCH_CHECK(at == rows, "brant: all_to_all: split sizes add up to ", at, ", and the tensor has ", rows, " rows");
  return parts;
}

}  // namespace

BrantBackend::BrantBackend(std::shared_ptr<Job> job, Group& group, const c10d::DistributedBackendOptions& options)
    : Backend(options.group_rank, options.group_size),
      job_(std::move(job)),
      group_(group),
      timeout_(std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout)),
      options_(c10::make_intrusive<Options>("brant", timeout_)),
      gpu_(job_->gpu()),
      streams_(gpu_) {}

c10::intrusive_ptr<BrantBackend> BrantBackend::create(const c10d::DistributedBackendOptions& options, int gpu) {
  const WithoutGil others_run;
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
  const bool has_all = options.global_ranks_in_group.empty();
  std::shared_ptr<Job> job;
  std::vector<Rank> members;
  {
    const std::scoped_lock lock(g_mutex);
    if (!has_all) job = g_job.lock();
  }
  if (job != nullptr) {
    for (const std::int64_t rank : options.global_ranks_in_group) members.push_back(Rank{static_cast<int>(rank)});
  } else {
    job = std::make_shared<Job>(
        std::make_unique<StoreMeeting>(options.store, options.group_rank, options.group_size, timeout), timeout, gpu);
    for (int rank = 0; rank < options.group_size; ++rank) members.push_back(Rank{rank});
  }
  Group* group = nullptr;
  job->with(false, [&] { group = &job->adopt(std::make_unique<Group>(*job, members, options.group_id, timeout)); });
  if (has_all) {
    const std::scoped_lock lock(g_mutex);
    g_job = job;
  }
  return c10::make_intrusive<BrantBackend>(std::move(job), *group, options);
}

Runtime* runtime_of_default() noexcept {
  const std::scoped_lock lock(g_mutex);
  const std::shared_ptr<Job> job = g_job.lock();
  return job == nullptr ? nullptr : &job->runtime();
}

BrantBackend::~BrantBackend() {
  if (job_->is_parents()) {
    static_cast<void>(new std::shared_ptr<Job>(std::move(job_)));  // never destroyed here
    return;
  }
  shutdown();
  const WithoutGil others_run;
  job_.reset();
}

void BrantBackend::shutdown() {
  const WithoutGil others_run;
  wait_for_streams();
  try {
    job_->with(false, [this] { group_.close(); });
  } catch (const Error&) {
    // The job has ended, and all groups with it.
  }
}

BrantBackend::WorkOfUs BrantBackend::make_work(OpType type, const Shared& tensors, const List& outputs) {
  return c10::make_intrusive<BrantWork>(job_, rank_, type, tensors->what(), number_.fetch_add(1), timeout_, outputs,
                                        outputs);
}

BrantBackend::WorkPtr BrantBackend::begin(OpType type, const Shared& tensors, List outputs, bool waits,
                                          std::function<void(Done)> post) {
  const WorkOfUs work = make_work(type, tensors, outputs);
  if (!tensors->on_gpu()) {
    job_->with(waits, [&] {
      const Done told = [work, tensors](const Outcome& outcome) {
        if (outcome.status == Status::ok) tensors->finish();
        work->finish_with(outcome);
      };
      group_.in_order(nullptr, [post = std::move(post), told] { post(told); });
    });
    return note(work);
  }
  TORCH_CHECK(!is_captured(gpu_.current()), tensors->what(),
              " of these tensors is the host's, and cannot be captured in a graph");
  job_->with(waits, [&] {
    const c10::Stream stream = streams_.own();
    work->put_on(stream);
    tensors->note_use(stream);
    const Done told = [work, tensors, stream](const Outcome& outcome) { finish_on(stream, *tensors, *work, outcome); };
    group_.in_order(handle_of(stream), [post = std::move(post), told] { post(told); });
  });
  return note(work);
}

BrantBackend::WorkPtr BrantBackend::collect(OpType type, const Shared& tensors, List outputs, bool waits,
                                            const Calls& calls) {
  if (tensors->on_gpu()) {
    if (WorkPtr work = collect_on_stream(type, tensors, outputs, waits, calls)) return note(std::move(work));
  }
  return begin(type, tensors, std::move(outputs), waits,
               [this, calls](Done done) { group_.collect(calls, std::move(done)); });
}

BrantBackend::WorkPtr BrantBackend::collect_on_stream(OpType type, const Shared& tensors, const List& outputs,
                                                      bool waits, const Calls& calls) {
  WorkOfUs work;
  job_->with(true, [&] {
    if (!group_.streams_take(calls)) return;
    work = make_work(type, tensors, outputs);
    queue(work, tensors, waits, calls);
  });
  return work;
}

/// A caller that waits at once has it on the stream that he computes on: nothing could run beside it there.
void BrantBackend::queue(const WorkOfUs& work, const Shared& tensors, bool waits, const Calls& calls) {
  const c10::Stream stream = waits ? streams_.current() : streams_.own();
  work->put_on(stream);
  tensors->note_use(stream);
  if (const Outcome outcome = group_.enqueue(calls, handle_of(stream)); outcome.status != Status::ok)
    C10_THROW_ERROR(DistBackendError, outcome.text);
  {
    const c10::StreamGuard on_stream(stream);
    tensors->finish();
  }
  work->finish_on_stream(streams_.note_call(stream), [job = std::weak_ptr<Job>(job_), &group = group_] {
    std::string fault;
    const std::shared_ptr<Job> lives = job.lock();
    if (lives == nullptr) return fault;
    try {
      lives->with(true, [&] { fault = group.fault(); });
    } catch (const Error&) {
      // It has ended, and so have all calls.
    }
    return fault;
  });
}

/// Calls on streams that have not run when a team is closed would be canceled.
void BrantBackend::wait_for_streams() noexcept {
  try {
    std::shared_ptr<c10::Event> last;
    job_->with(false, [&] { last = streams_.last_end(); });
    const auto deadline = std::chrono::steady_clock::now() + std::min(timeout_, kPartingMax);
    while (last != nullptr && !last->query() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  } catch (const std::exception&) {
    // The job has ended, or the GPU reports a fault that others tell of.
  }
}

BrantBackend::WorkPtr BrantBackend::note(WorkPtr work) {
  const std::scoped_lock lock(coalescing_mutex_);
  if (coalesced_) coalesced_->push_back(work);
  return work;
}

void BrantBackend::startCoalescing() {
  const std::scoped_lock lock(coalescing_mutex_);
  coalesced_.emplace();
}

BrantBackend::WorkPtr BrantBackend::endCoalescing() {
  const std::scoped_lock lock(coalescing_mutex_);
  TORCH_CHECK(coalesced_, "brant: endCoalescing without startCoalescing");
  return c10::make_intrusive<CoalescedWork>(rank_, *std::exchange(coalesced_, std::nullopt));
}

void BrantBackend::require_root(std::int64_t root, const char* what) const {
  TORCH_CHECK(root >= 0 && root < size_, "brant: ", what, ": rank ", root, " is not in this group of ", size_);
}

BrantBackend::WorkPtr BrantBackend::allreduce(List& tensors, const c10d::AllreduceOptions& options) {
  require_one(tensors.size(), "all_reduce");
  const auto held = make_tensors("brant:all_reduce");
  const Reduction how = reduction_of(tensors[0], options.reduceOp, "all_reduce");
  return collect(OpType::ALLREDUCE, held, tensors, waits(options),
                 {brant::allreduce(held->out(tensors[0], true), how.type, how.op)});
}

BrantBackend::WorkPtr BrantBackend::allreduce_coalesced(List& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const auto held = make_tensors("brant:all_reduce_coalesced");
  Calls calls;
  for (const Tensor& tensor : tensors) {
    const Reduction how = reduction_of(tensor, options.reduceOp, "all_reduce");
    calls.push_back(brant::allreduce(held->out(tensor, true), how.type, how.op));
  }
  return collect(OpType::ALLREDUCE_COALESCED, held, tensors, waits(options), calls);
}

BrantBackend::WorkPtr BrantBackend::broadcast(List& tensors, const c10d::BroadcastOptions& options) {
  require_one(tensors.size(), "broadcast");
  require_root(options.rootRank, "broadcast");
  const auto held = make_tensors("brant:broadcast");
  const int root = static_cast<int>(options.rootRank);
  return collect(OpType::BROADCAST, held, tensors, waits(options),
                 {brant::broadcast(held->out(tensors[0], root == rank_), root)});
}

BrantBackend::WorkPtr BrantBackend::reduce(List& tensors, const c10d::ReduceOptions& options) {
  require_one(tensors.size(), "reduce");
  require_root(options.rootRank, "reduce");
  const auto held = make_tensors("brant:reduce");
  const Reduction how = reduction_of(tensors[0], options.reduceOp, "reduce");
  const int root = static_cast<int>(options.rootRank);
  const Buffer data = held->out(tensors[0], true);
  return collect(OpType::REDUCE, held, tensors, waits(options),
                 {brant::reduce_to(data, root == rank_ ? data : Buffer{}, how.type, how.op, root)});
}

BrantBackend::WorkPtr BrantBackend::allgather(Lists& outputs, List& inputs, const c10d::AllgatherOptions& options) {
  require_one(inputs.size(), "all_gather");
  require_one(outputs.size(), "all_gather");
  const auto held = make_tensors("brant:all_gather");
  const List& to = outputs[0];
  TORCH_CHECK(static_cast<int>(to.size()) == size_, "brant: all_gather takes a list of ", size_, " tensors, one for ",
              "each rank, and got ", to.size());
  const Buffer in = held->in(inputs[0]);
  const bool equal = std::ranges::all_of(to, [&](const Tensor& one) { return one.nbytes() == to[0].nbytes(); });
  if (equal) return collect(OpType::ALLGATHER, held, to, waits(options), {brant::allgather(in, held->out(to))});
  Calls calls;  // blocks of different sizes go to where they belong
  for (int root = 0; root < size_; ++root) {
    const Tensor& place = to[static_cast<std::size_t>(root)];
    if (root == rank_) Tensor(place).copy_(inputs[0].view_as(place));
    if (place.nbytes() != 0) calls.push_back(brant::broadcast(held->out(place, root == rank_), root));
  }
  return collect(OpType::ALLGATHER, held, to, waits(options), calls);
}

BrantBackend::WorkPtr BrantBackend::_allgather_base(Tensor& output, Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  List outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

BrantBackend::WorkPtr BrantBackend::allgather_coalesced(Lists& outputs, List& inputs,
                                                        const c10d::AllgatherOptions& options) {
  const auto held = make_tensors("brant:all_gather_coalesced");
  Calls calls;
  List all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    List to;  // given by rank, and then by tensor
    for (const List& of_rank : outputs) to.push_back(of_rank.at(i));
    const Buffer in = held->in(inputs[i]);
    calls.push_back(brant::allgather(in, held->out(to)));
    all.insert(all.end(), to.begin(), to.end());
  }
  return collect(OpType::ALLGATHER_COALESCED, held, all, waits(options), calls);
}

BrantBackend::WorkPtr BrantBackend::allgather_into_tensor_coalesced(List& outputs, List& inputs,
                                                                    const c10d::AllgatherOptions& options) {
  const auto held = make_tensors("brant:all_gather_into_tensor");
  Calls calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(inputs[i].numel() * size_ == outputs.at(i).numel(), "brant: all_gather_into_tensor: ", size_,
                " tensors of ", inputs[i].numel(), " elements do not fill one of ", outputs[i].numel());
    const Buffer in = held->in(inputs[i]), out = held->out(outputs[i], true);
    // Where this member's block is its place in the whole, it is there already.
    const bool in_place = in.data == static_cast<std::byte*>(out.data) + static_cast<std::size_t>(rank_) * in.bytes;
    calls.push_back(brant::allgather(in_place ? ConstBuffer{} : ConstBuffer(in), out));
  }
  return collect(OpType::_ALLGATHER_BASE, held, outputs, waits(options), calls);
}

BrantBackend::WorkPtr BrantBackend::reduce_scatter(List& outputs, Lists& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  require_one(outputs.size(), "reduce_scatter");
  require_one(inputs.size(), "reduce_scatter");
  const auto held = make_tensors("brant:reduce_scatter");
  const List& from = inputs[0];
  TORCH_CHECK(static_cast<int>(from.size()) == size_, "brant: reduce_scatter takes a list of ", size_, " tensors");
  const Reduction how = reduction_of(outputs[0], options.reduceOp, "reduce_scatter");
  const Buffer out = held->out(outputs[0], false);
  const bool equal = std::ranges::all_of(from, [&](const Tensor& one) { return one.nbytes() == from[0].nbytes(); });
  if (equal)
    return collect(OpType::REDUCE_SCATTER, held, outputs, waits(options),
                   {brant::reduce_scatter(held->in(from), out, how.type, how.op)});
  Calls calls;
  for (int root = 0; root < size_; ++root) {
    const Buffer in = held->in(from[static_cast<std::size_t>(root)]);
    if (in.bytes != 0) calls.push_back(brant::reduce_to(in, root == rank_ ? out : Buffer{}, how.type, how.op, root));
  }
  return collect(OpType::REDUCE_SCATTER, held, outputs, waits(options), calls);
}

BrantBackend::WorkPtr BrantBackend::_reduce_scatter_base(Tensor& output, Tensor& input,
                                                         const c10d::ReduceScatterOptions& options) {
  List outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

BrantBackend::WorkPtr BrantBackend::reduce_scatter_tensor_coalesced(List& outputs, List& inputs,
                                                                    const c10d::ReduceScatterOptions& options) {
  const auto held = make_tensors("brant:reduce_scatter_tensor");
  Calls calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs.at(i).numel() * size_ == inputs[i].numel(), "brant: reduce_scatter_tensor: a tensor of ",
                inputs[i].numel(), " elements is not ", size_, " of ", outputs[i].numel());
    const Reduction how = reduction_of(inputs[i], options.reduceOp, "reduce_scatter");
    Buffer in = held->in(inputs[i]);
    const Buffer out = held->out(outputs[i], true);
    // A result that lies within what it is made of, as FSDP has it: from a copy.
    const auto* const first = static_cast<std::byte*>(in.data);
    if (out.data >= first && out.data < first + in.bytes) in = held->in(inputs[i].clone());
    calls.push_back(brant::reduce_scatter(in, out, how.type, how.op));
  }
  return collect(OpType::_REDUCE_SCATTER_BASE, held, outputs, waits(options), calls);
}

/// Blocks of any sizes, as messages between pairs.
BrantBackend::WorkPtr BrantBackend::exchange(OpType type, const Shared& tensors, List outputs, bool waits, List sent,
                                             List received) {
  std::vector<Group::Transfer> sends, receives;
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
    sends.push_back({to, tensors->in(sent[static_cast<std::size_t>(to)])});
    receives.push_back({from, tensors->out(received[static_cast<std::size_t>(from)], false)});
  }
  const auto own = static_cast<std::size_t>(rank_);
  received[own].copy_(sent[own].view_as(received[own]));
  return begin(type, tensors, std::move(outputs), waits,
               [this, sends, receives](Done done) { group_.exchange(sends, receives, kTagOfBlocks, std::move(done)); });
}

BrantBackend::WorkPtr BrantBackend::alltoall(List& outputs, List& inputs, const c10d::AllToAllOptions& options) {
  TORCH_CHECK(static_cast<int>(outputs.size()) == size_ && static_cast<int>(inputs.size()) == size_,
              "brant: all_to_all takes lists of ", size_, " tensors, one for each rank");
  const auto held = make_tensors("brant:all_to_all");
  return exchange(OpType::ALLTOALL, held, outputs, waits(options), inputs, outputs);
}

BrantBackend::WorkPtr BrantBackend::alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_sizes,
                                                  std::vector<int64_t>& input_sizes,
                                                  const c10d::AllToAllOptions& options) {
  const auto held = make_tensors("brant:all_to_all_single");
  if (output_sizes.empty() && input_sizes.empty()) {
    TORCH_CHECK(input.numel() == output.numel() && input.numel() % size_ == 0,
                "brant: all_to_all_single: ", input.numel(), " and ", output.numel(),
                " elements are not equal blocks for ", size_, " ranks: give split sizes");
    const Buffer in = held->in(input);
    return collect(OpType::ALLTOALL_BASE, held, {output}, waits(options),
                   {brant::alltoall(in, held->out(output, false))});
  }
  return exchange(OpType::ALLTOALL_BASE, held, {output}, waits(options), rows_of(input, input_sizes, size_),
                  rows_of(output, output_sizes, size_));
}

BrantBackend::WorkPtr BrantBackend::gather(Lists& outputs, List& inputs, const c10d::GatherOptions& options) {
  require_one(inputs.size(), "gather");
  require_root(options.rootRank, "gather");
  const auto held = make_tensors("brant:gather");
  const int root = static_cast<int>(options.rootRank);
  const Buffer in = held->in(inputs[0]);
  if (root != rank_) return collect(OpType::GATHER, held, {}, waits(options), {brant::gather(in, {}, root)});
  require_one(outputs.size(), "gather");
  return collect(OpType::GATHER, held, outputs[0], waits(options), {brant::gather(in, held->out(outputs[0]), root)});
}

BrantBackend::WorkPtr BrantBackend::scatter(List& outputs, Lists& inputs, const c10d::ScatterOptions& options) {
  require_one(outputs.size(), "scatter");
  require_root(options.rootRank, "scatter");
  const auto held = make_tensors("brant:scatter");
  const int root = static_cast<int>(options.rootRank);
  const Buffer out = held->out(outputs[0], false);
  if (root != rank_) return collect(OpType::SCATTER, held, outputs, waits(options), {brant::scatter({}, out, root)});
  require_one(inputs.size(), "scatter");
  return collect(OpType::SCATTER, held, outputs, waits(options), {brant::scatter(held->in(inputs[0]), out, root)});
}

BrantBackend::WorkPtr BrantBackend::barrier(const c10d::BarrierOptions& options) {
  const auto held = make_tensors("brant:barrier");
  bool has_streams = false;
  job_->with(true, [&] { has_streams = streams_.used(); });
  if (has_streams) held->put_on_gpu();  // what they have to do comes before, too
  return begin(OpType::BARRIER, held, {}, waits(options),
               [this](Done done) { group_.collect({brant::barrier()}, std::move(done)); });
}

BrantBackend::WorkPtr BrantBackend::send(List& tensors, int to, int tag) {
  require_one(tensors.size(), "send");
  require_root(to, "send");
  const auto held = make_tensors("brant:send");
  const Buffer data = held->in(tensors[0]);
  return begin(OpType::SEND, held, {}, false,
               [this, to, data, tag](Done done) { group_.exchange({{to, data}}, {}, tag, std::move(done)); });
}

BrantBackend::WorkPtr BrantBackend::recv(List& tensors, int from, int tag) {
  require_one(tensors.size(), "recv");
  require_root(from, "recv");
  const auto held = make_tensors("brant:recv");
  const Buffer data = held->out(tensors[0], false);
  return begin(OpType::RECV, held, tensors, false,
               [this, from, data, tag](Done done) { group_.exchange({}, {{from, data}}, tag, std::move(done)); });
}

BrantBackend::WorkPtr BrantBackend::recvAnysource(List& tensors, int tag) {
  require_one(tensors.size(), "recv");
  const auto held = make_tensors("brant:recv_anysource");
  const Buffer data = held->out(tensors[0], false);
  return begin(OpType::RECVANYSOURCE, held, tensors, false,
               [this, data, tag](Done done) { group_.receive_any(data, tag, std::move(done)); });
}

}  // namespace brant::distributed
