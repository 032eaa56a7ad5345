#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "rdma/queues/completion_writer.hpp"

namespace offload::rdma::model {

/// The card's side of a completion queue, which several queue pairs may have in common. One thread.
class Completions {
 public:
  struct Options {
    bool checks_overrun = false;  ///< by the record of the consumer
    /// The record by which the owner asks for an event. The card overwrites what it has read, so
    /// that a request is seen once, also when another queue's doorbell comes right behind its own.
    std::uint32_t* armed = nullptr;
    std::uint32_t number = 0;
  };

  explicit Completions(const kernels::rdma::CompletionQueue& queue) : Completions(queue, {}) {}
  Completions(const kernels::rdma::CompletionQueue& queue, const Options& options)
      : queue_(queue), options_(options), writer_(queue) {
    if (options_.armed != nullptr) *options_.armed = kNoRequest;
  }

  /// Writes a completion. `solicited`: an owner may have asked for an event for such ones only.
  /// Returns false if it has no room: the queue is in error then, and takes no more.
  bool write(const kernels::rdma::Completion& completion, bool solicited = false);
  [[nodiscard]] std::uint64_t written() const noexcept { return writer_.written(); }
  [[nodiscard]] bool in_error() const noexcept { return in_error_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return options_.number; }

  /// Returns the record, if it is looked at.
  [[nodiscard]] std::span<const std::uint32_t> record() const noexcept {
    return {queue_.record, options_.checks_overrun ? 1U : 0U};
  }
  /// Returns the newest entry. Precondition: one was written.
  [[nodiscard]] std::span<const kernels::rdma::Cqe> newest() const noexcept {
    const std::uint64_t places = std::uint64_t{1} << queue_.log2;
    return {&queue_.entries[(writer_.written() - 1) % places], 1};
  }

  /// Takes the owner's request for an event, if there is one, as a doorbell was rung.
  void rung() noexcept;
  /// Returns whether an event is due; there is one for each request.
  bool has_event() noexcept;

  /// Completions that a rude or slow card writes later, in this order.
  struct Late {
    std::uint32_t pair;
    kernels::rdma::Completion completion;
    bool solicited;
  };
  std::deque<Late> late;

 private:
  /// No owner writes this.
  static constexpr std::uint32_t kNoRequest = ~std::uint32_t{0};

  enum class Armed : std::uint8_t { no, solicited, any };

  kernels::rdma::CompletionQueue queue_;
  Options options_;
  CompletionWriter writer_;
  std::uint64_t solicited_end_ = 0;  ///< behind the newest solicited one
  Armed armed_ = Armed::no;
  std::uint64_t armed_at_ = 0;
  bool in_error_ = false;
};

}  // namespace offload::rdma::model
