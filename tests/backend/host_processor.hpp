#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backend/batch_processor.hpp"
#include "kernels/graph/batch.hpp"
#include "kernels/group.hpp"
#include "kernels/services.hpp"

namespace offload::backend::test {

/// A test's orders to a processor, given from another thread.
struct Orders {
  static constexpr std::uint32_t kNone = ~0U;

  std::atomic<bool> hold{false};         ///< batches stay in progress
  std::atomic<bool> fail_launch{false};  ///< the next ones
  std::atomic<bool> fail_batch{false};
  std::atomic<std::uint32_t> spoil{kNone};  ///< the answer to this message of a batch is invalid
  std::atomic<std::uint32_t> launched{0};
  std::atomic<std::uint32_t> most_messages{0};  ///< of a batch
  std::atomic<std::uint32_t> looks{0};
};

/// A processor on the thread that polls it: a batch is in progress until it was polled twice.
class HostProcessor final : public BatchProcessor {
 public:
  HostProcessor(Orders& orders, std::string service, std::uint32_t max_length,
                std::uint32_t batches, std::uint32_t capacity)
      : orders_(&orders),
        service_(std::move(service)),
        max_length_(max_length),
        capacity_(capacity) {
    for (std::uint32_t i = 0; i < batches; ++i) slots_.emplace_back(capacity);
  }

  [[nodiscard]] std::uint32_t batches() const override {
    return static_cast<std::uint32_t>(slots_.size());
  }
  [[nodiscard]] std::uint32_t capacity() const override { return capacity_; }
  kernels::RequestBatch* requests(std::uint32_t i) override {
    return reinterpret_cast<kernels::RequestBatch*>(slots_[i].requests.data());
  }
  kernels::ResponseBatch* responses(std::uint32_t i) override {
    return reinterpret_cast<kernels::ResponseBatch*>(slots_[i].responses.data());
  }
  void start_thread() override { started_ = true; }

  bool launch(std::uint32_t i, std::uint32_t bytes) override {
    if (!started_ || bytes == 0 || bytes > capacity_ || slots_[i].looks != kNotRunning ||
        orders_->fail_launch) {
      return false;
    }
    slots_[i].looks = 0;
    ++orders_->launched;
    if (requests(i)->count > orders_->most_messages) orders_->most_messages = requests(i)->count;
    return true;
  }

  State look(std::uint32_t i) override {
    Slot& slot = slots_[i];
    ++orders_->looks;
    if (orders_->hold || slot.looks++ == 0) return State::running;
    slot.looks = kNotRunning;
    if (orders_->fail_batch) return State::failed;
    kernels::with_service(service_, [&](auto chosen) {
      for (std::uint32_t m = 0; m < requests(i)->count; ++m) {
        kernels::serve_in_batch(kernels::SingleLane{},
                                {requests(i), responses(i), capacity_, max_length_}, m, chosen);
      }
    });
    if (const std::uint32_t m = orders_->spoil; m < requests(i)->count) {
      responses(i)->entries[m].length = 0xffff'fff0;
    }
    return State::done;
  }
  [[nodiscard]] std::string failure() const override { return "as the test said"; }

 private:
  static constexpr std::uint32_t kNotRunning = ~0U;
  struct Slot {
    explicit Slot(std::uint32_t capacity)
        : requests((sizeof(kernels::RequestBatch) + capacity + kernels::kSlack) / 16),
          responses((sizeof(kernels::ResponseBatch) + capacity + kernels::kSlack) / 16) {}
    std::vector<kernels::Block> requests;
    std::vector<kernels::Block> responses;
    std::uint32_t looks = kNotRunning;
  };

  Orders* orders_;
  std::string service_;
  std::uint32_t max_length_;
  std::uint32_t capacity_;
  std::deque<Slot> slots_;
  bool started_ = false;
};

}  // namespace offload::backend::test
