#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "channel/server_end.hpp"
#include "progress/context.hpp"

namespace offload::channel {

class Producer;

/// A request on its way. It is in flight until its slot is free again: its response has been
/// received, and the receive that held it posted anew.
class SendTask : public progress::Task {
 public:
  using ContextType = Producer;

  /// What to send: at most Producer::max_length() bytes, else invalid_value. submit() copies it,
  /// unless it is a long one that lies in the slot already.
  std::span<const std::byte> message;

  /// Which message of the channel it is, once submitted.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

 private:
  friend Producer;
  std::uint64_t sequence_ = 0;
};

/// Sends requests. One pool of capacity() tasks has as many as there are slots: where it has none
/// left, the channel is full, which is back-pressure and no error. With more tasks than that,
/// submit says `again`.
///
/// Submit a batch with submit_unflushed(); flush() then wakes the worker if it sleeps. Tasks end
/// with Consumer::flush(). Nothing allocates after construction.
class Producer final : public progress::Context {
 public:
  explicit Producer(const ServerEnd& server_end);
  ~Producer() override { end(); }

  /// Messages that fit into the channel.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return channel_.layout.depth; }
  /// Of a message, bytes.
  [[nodiscard]] std::uint32_t max_length() const noexcept { return channel_.layout.max_length; }

  /// The task that sent message `sequence`; null if it is not in flight any more.
  [[nodiscard]] SendTask* task_of(std::uint64_t sequence) const noexcept {
    return tasks_[channel_.layout.slot_index(sequence)];
  }

 private:
  friend class Consumer;

  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override { ringer_.ring(); }
  Step on_stop() noexcept override;
  /// There is nothing to look for: the consumer says when tasks end.
  bool on_poll(std::size_t) override { return false; }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override { return core::Duration::max(); }

  /// Ends the tasks of all messages before `sequence`.
  void complete_until(std::uint64_t sequence);

  kernels::ChannelView channel_;
  bool for_device_ = false;  ///< no processor but a GPU reads the requests, where they lie
  Cursors* cursors_;
  Ringer ringer_;
  std::vector<SendTask*> tasks_;  ///< in flight, by slot
};

}  // namespace offload::channel
