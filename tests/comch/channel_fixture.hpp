#pragma once

#include <fcntl.h>

#include <array>
#include <cstdint>
#include <optional>

#include "comch/channel.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/support/bytes.hpp"

namespace offload::comch::test {

/// The descriptors of a channel as they arrive at a worker: copies.
inline std::array<core::Fd, 3> passed_fds(const Channel& channel) {
  std::array<core::Fd, 3> passed;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    passed[i] = core::Fd(::fcntl(channel.fds()[i], F_DUPFD_CLOEXEC, 0));
  }
  return passed;
}

/// A server's and a worker's end of one channel. The worker serves when the test says so.
class Ends {
 public:
  Ends(std::uint32_t depth, std::uint32_t max_length)
      : server(0, depth, max_length, -1), worker(server.descriptor(), passed_fds(server)) {}

  /// False if the channel is full.
  bool post(std::span<const std::byte> message, void* user_data = nullptr) {
    SendTask* const task = server.producer().allocate();
    if (task == nullptr) return false;
    task->user_data = user_data;
    server.producer().submit(*task, message);
    return true;
  }

  /// Reverses the request `sequence`, if it is there.
  kernels::Outcome serve(std::uint64_t sequence) {
    return kernels::serve(kernels::SingleLane{}, worker.channel(), sequence, kernels::Reverse{},
                          staging_);
  }

  /// The next response's task; its payload is good until the next call.
  PostRecvTask* receive() { return server.consumer().receive(packed_.data()); }

  /// The next response's payload, its task reposted; nothing if it is not there.
  std::optional<support::Bytes> take() {
    PostRecvTask* const task = receive();
    if (task == nullptr) return std::nullopt;
    auto payload = support::copy_of(task->payload);
    server.consumer().repost(*task);
    return payload;
  }

  Channel server;
  ChannelImport worker;

 private:
  kernels::Staging staging_{};
  std::array<std::byte, kernels::kMaxPacked + kernels::kSlack> packed_{};
};

}  // namespace offload::comch::test
