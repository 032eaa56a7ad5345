#pragma once

#include <memory>
#include <vector>

#include "backend/batch_processor.hpp"
#include "backend/channel_thread.hpp"
#include "backend/staged_batch.hpp"

namespace offload::backend {

/// The thread that serves a channel by launches: gathers the requests of the slots that have come,
/// has a processor answer them as one batch, and writes the answers, while it gathers the next.
class BatchWorker final : public ChannelThread {
 public:
  BatchWorker(const channel::SharedChannel& channel, core::Duration spin,
              std::unique_ptr<BatchProcessor> processor,
              SharedChannelTimes times = std::make_shared<ChannelTimes>());
  ~BatchWorker() { stop(); }
  BatchWorker(const BatchWorker&) = delete;
  BatchWorker& operator=(const BatchWorker&) = delete;

  /// After stop: answers the batches that were under way. False if one is still running at
  /// `deadline`.
  bool drain(core::TimePoint deadline);

  /// Why it has ended serving; empty while it serves.
  [[nodiscard]] std::string failure() const;

 private:
  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return is_waiting() ? progress::Expecting::from_device : progress::Expecting::from_thread;
  }
  void on_start() override { processor_->start_thread(); }
  core::Duration arm() override;

  [[nodiscard]] bool is_waiting() const { return answered_ != launched_; }
  bool launch_next();
  bool answer_oldest();
  void fail();

  std::unique_ptr<BatchProcessor> processor_;
  std::vector<StagedBatch> batches_;
  std::vector<core::TimePoint> sampled_;  ///< by batch: when it was launched; {}: not sampled
  std::uint64_t launched_ = 0;            ///< batches
  std::uint64_t answered_ = 0;            ///< batches, in the order of their launches
  std::atomic<bool> failed_{false};
};

}  // namespace offload::backend
