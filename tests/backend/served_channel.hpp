#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/backend.hpp"
#include "channel/channel_memory.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/bytes.hpp"

namespace offload::backend::test {

/// A channel that a back end serves; the test acts as its server's end.
class ServedChannel {
 public:
  /// `first`: the sequence of its first message.
  ServedChannel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_length,
                std::uint64_t first = 0)
      : channel_memory(index, depth, max_length, -1, first),
        server(channel_memory.endpoint()),
        import_(std::make_shared<channel::ImportedChannel>(
            channel_memory.descriptor(), channel::test::passed_fds(channel_memory))) {}

  [[nodiscard]] const channel::SharedChannel& to_backend() const { return import_; }
  /// Returns the server's view of the memory, for content that no requester would write.
  [[nodiscard]] kernels::ChannelView memory() { return channel_memory.endpoint().view; }

  /// Posts a message in a slot for it alone. Returns false if the channel is full.
  bool post(std::span<const std::byte> message) { return server.post(message); }
  /// Posts a short message in a slot with others, until flush(). Returns false if the channel is
  /// full.
  bool gather(std::span<const std::byte> message) {
    return server.requester.post(message, channel::test::Server::somebody()).ok();
  }
  void flush() { server.requester.flush(); }

  /// Writes the next request slot as no requester would, and wakes the back end.
  void forge(std::span<const std::byte> content, std::uint32_t length, std::uint32_t count) {
    const std::uint64_t next = server.requester.slots().posted();
    const kernels::Slot slot = memory().request(next);
    const std::uint32_t flag = memory().layout.flag_of(next);
    if (content.size() > kernels::kMaxPacketPayload) {
      std::memcpy(slot.plain(), content.data(), content.size());
    } else {
      for (std::size_t at = 0; at < content.size(); at += kernels::kPacketData) {
        kernels::Packet packet{{}, flag};
        std::memcpy(packet.data, content.data() + at,
                    std::min<std::size_t>(kernels::kPacketData, content.size() - at));
        kernels::store_packet(slot.packets + 1 + at / kernels::kPacketData, packet);
      }
    }
    kernels::store_packet(slot.packets, {{length, 0, count}, flag});
    channel_memory.endpoint().ringer.ring();
  }

  /// Returns the next response, if it is there; it is reposted at once.
  std::optional<support::Bytes> take() { return server.take(); }

  /// Waits for the next response and returns it; nothing if it does not come within a bound.
  std::optional<support::Bytes> await() { return server.await(); }

  channel::ChannelMemory channel_memory;
  channel::test::Server server;

 private:
  channel::SharedChannel import_;
};

}  // namespace offload::backend::test
