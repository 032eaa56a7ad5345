#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "channel/doorbell.hpp"
#include "channel/requester.hpp"
#include "core/fd.hpp"
#include "kernels/channel_layout.hpp"
#include "memory/region.hpp"
#include "memory/region_export.hpp"
#include "protocol/control.hpp"

/// The memory of a data channel: made and exported by the server, imported by the worker. A slot of
/// the channel carries a request in its request half and the response in its response half.
namespace offload::channel {

/// A channel's memory as its maker has it: an exported region and two doorbells.
class ChannelMemory {
 public:
  /// A valid shape (kernels::is_valid_shape). `numa_node`: where its memory is; -1 for anywhere.
  /// Throws Error.
  ChannelMemory(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
                int numa_node);
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;

  /// For its one requester.
  [[nodiscard]] Endpoint endpoint() noexcept;

  /// Writes the header's `consumed` anew, which a former worker may have overwritten, before the
  /// next worker is told. Any thread: what it writes may be older than what is there, which does no
  /// harm.
  void repair_header() noexcept;

  /// What the worker is told, and the descriptors that go with it. Any thread.
  [[nodiscard]] const protocol::ChannelDescriptor& descriptor() const noexcept {
    return descriptor_;
  }
  /// Slots.
  [[nodiscard]] std::uint32_t depth() const noexcept { return descriptor_.depth; }
  [[nodiscard]] std::array<int, 3> fds() const noexcept {
    return {export_.fds.front().get(), request_bell_.get(), response_bell_.get()};
  }

 private:
  memory::MemoryRegion region_;
  memory::RegionExport export_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::ChannelView view_;
  std::atomic<std::uint64_t> consumed_{0};  ///< Endpoint::consumed
  protocol::ChannelDescriptor descriptor_;
};

/// A channel's memory as a worker maps it: all that a back end needs to serve the channel.
class ImportedChannel {
 public:
  /// Checks everything that the server said. Throws Error: bad_message, invalid_value, and what
  /// memory::import_region throws.
  ImportedChannel(const protocol::ChannelDescriptor& descriptor, std::array<core::Fd, 3> fds);

  [[nodiscard]] const kernels::ChannelView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// The channel's memory, one range, stopped: the back end adds the registrars it needs
  /// and starts it. It keeps the memory mapped.
  [[nodiscard]] const std::shared_ptr<memory::MemoryRegion>& region() const noexcept {
    return region_;
  }
  /// Where requests are waited for.
  [[nodiscard]] Waiter waiter() const noexcept {
    return {view_.header().requests, request_bell_.get()};
  }
  /// Where responses are announced.
  [[nodiscard]] Ringer ringer() const noexcept {
    return {view_.header().responses, response_bell_.get()};
  }

 private:
  std::uint32_t index_;
  std::shared_ptr<memory::MemoryRegion> region_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::ChannelView view_;
};

/// Shared by who attached it and the back end that serves it, for as long as either uses it.
using SharedChannel = std::shared_ptr<const ImportedChannel>;

}  // namespace offload::channel
