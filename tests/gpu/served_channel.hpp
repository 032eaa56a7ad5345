#pragma once

#include <array>
#include <optional>
#include <thread>

#include "comch/channel.hpp"
#include "gpu/backend.hpp"
#include "tests/comch/channel_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::gpu::test {

/// A channel with its server's end played by the test, to be served by a back end.
class ServedChannel {
 public:
  ServedChannel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_length)
      : server(index, depth, max_length, -1),
        import_(server.descriptor(), comch::test::passed_fds(server)) {}

  [[nodiscard]] BackendChannel to_backend() const {
    return {import_.index(), import_.channel(), import_.waiter(), import_.ringer()};
  }
  /// The memory, for what no producer would write.
  [[nodiscard]] kernels::Channel memory() const { return import_.channel(); }

  /// False if the channel is full.
  bool post(std::span<const std::byte> message) {
    comch::SendTask* const task = server.producer().allocate();
    if (task == nullptr) return false;
    server.producer().submit(*task, message);
    server.producer().flush();
    return true;
  }

  /// The next response, if it is there; reposted at once.
  std::optional<support::Bytes> take() {
    comch::PostRecvTask* const task = server.consumer().receive(packed_.data());
    if (task == nullptr) return std::nullopt;
    last_status = task->status;
    auto payload = support::copy_of(task->payload);
    server.consumer().repost(*task);
    server.consumer().flush();
    return payload;
  }

  /// The next response, waited for; nothing if it does not come within a bound.
  std::optional<support::Bytes> await() {
    std::optional<support::Bytes> response;
    support::eventually([&] { return (response = take()).has_value(); },
                        [] { std::this_thread::yield(); });
    return response;
  }

  comch::Channel server;
  kernels::Status last_status = kernels::Status::ok;

 private:
  comch::ChannelImport import_;
  std::array<std::byte, kernels::kMaxPacked + kernels::kSlack> packed_{};
};

}  // namespace offload::gpu::test
