#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "channel/doorbell.hpp"
#include "channel/requester.hpp"
#include "core/fd.hpp"
#include "kernels/channel_layout.hpp"
#include "kernels/rdma/slot_writer.hpp"
#include "memory/region.hpp"
#include "memory/region_export.hpp"
#include "protocol/control.hpp"

/// The memory of a data channel, made for one attachment of one worker: exported by the server,
/// imported by the worker. A slot of the channel carries a request in its request half and the
/// response in its response half. The worker maps requests read-only.
namespace offload::channel {

/// The descriptors passed with the description of a channel, in this order: the memory of requests,
/// that of responses, the end of the doorbell at which the worker waits, and the end that it rings.
using ChannelFds = std::array<int, 4>;
using OwnedChannelFds = std::array<core::Fd, 4>;

/// Returns the layout of the memory of `channel`. Throws Error (bad_message) for an invalid shape.
kernels::ChannelLayout layout_of(const protocol::ChannelDescriptor& channel);

/// A channel's memory on the side that made it: two exported regions and two doorbells.
class ChannelMemory {
 public:
  /// `numa_node`: the node of its memory; -1 for any. `first`: the sequence of its first message.
  /// Throws Error, as layout_of().
  ChannelMemory(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
                int numa_node, std::uint64_t first = 0,
                std::uint32_t max_response_length = kernels::kLongestDigest);
  ChannelMemory& operator=(ChannelMemory&&) = delete;

  /// Returns the endpoint for its one requester, which begins with message `first`.
  [[nodiscard]] ChannelEndpoint endpoint(std::uint64_t first) noexcept;
  [[nodiscard]] ChannelEndpoint endpoint() noexcept { return endpoint(first_); }

  /// Return the description for the worker, and the descriptors to pass with it. Any thread.
  [[nodiscard]] const protocol::ChannelDescriptor& descriptor() const noexcept {
    return descriptor_;
  }
  /// Slots.
  [[nodiscard]] std::uint32_t depth() const noexcept { return descriptor_.depth; }
  [[nodiscard]] ChannelFds fds() const noexcept {
    return {request_export_.fds.front().get(), response_export_.fds.front().get(),
            request_bell_.waiting.get(), response_bell_.ringing.get()};
  }

 private:
  ChannelMemory(protocol::ChannelDescriptor shape, int numa_node, std::uint64_t first);

  memory::MemoryRegion requests_;
  memory::MemoryRegion responses_;
  memory::RegionExport request_export_;
  memory::RegionExport response_export_;
  DoorbellPipe request_bell_;
  DoorbellPipe response_bell_;
  kernels::ChannelView view_;
  std::uint64_t first_;
  protocol::ChannelDescriptor descriptor_;
};

/// Allocates the memory of `count` channels of a shape, as ChannelMemory does but without its
/// pages, and frees it. This takes microseconds for a channel of any size, and detects limits of
/// files, address space and descriptors. Throws Error.
void try_memory(std::size_t count, std::uint32_t depth, std::uint32_t max_message_length,
                std::uint32_t max_response_length);

/// The means with which a back end posts responses to a server on another machine.
struct ResponseWriter {
  kernels::rdma::SlotWriter slots;  ///< for threads of this machine
  /// The memory of its queue, with rings, records and completions: one range, stopped. A GPU that
  /// posts registers it, and keeps it while it may post.
  std::shared_ptr<memory::MemoryRegion> queue;
  /// The register of the card that reads the queue, which a GPU rings instead of the queue's
  /// doorbell if it can; null if there is none.
  std::uint64_t* card_register = nullptr;
  std::string carrier;  ///< for the log: the object that carries out the entries
};

/// A channel's memory as a worker maps it, with all that a back end needs to serve the channel.
class ImportedChannel {
 public:
  /// Checks the server's description completely. Throws Error: bad_message, invalid_value, and as
  /// memory::import_region() does. `writer` outlives it; null: the server reads responses from this
  /// memory.
  ImportedChannel(const protocol::ChannelDescriptor& descriptor, OwnedChannelFds fds,
                  const ResponseWriter* writer = nullptr);

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// Returns the sequence of the first message to serve.
  [[nodiscard]] std::uint64_t first_sequence() const noexcept { return first_; }
  /// Returns the writer with which the back end posts each published response to a server on
  /// another machine; requests do not wake it then. Null if it posts none.
  [[nodiscard]] const ResponseWriter* writer() const noexcept { return writer_; }
  /// Return the channel's memory, one range each, stopped: the back end adds the registrars that it
  /// needs and starts them. They keep the memory mapped.
  [[nodiscard]] memory::MemoryRegion& requests() const noexcept { return *requests_; }
  [[nodiscard]] memory::MemoryRegion& responses() const noexcept { return *responses_; }
  /// Returns the waiter for requests.
  [[nodiscard]] Waiter waiter() const noexcept {
    return {view_.response_header().requests, request_bell_.get()};
  }
  /// Returns the ringer that announces responses.
  [[nodiscard]] Ringer ringer() const noexcept {
    return {view_.response_header().responses, response_bell_.get()};
  }

 private:
  std::uint32_t index_;
  std::unique_ptr<memory::MemoryRegion> requests_;
  std::unique_ptr<memory::MemoryRegion> responses_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::ChannelView view_;
  std::uint64_t first_;
  const ResponseWriter* writer_;
};

/// A channel shared by the object that attached it and the back end that serves it, while either
/// uses it.
using SharedChannel = std::shared_ptr<const ImportedChannel>;

/// Starts both regions, unless they are already started. Throws Error.
void start_regions(const ImportedChannel& channel);

}  // namespace offload::channel
