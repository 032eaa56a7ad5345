#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma {

namespace wire = kernels::rdma;

/// The memory of a queue pair's queues, and what its owner does with them.
class QueueOwner {
 public:
  explicit QueueOwner(const QueueSizes& sizes, std::uint32_t number)
      : lines_(queue_memory_bytes(sizes) / sizeof(Line)),
        queues(lay_out_queues(std::as_writable_bytes(std::span(lines_)), sizes, number)) {}

  wire::Posted post(const wire::SendWork& work) { return wire::post_send(queues.send, sent, work); }
  void publish() { wire::publish(queues.send, sent); }
  wire::Posted post_receive(const wire::LocalBuffer& buffer) {
    const auto result = wire::post_receive(queues.receive, received, buffer);
    wire::publish(queues.receive, received);
    return result;
  }
  std::optional<wire::Completion> poll() {
    wire::Completion completion{};
    if (!wire::poll_send(queues.send, sent, completion)) return std::nullopt;
    return completion;
  }
  std::optional<wire::Completion> poll_receive() {
    wire::Completion completion{};
    if (!wire::poll_receive(queues.receive, received, completion)) return std::nullopt;
    return completion;
  }

 private:
  struct alignas(kQueueAlignment) Line {
    std::byte bytes[kQueueAlignment];
  };
  std::vector<Line> lines_;

 public:
  QueuePairMemory queues;
  wire::SendState sent;
  wire::ReceiveState received;
};

}  // namespace offload::rdma
