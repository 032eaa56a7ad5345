#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "backend/backend.hpp"
#include "channel/channel_memory.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::backend::test {

/// A channel with its server's end played by the test, to be served by a back end.
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
  /// The memory as the server has it, for what no requester would write.
  [[nodiscard]] kernels::ChannelView memory() { return channel_memory.endpoint().view; }

  /// In a slot of its own. False if the channel is full.
  bool post(std::span<const std::byte> message) { return server.post(message); }
  /// With others in a slot, if it is short, until flush(). False if the channel is full.
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

  /// The next response, if it is there; reposted at once.
  std::optional<support::Bytes> take() { return server.take(); }

  /// The next response, waited for; nothing if it does not come within a bound.
  std::optional<support::Bytes> await() {
    std::optional<support::Bytes> response;
    support::eventually([&] { return (response = take()).has_value(); },
                        [] { std::this_thread::yield(); });
    return response;
  }

  channel::ChannelMemory channel_memory;
  channel::test::Server server;

 private:
  channel::SharedChannel import_;
};

}  // namespace offload::backend::test
