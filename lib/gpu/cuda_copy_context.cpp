#include "gpu/cuda_copy_context.hpp"

#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::gpu {
namespace {

/// What copies under way get when their context ends; any of them takes milliseconds.
constexpr core::Duration kAbandonTime = std::chrono::seconds(2);

std::size_t checked(std::size_t most_in_flight) {
  if (most_in_flight != 0) return most_in_flight;
  throw core::Error(core::ErrorCode::invalid_value, "a copy context takes one copy or more");
}

/// Starts the copies of a list to `target`; false where CUDA takes none.
bool copy_list(const memory::Buffer& head, std::byte* target, cudaStream_t stream) noexcept {
  for (const memory::Buffer* buffer = &head; buffer != nullptr; buffer = buffer->next()) {
    const auto data = buffer->data();
    if (data.empty()) continue;
    if (cudaMemcpyAsync(target, data.data(), data.size(), cudaMemcpyDefault, stream) !=
        cudaSuccess) {
      return false;
    }
    target += data.size();
  }
  return true;
}

}  // namespace

CudaCopyContext::CudaCopyContext(std::size_t most_in_flight, std::string name)
    : CopyContext(std::move(name), kMostElements),
      most_in_flight_(checked(most_in_flight)),
      makes_stream_(true) {}

CudaCopyContext::CudaCopyContext(std::size_t most_in_flight, Stream stream, std::string name)
    : CopyContext(std::move(name), kMostElements),
      most_in_flight_(checked(most_in_flight)),
      makes_stream_(false),
      stream_(std::move(stream)) {}

CudaCopyContext::~CudaCopyContext() {
  end();
}

progress::Context::Step CudaCopyContext::on_start() {
  std::vector<Event> events(most_in_flight_);
  if (makes_stream_) stream_.emplace();
  events_ = std::move(events);
  free_.clear();
  free_.reserve(most_in_flight_);
  for (std::size_t i = 0; i < most_in_flight_; ++i) free_.push_back(i);
  return Step::done;
}

progress::Context::Step CudaCopyContext::on_stop() noexcept {
  return in_flight() == 0 ? Step::done : Step::in_progress;
}

void CudaCopyContext::on_abandon() noexcept {
  wait_for_stream();
}

void CudaCopyContext::wait_for_stream() noexcept {
  const auto deadline = core::Clock::now() + kAbandonTime;
  while (cudaStreamQuery(stream_->get()) == cudaErrorNotReady) {
    if (core::Clock::now() > deadline) {
      core::log_error("copies of '{}' go on after it has ended", name());
      return;
    }
    std::this_thread::yield();
  }
}

/// Notes which event tells the end of a task.
core::Status CudaCopyContext::take(copy::CopyTask& task) noexcept {
  if (free_.empty()) return core::ErrorCode::full;
  Plan& plan = plan_of(task);
  plan.note = free_.back();
  if (!copy_list(*task.source, plan.target, stream_->get()) ||
      cudaEventRecord(events_[plan.note].get(), stream_->get()) != cudaSuccess) {
    cudaGetLastError();  // reported here: the next call is not to find it
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
    const cudaError_t status = cudaEventQuery(events_[event].get());
    if (status == cudaErrorNotReady) break;
    free_.push_back(event);  // has its room since the start
    ++completed;
    finish(*task, status == cudaSuccess ? core::Status{} : core::ErrorCode::driver);
  }
  return completed != 0;
}

/// Not by the stream, which may have other work to do.
bool CudaCopyContext::poll_stop() {
  for (copy::CopyTask* task = first(); task != nullptr; task = next(*task)) {
    if (cudaEventQuery(events_[plan_of(*task).note].get()) == cudaErrorNotReady) return false;
  }
  stopped();
  return true;
}

}  // namespace offload::gpu
