#include "tasks/gpu/cuda_copy_context.hpp"

#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "tasks/copy/piece_cursor.hpp"

namespace offload::gpu {
namespace {

/// The time for which the destructor waits for copies in flight; each takes milliseconds.
constexpr core::Duration kAbandonTime = std::chrono::seconds(2);

std::size_t checked(std::size_t most_in_flight) {
  if (most_in_flight != 0) return most_in_flight;
  throw core::Error(core::ErrorCode::invalid_value, "a copy context needs at least one copy");
}

/// Starts a copy for each piece; false where CUDA takes none.
bool start_copies(const copy::CopyTask& task, std::size_t length, CudaStreamRef stream) noexcept {
  copy::PieceCursor cursor(*task.source, *task.destination);
  while (length != 0) {
    const copy::Piece piece = cursor.next(length);
    if (cudaMemcpyAsync(piece.to, piece.from, piece.length, cudaMemcpyDefault, stream.get()) !=
        cudaSuccess) {
      return false;
    }
    length -= piece.length;
  }
  return true;
}

}  // namespace

CudaCopyContext::CudaCopyContext(std::size_t most_in_flight, std::optional<CudaStreamRef> stream,
                                 std::string name)
    : CopyContext(std::move(name), kMostElements),
      most_in_flight_(checked(most_in_flight)),
      given_stream_(stream) {}

progress::Context::Step CudaCopyContext::on_start() {
  std::vector<Event> events(most_in_flight_);
  if (!given_stream_) own_stream_.emplace();
  events_ = std::move(events);
  free_.clear();
  free_.reserve(most_in_flight_);
  for (std::size_t i = 0; i < most_in_flight_; ++i) free_.push_back(i);
  return Step::done;
}

void CudaCopyContext::wait_for_stream() noexcept {
  const auto deadline = core::Clock::now() + kAbandonTime;
  while (stream().query() == cudaErrorNotReady) {
    if (core::Clock::now() > deadline) {
      core::log_error("copies of '{}' continue after its end", name());
      return;
    }
    std::this_thread::yield();
  }
}

/// The task's note is the index of the event that marks its end.
core::Status CudaCopyContext::take(copy::CopyTask& task) noexcept {
  if (free_.empty()) return core::ErrorCode::full;
  for (const auto elsewhere : {memory::Location::process, memory::Location::peer}) {
    if (task.source->any_at(elsewhere) || task.destination->any_at(elsewhere)) {
      return core::ErrorCode::not_supported;
    }
  }
  Plan& plan = plan_of(task);
  plan.note = free_.back();
  if (!start_copies(task, plan.length, stream()) ||
      events_[plan.note].record(stream()) != cudaSuccess) {
    cudaGetLastError();  // clears the error, which is reported here
    wait_for_stream();   // a task that is refused is the caller's again
    return core::ErrorCode::driver;
  }
  free_.pop_back();
  return {};
}

bool CudaCopyContext::on_poll(std::size_t most) {
  if (state() == State::stopping) return poll_stop();
  std::size_t completed = 0;
  while (completed < most) {
    copy::CopyTask* const task = first();
    if (task == nullptr) break;
    const std::size_t event = plan_of(*task).note;
    const cudaError_t status = events_[event].query();
    if (status == cudaErrorNotReady) break;
    free_.push_back(event);  // has its room since the start
    ++completed;
    finish(*task, status == cudaSuccess ? core::Status{} : core::ErrorCode::driver);
  }
  return completed != 0;
}

/// Asks the events, not the stream, which may have other work to do.
bool CudaCopyContext::poll_stop() {
  for (copy::CopyTask* task = first(); task != nullptr; task = next(*task)) {
    if (events_[plan_of(*task).note].query() == cudaErrorNotReady) return false;
  }
  stopped();
  return true;
}

}  // namespace offload::gpu
