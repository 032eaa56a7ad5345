#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/clock.hpp"

namespace offload::server {

/// What the RetryCoordinators of all I/O threads share. All accesses are relaxed: each word is read
/// by itself and orders nothing.
struct RetryState {
  std::atomic<std::uint32_t> threads{0};        ///< that have suspects
  std::atomic<const void*> exclusive{nullptr};  ///< the coordinator that retries now
};

/// Decides when an I/O thread retries its suspects, the requests with which a worker was lost. One
/// worker serves the channels of several threads. So one thread retries at a time, and the others
/// post nothing: a request that is alone in its channel is alone with its worker. One thread.
class RetryCoordinator {
 public:
  enum class State : std::uint8_t {
    idle,       ///< no thread retries, or this one has no worker to retry with
    wait,       ///< another thread retries: nothing is to be posted
    exclusive,  ///< this thread retries
    shared      ///< another thread has retried for too long: this one goes on as well
  };

  /// A crash follows its request within milliseconds. A request that takes longer, or makes its
  /// worker hang, does not keep the other channels waiting.
  static constexpr core::Duration kLongestWait = std::chrono::milliseconds(100);

  explicit RetryCoordinator(std::shared_ptr<RetryState> all) : all_(std::move(all)) {}
  RetryCoordinator(const RetryCoordinator&) = delete;
  RetryCoordinator& operator=(const RetryCoordinator&) = delete;
  ~RetryCoordinator() { update(false, false, {}); }

  /// To be called once a turn. `suspects`: this thread has some. `served`: it has a worker.
  State update(bool suspects, bool served, core::RunTime now) noexcept {
    if (suspects || suspects_ || all_->threads.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      return state_ = decide(suspects, served, now);
    }
    return state_ = State::idle;
  }
  [[nodiscard]] State state() const noexcept { return state_; }

 private:
  State decide(bool suspects, bool served, core::RunTime now) noexcept {
    if (std::exchange(suspects_, suspects) != suspects) {
      all_->threads.fetch_add(suspects ? 1U : ~0U, std::memory_order_relaxed);
    }
    const void* holder = this;
    if (!suspects || !served) {
      all_->exclusive.compare_exchange_strong(holder, nullptr, std::memory_order_relaxed);
    }
    if (!served || all_->threads.load(std::memory_order_relaxed) == 0) {
      waits_since_.reset();
      return State::idle;
    }
    holder = nullptr;
    if (suspects &&
        (all_->exclusive.compare_exchange_strong(holder, this, std::memory_order_relaxed) ||
         holder == this)) {
      waits_since_.reset();
      return State::exclusive;
    }
    if (!waits_since_) waits_since_ = now;
    return now - *waits_since_ < kLongestWait ? State::wait : State::shared;
  }

  std::shared_ptr<RetryState> all_;
  bool suspects_ = false;  ///< as all_->threads counts it
  std::optional<core::RunTime> waits_since_;
  State state_ = State::idle;
};

}  // namespace offload::server
