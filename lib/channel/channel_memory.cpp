#include "channel/channel_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "memory/shared_memory.hpp"

namespace offload::channel {
namespace {

using core::Error;
using core::ErrorCode;
using memory::Access;
using memory::MemoryRegion;

/// The access of both ends to a channel's responses, and of the server to its requests; the
/// worker's end may be a GPU.
constexpr Access kWritable = memory::kLocalAccess | Access::peer_pcie;
/// The access of a worker to requests.
constexpr Access kReadable = Access::local_read | Access::peer_pcie;

std::string name_of(std::uint32_t index, const char* part) {
  return "channel-" + std::to_string(index) + "-" + part;
}

memory::Range share(const std::string& name, std::uint64_t bytes, int numa_node,
                    memory::Writers writers) {
  return memory::share_range("offload-" + name, bytes, numa_node, writers);
}

memory::RegionExport start_and_export(MemoryRegion& region, Access granted) {
  region.start();
  return export_region(region, granted);
}

kernels::ChannelView view_of(const MemoryRegion& requests, const MemoryRegion& responses,
                             const kernels::ChannelLayout& layout) {
  return {reinterpret_cast<std::uint8_t*>(requests.ranges().front().address),
          reinterpret_cast<std::uint8_t*>(responses.ranges().front().address), layout};
}

void check_region(const MemoryRegion& region, Access access, std::uint64_t bytes) {
  if (region.ranges().size() != 1 || region.access() != access) {
    throw Error(ErrorCode::bad_message,
                region.name() + " is not one range with the access " + to_string(access));
  }
  if (const auto length = region.ranges().front().length; length != bytes) {
    throw Error(ErrorCode::bad_message, region.name() +
                                            " is laid out differently: " + std::to_string(length) +
                                            " bytes, here " + std::to_string(bytes));
  }
}

kernels::ChannelLayout checked_layout(const protocol::ChannelDescriptor& descriptor,
                                      const MemoryRegion& requests, const MemoryRegion& responses) {
  const auto layout = layout_of(descriptor);
  check_region(requests, kReadable, layout.request_bytes);
  check_region(responses, kWritable, layout.response_bytes);
  return layout;
}

std::unique_ptr<MemoryRegion> import(const std::string& name, std::span<const std::byte> blob,
                                     core::Fd fd) {
  std::vector<core::Fd> fds;
  fds.push_back(std::move(fd));
  return std::unique_ptr<MemoryRegion>(
      new MemoryRegion(memory::import_region(name, blob, std::move(fds))));
}

/// Reopens an end of a doorbell, so that only this process has the open file: the peer that passed
/// the descriptor shares its open file, and could make it block. `access`: O_RDONLY or O_WRONLY.
/// Throws Error.
core::Fd open_again(const core::Fd& bell, int access) {
  struct stat status {};
  core::check_errno(::fstat(bell.get(), &status), "a channel's doorbell");
  // Opening another kind of file may block, or have side effects.
  if (!S_ISFIFO(status.st_mode)) throw Error(ErrorCode::bad_message, "a doorbell is not a pipe");
  const std::string path = "/proc/self/fd/" + std::to_string(bell.get());
  return core::Fd(core::check_errno(::open(path.c_str(), access | O_NONBLOCK | O_CLOEXEC),
                                    "cannot open a channel's doorbell again, by " + path));
}

}  // namespace

kernels::ChannelLayout layout_of(const protocol::ChannelDescriptor& channel) {
  if (!kernels::is_valid_shape(channel.depth, channel.max_message_length,
                               channel.max_response_length)) {
    throw Error(ErrorCode::bad_message, "channel " + std::to_string(channel.channel) +
                                            " has an invalid shape: depth " +
                                            std::to_string(channel.depth) + ", messages of " +
                                            std::to_string(channel.max_message_length) + " bytes");
  }
  return kernels::make_layout(channel.depth, channel.max_message_length,
                              channel.max_response_length);
}

ChannelMemory::ChannelMemory(std::uint32_t index, std::uint32_t depth,
                             std::uint32_t max_message_length, int numa_node, std::uint64_t first,
                             std::uint32_t max_response_length)
    : ChannelMemory({index, depth, max_message_length, {}, {}, max_response_length}, numa_node,
                    first) {}

ChannelMemory::ChannelMemory(protocol::ChannelDescriptor shape, int numa_node, std::uint64_t first)
    : requests_({name_of(shape.channel, "requests"), kWritable},
                {share(name_of(shape.channel, "requests"), layout_of(shape).request_bytes,
                       numa_node, memory::Writers::maker)}),
      responses_({name_of(shape.channel, "responses"), kWritable},
                 {share(name_of(shape.channel, "responses"), layout_of(shape).response_bytes,
                        numa_node, memory::Writers::all)}),
      request_export_(start_and_export(requests_, kReadable)),
      response_export_(start_and_export(responses_, kWritable)),
      request_bell_(DoorbellPipe::make()),
      response_bell_(DoorbellPipe::make()),
      view_(view_of(requests_, responses_, layout_of(shape))),
      first_(first),
      descriptor_(std::move(shape)) {
  descriptor_.access = request_export_.blob;
  descriptor_.response_access = response_export_.blob;
  view_.request_header().consumed = first;
}

void try_memory(std::size_t count, std::uint32_t depth, std::uint32_t max_message_length,
                std::uint32_t max_response_length) {
  const auto layout = kernels::make_layout(depth, max_message_length, max_response_length);
  std::vector<memory::SharedMemory> made;
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::uint64_t bytes : {layout.request_bytes, layout.response_bytes}) {
      made.push_back(memory::SharedMemory::reserve("offload-trial", bytes));
    }
  }
}

ChannelEndpoint ChannelMemory::endpoint(std::uint64_t first) noexcept {
  return {descriptor_.channel,
          view_,
          {view_.response_header().requests, request_bell_.ringing.get()},
          {view_.response_header().responses, response_bell_.waiting.get()},
          first};
}

ImportedChannel::ImportedChannel(const protocol::ChannelDescriptor& descriptor, OwnedChannelFds fds,
                                 const ResponseWriter* writer)
    : index_(descriptor.channel),
      requests_(import(name_of(index_, "requests"), descriptor.access, std::move(fds[0]))),
      responses_(
          import(name_of(index_, "responses"), descriptor.response_access, std::move(fds[1]))),
      request_bell_(open_again(fds[2], O_RDONLY)),
      response_bell_(open_again(fds[3], O_WRONLY)),
      view_(view_of(*requests_, *responses_, checked_layout(descriptor, *requests_, *responses_))),
      // Relaxed: the control channel orders it after the server's store.
      first_(__atomic_load_n(&view_.request_header().consumed, __ATOMIC_RELAXED)),
      writer_(writer) {}

void start_regions(const ImportedChannel& channel) {
  if (!channel.requests().started()) channel.requests().start();
  if (!channel.responses().started()) channel.responses().start();
}

}  // namespace offload::channel
