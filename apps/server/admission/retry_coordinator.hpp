#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/cpu.hpp"

namespace offload::server {

/// The state that the RetryCoordinators of all I/O threads share. All accesses to its atomics are
/// relaxed: each word is read independently and orders nothing.
struct RetryState {
  struct Times {
    /// Workers of one process, or of one machine that fails, are lost within this time. A request
    /// that is posted earlier may reach a worker that has already ended: not the request's fault.
    core::Duration settle = std::chrono::milliseconds(20);
    /// A crash follows its request within milliseconds. A request that takes longer, or makes its
    /// worker hang, does not keep the other channels waiting.
    core::Duration longest_wait = std::chrono::milliseconds(100);
    /// A channel may have thousands of requests, and one by one they take long. After a loss that
    /// was no crash this bounds the gap.
    core::Duration longest_alone = core::seconds(1);
  };

  explicit RetryState(std::size_t thread_count, const Times& limits)
      : changes(thread_count), times(limits) {}
  explicit RetryState(std::size_t thread_count = 1) : RetryState(thread_count, Times{}) {}

  std::atomic<std::uint32_t> threads{0};        ///< that have suspects
  std::atomic<const void*> exclusive{nullptr};  ///< the coordinator that retries now
  /// The number of times that a thread's channel got its first request or its last response: odd
  /// while the channel has requests. Written by its thread.
  struct alignas(core::kCacheLinePair) Changes {
    std::atomic<std::uint64_t> count{0};
  };
  std::vector<Changes> changes;
  const Times times;
};

/// Decides when an I/O thread retries its suspects, the requests with which a worker was lost. One
/// worker serves the channels of several threads. So one thread retries at a time, while the
/// channels of all others are empty: then its request is alone with its worker. One thread.
class RetryCoordinator {
 public:
  enum class State : std::uint8_t {
    idle,       ///< no thread retries, or this one has no worker to retry with
    wait,       ///< nothing may be posted: another thread retries, or it is too early
    exclusive,  ///< this thread retries
    shared      ///< it has waited long enough: retries and new requests are posted
  };

  /// `thread`: its index in `all`->changes.
  RetryCoordinator(std::shared_ptr<RetryState> all, std::size_t thread)
      : all_(std::move(all)), own_(&all_->changes.at(thread)) {}
  RetryCoordinator& operator=(RetryCoordinator&&) = delete;
  ~RetryCoordinator() { update(Suspects::none, false, {}); }

  /// A worker was lost, whether it served this thread or not.
  void note_loss(core::RunTime now) noexcept { waits_since_ = lost_at_ = now; }
  /// This thread's channel has moved to another worker.
  void note_move(core::RunTime now) noexcept { waits_since_ = now; }

  /// The requests that a thread must retry.
  enum class Suspects : std::uint8_t {
    none,
    some,
    doubted  ///< the next one would be the culprit if it were alone with one more lost worker
  };

  /// To be called once a turn, before requests are posted. `served`: the thread has a worker.
  State update(Suspects suspects, bool served, core::RunTime now) noexcept {
    const bool any = suspects != Suspects::none;
    if (any || suspects_ || all_->threads.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      return state_ = decide(any, suspects == Suspects::doubted, served, now);
    }
    return state_ = State::idle;
  }
  [[nodiscard]] State state() const noexcept { return state_; }
  /// To be called once a turn, after requests are posted. `awaits`: a worker has some of them.
  void publish(bool awaits) noexcept {
    if (std::exchange(awaits_, awaits) == awaits) return;
    own_->count.store(own_->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// Returns whether suspects with which one worker was lost must be posted together.
  [[nodiscard]] bool hurries(core::RunTime now) const noexcept {
    return now - waits_since_ >= all_->times.longest_alone;
  }

  /// A suspect was posted in this turn.
  void note_retry() noexcept {
    retried_ = state_ == State::exclusive ? std::optional(others_) : std::nullopt;
  }
  /// Returns whether no other thread had requests with a worker since the last suspect's posting.
  [[nodiscard]] bool was_alone() const noexcept { return retried_ && *retried_ == others().count; }

 private:
  struct Others {
    std::uint64_t count;  ///< of changes, in all
    bool await;           ///< one of them has requests
  };
  [[nodiscard]] Others others() const noexcept {
    Others found{0, false};
    for (const auto& one : all_->changes) {
      if (&one == own_) continue;
      const auto count = one.count.load(std::memory_order_relaxed);
      found.count += count;
      found.await |= count % 2 == 1;
    }
    return found;
  }

  State decide(bool suspects, bool settle, bool served, core::RunTime now) noexcept {
    if (std::exchange(suspects_, suspects) != suspects) {
      all_->threads.fetch_add(suspects ? 1U : ~0U, std::memory_order_relaxed);
    }
    const void* holder = this;
    if (!suspects || !served) {
      all_->exclusive.compare_exchange_strong(holder, nullptr, std::memory_order_relaxed);
    }
    if (!served || all_->threads.load(std::memory_order_relaxed) == 0) return State::idle;
    holder = nullptr;
    if (suspects && (!settle || now - lost_at_ >= all_->times.settle) &&
        (all_->exclusive.compare_exchange_strong(holder, this, std::memory_order_relaxed) ||
         holder == this)) {
      const Others found = others();
      others_ = found.count;
      if (!found.await) return State::exclusive;
    }
    return now - waits_since_ < all_->times.longest_wait ? State::wait : State::shared;
  }

  std::shared_ptr<RetryState> all_;
  RetryState::Changes* own_;
  bool suspects_ = false;  ///< as all_->threads counts it
  bool awaits_ = false;    ///< as own_ says
  core::RunTime lost_at_{};
  core::RunTime waits_since_{};
  std::uint64_t others_ = 0;              ///< Others::count in this turn
  std::optional<std::uint64_t> retried_;  ///< the same, when a suspect was posted exclusively
  State state_ = State::idle;
};

}  // namespace offload::server
