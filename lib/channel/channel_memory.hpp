#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "channel/doorbell.hpp"
#include "channel/server_end.hpp"
#include "core/fd.hpp"
#include "kernels/channel_layout.hpp"
#include "memory/region.hpp"
#include "memory/region_export.hpp"
#include "protocol/control.hpp"

/// A data channel over shared memory. The words are comch's: a producer sends tasks, a consumer has
/// receives posted. A slot of the channel serves one of each: the request goes out in the slot's
/// request slot, the response arrives in its response slot, and posting its receive anew frees
/// both.
namespace offload::channel {

/// A channel as the server makes it: its memory, an exported region, and two doorbells.
class Channel {
 public:
  /// A valid shape (kernels::is_valid_shape). `numa_node`: where its memory is; -1 for anywhere.
  /// Throws Error.
  Channel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_message_length,
          int numa_node);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// For its Producer and Consumer, one of each, both of one thread.
  [[nodiscard]] ServerEnd server_end() noexcept;

  /// Puts right what a former worker may have scribbled over, before the next is told. The control
  /// thread, at any time: what it writes may be older than what is there, which does no harm.
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
  kernels::ChannelView channel_;
  Cursors cursors_;
  protocol::ChannelDescriptor descriptor_;
};

/// A channel as the worker maps it.
class ChannelImport {
 public:
  /// Checks everything that the server said. Throws Error: bad_message, invalid_value, and what
  /// memory::import_region throws.
  ChannelImport(const protocol::ChannelDescriptor& descriptor, std::array<core::Fd, 3> fds);

  [[nodiscard]] const kernels::ChannelView& channel() const noexcept { return channel_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// The channel's memory, one range, stopped: whoever serves the channel registers what it needs
  /// and starts it. It keeps the memory mapped.
  [[nodiscard]] const std::shared_ptr<memory::MemoryRegion>& region() const noexcept {
    return region_;
  }
  /// Where requests are waited for.
  [[nodiscard]] Waiter waiter() const noexcept {
    return {channel_.header().requests, request_bell_.get()};
  }
  /// Where responses are announced.
  [[nodiscard]] Ringer ringer() const noexcept {
    return {channel_.header().responses, response_bell_.get()};
  }

 private:
  std::uint32_t index_;
  std::shared_ptr<memory::MemoryRegion> region_;
  core::Fd request_bell_;
  core::Fd response_bell_;
  kernels::ChannelView channel_;
};

}  // namespace offload::channel
