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
/// response in its response half. The worker maps requests for reading only.
namespace offload::channel {

/// What is passed beside a channel's descriptor, in this order: the memory of requests, that of
/// responses, the end of the doorbell at which the worker waits, and that which it rings.
using ChannelFds = std::array<int, 4>;
using OwnedChannelFds = std::array<core::Fd, 4>;

/// A channel's memory as its maker has it: two exported regions and two doorbells.
class ChannelMemory {
 public:
  /// A valid shape (kernels::is_valid_shape). `numa_node`: where its memory is; -1 for anywhere.
  /// `first`: the sequence of its first message. Throws Error.
  ChannelMemory(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
                int numa_node, std::uint64_t first = 0,
                std::uint32_t max_response_length = kernels::kLongestDigest);
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;

  /// For its one requester, which begins with message `first`.
  [[nodiscard]] Endpoint endpoint(std::uint64_t first) noexcept;
  [[nodiscard]] Endpoint endpoint() noexcept { return endpoint(first_); }

  /// What the worker is told, and the descriptors that go with it. Any thread.
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
  ChannelMemory(const kernels::ChannelLayout& layout, protocol::ChannelDescriptor shape,
                int numa_node, std::uint64_t first);

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

/// Makes the memory of `count` channels of a shape, as ChannelMemory does but without its pages,
/// and gives it back. So it takes microseconds for a channel of any size, and limits of files,
/// address space and descriptors are found. Throws Error.
void try_memory(std::size_t count, std::uint32_t depth, std::uint32_t max_message_length,
                std::uint32_t max_response_length);

/// What a back end posts responses with to a server on another machine.
struct ResponseWriter {
  kernels::rdma::SlotWriter slots;  ///< for threads of this machine
  /// Where its queue is, rings, records and completions, one range, stopped: a GPU that posts has
  /// it registered, and keeps it as long as it may post.
  std::shared_ptr<memory::MemoryRegion> queue;
  /// The register of the card that reads the queue, which a GPU rings in place of the queue's own
  /// doorbell if it can; null: there is none.
  std::uint64_t* card_register = nullptr;
  std::string carrier;  ///< what carries out what is posted, in words for a log
};

/// A channel's memory as a worker maps it: all that a back end needs to serve the channel.
class ImportedChannel {
 public:
  /// Checks everything that the server said. Throws Error: bad_message, invalid_value, and what
  /// memory::import_region throws.
  /// `writer`: outlives it; null: the server reads responses where they are.
  ImportedChannel(const protocol::ChannelDescriptor& descriptor, OwnedChannelFds fds,
                  const ResponseWriter* writer = nullptr);

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// The first message to be served.
  [[nodiscard]] std::uint64_t first_sequence() const noexcept { return first_; }
  /// What the back end posts each response with once it is published, for a server on another
  /// machine; nothing wakes it for requests then. Null: it posts none.
  [[nodiscard]] const ResponseWriter* writer() const noexcept { return writer_; }
  /// The channel's memory, one range each, stopped: the back end adds the registrars it needs and
  /// starts them. They keep the memory mapped.
  [[nodiscard]] memory::MemoryRegion& requests() const noexcept { return *requests_; }
  [[nodiscard]] memory::MemoryRegion& responses() const noexcept { return *responses_; }
  /// Where requests are waited for.
  [[nodiscard]] Waiter waiter() const noexcept {
    return {view_.response_header().requests, request_bell_.get()};
  }
  /// Where responses are announced.
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

/// Shared by who attached it and the back end that serves it, for as long as either uses it.
using SharedChannel = std::shared_ptr<const ImportedChannel>;

/// Starts both regions, unless they are started. Throws Error.
void start_regions(const ImportedChannel& channel);

}  // namespace offload::channel
