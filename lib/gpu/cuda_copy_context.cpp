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

}  // namespace

CudaCopyContext::CudaCopyContext(std::size_t most_in_flight, std::string name)
    : CopyContext(std::move(name)), most_in_flight_(most_in_flight) {
  if (most_in_flight == 0) {
    throw core::Error(core::ErrorCode::invalid_value, "a copy context takes one copy or more");
  }
}

CudaCopyContext::~CudaCopyContext() {
  end();
}

progress::Context::Step CudaCopyContext::on_start() {
  auto stream = std::make_unique<Stream>();
  std::vector<Event> events(most_in_flight_);
  stream_ = std::move(stream);
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
  const auto deadline = core::Clock::now() + kAbandonTime;
  while (cudaStreamQuery(stream_->get()) == cudaErrorNotReady) {
    if (core::Clock::now() > deadline) {
      spdlog::error("copies of '{}' go on after it has ended", name());
      return;
    }
    std::this_thread::yield();
  }
}

/// Notes which event tells the end of a task.
core::Status CudaCopyContext::take(copy::CopyTask& task) noexcept {
  if (free_.empty()) return core::ErrorCode::full;
  const std::size_t event = free_.back();
  if (cudaMemcpyAsync(task.destination.data(), task.source.data(), task.source.size(),
                      cudaMemcpyDefault, stream_->get()) != cudaSuccess) {
    cudaGetLastError();  // reported here: the next call is not to find it
    return core::ErrorCode::driver;
  }
  if (cudaEventRecord(events_[event].get(), stream_->get()) != cudaSuccess) {
    cudaGetLastError();
    on_abandon();  // a task that is refused is the caller's again
    return core::ErrorCode::driver;
  }
  free_.pop_back();
  note_of(task) = event;
  return {};
}

bool CudaCopyContext::on_poll(std::size_t most) {
  if (state() == State::stopping) {
    if (cudaStreamQuery(stream_->get()) == cudaErrorNotReady) return false;
    stopped();
    return true;
  }
  std::size_t completed = 0;
  while (completed < most) {
    copy::CopyTask* const task = first();
    if (task == nullptr) break;
    const cudaError_t status = cudaEventQuery(events_[note_of(*task)].get());
    if (status == cudaErrorNotReady) break;
    free_.push_back(note_of(*task));  // has its room since the start
    ++completed;
    complete(*task, status == cudaSuccess ? core::Status{} : core::ErrorCode::driver);
  }
  return completed != 0;
}

}  // namespace offload::gpu
