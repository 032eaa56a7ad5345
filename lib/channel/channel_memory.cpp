#include "channel/channel_memory.hpp"

#include <sys/eventfd.h>

#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::channel {
namespace {

using core::Error;
using core::ErrorCode;
using memory::Access;
using memory::MemoryRegion;

/// What both ends do with a channel's memory; the worker's may be a GPU.
constexpr Access kAccess = memory::kLocalAccess | Access::peer_pcie;

std::string name_of(std::uint32_t index) {
  return "channel " + std::to_string(index);
}

core::Fd make_eventfd() {
  return core::Fd(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
}

memory::RegionExport start_and_export(MemoryRegion& region) {
  region.start();
  return export_region(region, kAccess);
}

kernels::ChannelView view_of(const MemoryRegion& region, const kernels::ChannelLayout& layout) {
  return {reinterpret_cast<std::uint8_t*>(region.ranges().front().address), layout};
}

kernels::ChannelLayout checked_layout(const protocol::ChannelDescriptor& descriptor,
                                      const MemoryRegion& region) {
  const std::string name = name_of(descriptor.channel);
  if (!kernels::is_valid_shape(descriptor.depth, descriptor.max_message_length)) {
    throw Error(ErrorCode::bad_message,
                name + " has an impossible shape: depth " + std::to_string(descriptor.depth) +
                    ", messages of " + std::to_string(descriptor.max_message_length) + " bytes");
  }
  if (region.ranges().size() != 1 || !includes(region.access(), kAccess)) {
    throw Error(ErrorCode::bad_message, name + " is not one range to be read and written");
  }
  const auto layout = kernels::make_layout(descriptor.depth, descriptor.max_message_length);
  if (const auto length = region.ranges().front().length; layout.bytes != length) {
    throw Error(ErrorCode::bad_message, name +
                                            " is laid out differently: " + std::to_string(length) +
                                            " bytes, here " + std::to_string(layout.bytes));
  }
  return layout;
}

std::vector<core::Fd> one(core::Fd fd) {
  std::vector<core::Fd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

}  // namespace

ChannelMemory::ChannelMemory(std::uint32_t index, std::uint32_t depth,
                             std::uint32_t max_message_length, int numa_node)
    : region_(
          {name_of(index), kAccess},
          {memory::share_range("offload-channel-" + std::to_string(index),
                               kernels::make_layout(depth, max_message_length).bytes, numa_node)}),
      export_(start_and_export(region_)),
      request_bell_(make_eventfd()),
      response_bell_(make_eventfd()),
      view_(view_of(region_, kernels::make_layout(depth, max_message_length))),
      descriptor_{index, depth, max_message_length, export_.blob} {}

Endpoint ChannelMemory::endpoint() noexcept {
  return {descriptor_.channel,
          view_,
          {view_.header().requests, request_bell_.get()},
          {view_.header().responses, response_bell_.get()},
          &consumed_};
}

void ChannelMemory::repair_header() noexcept {
  // Relaxed, both: see Requester::on_flush.
  const auto consumed = consumed_.load(std::memory_order_relaxed);
  __atomic_store_n(&view_.header().consumed, consumed, __ATOMIC_RELAXED);
}

ImportedChannel::ImportedChannel(const protocol::ChannelDescriptor& descriptor,
                                 std::array<core::Fd, 3> fds)
    : index_(descriptor.channel),
      region_(new MemoryRegion(memory::import_region(name_of(descriptor.channel), descriptor.access,
                                                     one(std::move(fds[0]))))),
      request_bell_(std::move(fds[1])),
      response_bell_(std::move(fds[2])),
      view_(view_of(*region_, checked_layout(descriptor, *region_))) {}

}  // namespace offload::channel
