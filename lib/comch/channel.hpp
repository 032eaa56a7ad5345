#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "kernels/slot.hpp"
#include "memory/shared_memory.hpp"
#include "progress/doorbell.hpp"
#include "protocol/control.hpp"

/// The server's end of a data channel. The words are comch's: a producer sends tasks, a consumer
/// has receives posted. A slot of the channel is one task of each: the request goes out in the
/// slot's send task, the response arrives in its posted receive, and reposting that frees both.
/// Responses are taken in the order of their requests.
///
/// Everything here belongs to one thread. Nothing allocates after construction.
namespace offload::comch {

/// A request on its way.
struct SendTask {
  void* user_data;  ///< the caller's, untouched
  std::uint64_t sequence;
};

/// A response that arrived.
struct PostRecvTask {
  SendTask* request;             ///< what it answers
  kernels::Status status;        ///< anything but ok: no payload
  std::span<std::byte> payload;  ///< where it is: see Consumer::receive
};

/// How far a channel's messages got, shared by its two ends: posted >= received >= reposted.
struct Cursors {
  std::uint64_t posted = 0;
  std::uint64_t received = 0;
  std::uint64_t reposted = 0;
};

/// Sends requests.
class Producer {
 public:
  Producer(const kernels::Channel& channel, Cursors& cursors, progress::Ringer ringer);

  /// A task to send with; nullptr when all are in flight: back-pressure, not an error. It must be
  /// submitted before the next is allocated.
  [[nodiscard]] SendTask* allocate() noexcept {
    if (full()) return nullptr;
    SendTask& task = tasks_[channel_.layout.slot_of(cursors_->posted)];
    task.sequence = cursors_->posted;
    return &task;
  }

  /// Sends `payload` (at most the channel's max_length bytes), which is copied.
  void submit(SendTask& task, std::span<const std::byte> payload) noexcept;

  /// Ends a batch of submits: wakes the worker if it sleeps.
  void flush() noexcept;

  /// Messages that fit.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return channel_.layout.depth; }
  [[nodiscard]] bool full() const noexcept {
    return cursors_->posted - cursors_->reposted == channel_.layout.depth;
  }
  /// The task of a message in flight.
  [[nodiscard]] SendTask& task(std::uint64_t sequence) noexcept {
    return tasks_[channel_.layout.slot_of(sequence)];
  }

 private:
  kernels::Channel channel_;
  Cursors* cursors_;
  progress::Ringer ringer_;
  std::vector<SendTask> tasks_;
};

/// How the worker at the other end tells that it answered.
enum class Peer : std::uint8_t {
  absent,  ///< there is none
  rings,   ///< it rings the doorbell
  silent,  ///< it cannot: look at times
};

/// Receives responses.
class Consumer {
 public:
  Consumer(const kernels::Channel& channel, Cursors& cursors, Producer& producer,
           progress::Waiter waiter);

  /// The next response in order, nullptr if it is not there yet. A packed payload is written to
  /// `packed_to`, which has room for kMaxPacked + kSlack bytes; a plain one stays in the slot until
  /// the task is reposted.
  PostRecvTask* receive(std::byte* packed_to) noexcept;

  /// Frees the slot. Tasks are reposted in the order in which they were received.
  void repost(PostRecvTask& task) noexcept;

  /// Ends a batch of reposts: publishes how far the server got.
  void flush() noexcept;

  /// How far the server got as of the last flush. Any thread.
  [[nodiscard]] std::uint64_t consumed() const noexcept {
    return consumed_.load(std::memory_order_relaxed);  // an older value does as well
  }

  [[nodiscard]] std::uint64_t in_flight() const noexcept {
    return cursors_->posted - cursors_->received;
  }

  /// As progress::Pollable has it.
  core::Duration arm() noexcept;
  void disarm() noexcept;
  /// Readable, edge-triggered, when a response came while armed.
  [[nodiscard]] int fd() const noexcept { return waiter_.fd(); }

  void set_peer(Peer peer) noexcept { peer_ = peer; }
  [[nodiscard]] Peer peer() const noexcept { return peer_; }

 private:
  kernels::Channel channel_;
  Cursors* cursors_;
  Producer* producer_;
  progress::Waiter waiter_;
  Peer peer_ = Peer::absent;
  bool armed_ = false;
  std::atomic<std::uint64_t> consumed_{0};  ///< the channel header's, out of the worker's reach
  std::vector<PostRecvTask> tasks_;
};

/// A channel over shared memory, as the server makes it.
class Channel {
 public:
  /// A valid shape (kernels::is_valid_shape). `numa_node`: where its memory is; -1 for anywhere.
  /// Throws Error.
  Channel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
          int numa_node);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Producer& producer() noexcept { return producer_; }
  Consumer& consumer() noexcept { return consumer_; }
  [[nodiscard]] const Cursors& cursors() const noexcept { return cursors_; }

  /// Puts right what a former worker may have scribbled over, before the next is told. The control
  /// thread, at any time: what it writes may be older than what is there, which does no harm.
  void repair_header() noexcept;

  /// What the worker is told, and the descriptors that go with it.
  [[nodiscard]] protocol::ChannelDescriptor descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] std::array<int, 3> fds() const noexcept {
    return {memory_.fd(), request_bell_.get(), response_bell_.get()};
  }

 private:
  protocol::ChannelDescriptor descriptor_;
  kernels::ChannelLayout layout_;
  memory::SharedMemory memory_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::Channel channel_;
  Cursors cursors_;
  Producer producer_;
  Consumer consumer_;
};

/// A channel over shared memory, as the worker maps it.
class ChannelImport {
 public:
  /// Checks everything that the server said. Throws Error (bad_message, invalid_value).
  ChannelImport(const protocol::ChannelDescriptor& descriptor, std::array<core::Fd, 3> fds);

  [[nodiscard]] const kernels::Channel& channel() const noexcept { return channel_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// Where requests are waited for.
  [[nodiscard]] progress::Waiter waiter() const noexcept {
    return {channel_.header().requests, request_bell_.get()};
  }
  /// Where responses are announced.
  [[nodiscard]] progress::Ringer ringer() const noexcept {
    return {channel_.header().responses, response_bell_.get()};
  }

 private:
  std::uint32_t index_;
  memory::SharedMemory memory_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::Channel channel_;
};

}  // namespace offload::comch
