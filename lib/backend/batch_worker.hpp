#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/batch_processor.hpp"
#include "backend/channel_thread.hpp"
#include "backend/staged_batch.hpp"

namespace offload::backend {

/// The thread that serves a channel with launches: it gathers the requests that have arrived, lets
/// a processor answer them as one batch, and writes the answers while it gathers the next batch.
class BatchWorker final : public ChannelThread {
 public:
  BatchWorker(const channel::SharedChannel& channel, core::Duration spin,
              std::unique_ptr<BatchProcessor> processor,
              SharedChannelTimes times = std::make_shared<ChannelTimes>())
      : ChannelThread(channel, spin, std::move(times)),
        processor_(std::move(processor)),
        sampled_(processor_->batches()) {
    for (std::uint32_t i = 0; i < processor_->batches(); ++i) {
      batches_.emplace_back(processor_->requests(i), processor_->responses(i),
                            processor_->capacity());
    }
  }
  ~BatchWorker() { stop(); }
  BatchWorker& operator=(BatchWorker&&) = delete;

  /// Answers the batches that were in flight at stop(). Returns false if one is still running at
  /// `deadline`.
  bool drain(core::TimePoint deadline) {
    while (is_waiting()) {
      if (answer_oldest() || !is_waiting()) continue;
      if (core::Clock::now() > deadline) return false;
      std::this_thread::sleep_for(kDrainPoll);
    }
    return true;
  }

  /// Returns why it has stopped serving; empty while it serves.
  [[nodiscard]] std::string failure() const {
    return failed_.load(std::memory_order_acquire) ? processor_->failure() : std::string();
  }

 private:
  using State = BatchProcessor::State;
  using Taken = StagedBatch::Taken;

  /// The interval of polls of the batches in flight at the end: a batch takes some tens of
  /// microseconds.
  static constexpr core::Duration kDrainPoll = std::chrono::microseconds(100);
  /// The time of one in this number of batches is measured.
  static constexpr std::uint64_t kSampledBatches = 16;

  bool poll() override {
    // Relaxed: only this thread writes it.
    if (failed_.load(std::memory_order_relaxed)) return false;
    const bool launched = launch_next();
    return answer_oldest() || launched;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return is_waiting() ? progress::Expecting::from_device : progress::Expecting::from_thread;
  }
  void on_start() override { processor_->start_thread(); }
  core::Duration arm() override {
    // A GPU wakes no thread: poll it until it is done.
    if (is_waiting() && !failed_.load(std::memory_order_relaxed)) return {};
    return ChannelThread::arm();
  }

  [[nodiscard]] bool is_waiting() const { return answered_ != launched_; }
  /// Fills a free batch, if there is one, with the requests that have arrived, and launches it.
  bool launch_next() {
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
  bool answer_oldest() {
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
  void fail() {
    failed_.store(true, std::memory_order_release);  // pairs with the acquire in failure()
  }

  std::unique_ptr<BatchProcessor> processor_;
  std::vector<StagedBatch> batches_;
  std::vector<core::TimePoint> sampled_;  ///< by batch: the time of its launch; {}: not sampled
  std::uint64_t launched_ = 0;            ///< batches
  std::uint64_t answered_ = 0;            ///< batches, in the order of their launches
  std::atomic<bool> failed_{false};
};

}  // namespace offload::backend
