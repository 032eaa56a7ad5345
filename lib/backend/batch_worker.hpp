#pragma once

#include <memory>
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
              SharedChannelTimes times = std::make_shared<ChannelTimes>());
  ~BatchWorker() { stop(); }
  BatchWorker& operator=(BatchWorker&&) = delete;

  /// Answers the batches that were in flight at stop(). Returns false if one is still running at
  /// `deadline`.
  bool drain(core::TimePoint deadline);

  /// Returns why it has stopped serving; empty while it serves.
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
  std::vector<core::TimePoint> sampled_;  ///< by batch: the time of its launch; {}: not sampled
  std::uint64_t launched_ = 0;            ///< batches
  std::uint64_t answered_ = 0;            ///< batches, in the order of their launches
  std::atomic<bool> failed_{false};
};

}  // namespace offload::backend
