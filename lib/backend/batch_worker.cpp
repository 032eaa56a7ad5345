#include "backend/batch_worker.hpp"

#include <utility>

namespace offload::backend {

/// The interval of polls of the batches in flight at the end: a batch takes some tens of
/// microseconds.
constexpr core::Duration kDrainPoll = std::chrono::microseconds(100);

/// The time of one in this number of batches is measured.
constexpr std::uint64_t kSampledBatches = 16;

using State = BatchProcessor::State;
using Taken = StagedBatch::Taken;

BatchWorker::BatchWorker(const channel::SharedChannel& channel, core::Duration spin,
                         std::unique_ptr<BatchProcessor> processor, SharedChannelTimes times)
    : ChannelThread(channel, spin, std::move(times)),
      processor_(std::move(processor)),
      sampled_(processor_->batches()) {
  for (std::uint32_t i = 0; i < processor_->batches(); ++i) {
    batches_.emplace_back(processor_->requests(i), processor_->responses(i),
                          processor_->capacity());
  }
}

bool BatchWorker::poll() {
  // Relaxed: only this thread writes it.
  if (failed_.load(std::memory_order_relaxed)) return false;
  const bool launched = launch_next();
  return answer_oldest() || launched;
}

core::Duration BatchWorker::arm() {
  // A GPU wakes no thread: poll it until it is done.
  if (is_waiting() && !failed_.load(std::memory_order_relaxed)) return {};
  return ChannelThread::arm();
}

/// Fills a free batch, if there is one, with the requests that have arrived, and launches it.
bool BatchWorker::launch_next() {
  if (launched_ - answered_ == batches_.size()) return false;
  const auto i = static_cast<std::uint32_t>(launched_ % batches_.size());
  StagedBatch& batch = batches_[i];
  batch.clear();
  bool refused = false;
  for (Taken taken{}; (taken = batch.take(channel(), sequence_, staging_)) != Taken::nothing &&
                      taken != Taken::full;
       ++sequence_) {
    if (taken != Taken::refused) continue;
    report(sequence_);
    refused = true;
  }
  if (refused) ring();
  if (batch.count() == 0) return refused;
  sampled_[i] = launched_ % kSampledBatches == 0 ? core::Clock::now() : core::TimePoint{};
  if (!processor_->launch(i, batch.bytes())) {
    fail();
    return false;
  }
  ++launched_;
  return true;
}

/// Answers the oldest batch in flight, if it is done: the server takes answers in order.
bool BatchWorker::answer_oldest() {
  if (!is_waiting()) return false;
  const auto i = static_cast<std::uint32_t>(answered_ % batches_.size());
  const State state = processor_->look(i);
  if (state == State::running) return false;
  ++answered_;
  if (state == State::failed) {
    fail();
    return false;
  }
  for (std::uint32_t slot = 0; slot < batches_[i].slots(); ++slot) {
    if (!batches_[i].answer(channel(), slot, staging_)) report(batches_[i].sequence(slot));
  }
  ring();
  if (sampled_[i] != core::TimePoint{}) {
    times().add_sample(sampled_[i], core::Clock::now(), batches_[i].bytes());
  }
  return true;
}

void BatchWorker::fail() {
  failed_.store(true, std::memory_order_release);  // pairs with the acquire in failure()
}

std::string BatchWorker::failure() const {
  return failed_.load(std::memory_order_acquire) ? processor_->failure() : std::string();
}

bool BatchWorker::drain(core::TimePoint deadline) {
  while (is_waiting()) {
    if (answer_oldest() || !is_waiting()) continue;
    if (core::Clock::now() > deadline) return false;
    std::this_thread::sleep_for(kDrainPoll);
  }
  return true;
}

}  // namespace offload::backend
