#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <thread>

#include "channel/channel_memory.hpp"
#include "channel/requester.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::channel::test {

/// Returns copies of a channel's descriptors, as they arrive at a worker.
inline OwnedChannelFds passed_fds(const ChannelMemory& memory) {
  OwnedChannelFds passed;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    passed[i] = core::Fd(::fcntl(memory.fds()[i], F_DUPFD_CLOEXEC, 0));
  }
  return passed;
}

/// A requester on a separate engine, which sends and takes messages one by one.
class Server {
 public:
  explicit Server(const ChannelEndpoint& endpoint) : requester(endpoint, *this) {
    requester.open(engine);
    requester.set_wakeup(Wakeup::doorbell);
  }

  /// Returns the client of a request if the test names none: a request without one would be given
  /// up.
  static void* somebody() {
    static char one;
    return &one;
  }

  /// Posts a message in a slot for it alone. Returns false if the channel is full.
  bool post(std::span<const std::byte> message, void* user_data = somebody()) {
    const core::Status status = requester.post(message, user_data);
    EXPECT_TRUE(status.ok() || status.error() == core::ErrorCode::again);
    requester.flush();
    return status.ok();
  }

  /// Returns the next response's task, if it is there.
  PostRecvTask* receive() {
    if (received_.empty()) engine.progress();
    if (received_.empty()) return nullptr;
    PostRecvTask* const task = received_.front();
    received_.pop_front();
    return task;
  }

  /// Returns the next response's payload and frees its slot; nothing if it is not there.
  std::optional<support::Bytes> take() {
    PostRecvTask* const task = receive();
    if (task == nullptr) return std::nullopt;
    last_status = task->response_status();
    auto payload = support::copy_of(task->payload());
    EXPECT_TRUE(requester.release(*task).ok());
    requester.flush();
    return payload;
  }

  /// Waits for the next response and returns it; nothing if it does not come within a bound.
  std::optional<support::Bytes> await() {
    std::optional<support::Bytes> response;
    support::eventually([&] { return (response = take()).has_value(); },
                        [] { std::this_thread::yield(); });
    return response;
  }

  void on_response(PostRecvTask& task) { received_.push_back(&task); }

  progress::Engine engine;
  Requester requester;
  kernels::ResponseStatus last_status = kernels::ResponseStatus::ok;

 private:
  std::deque<PostRecvTask*> received_;
};

/// A server's and a worker's end of one channel. The worker serves when the test says so.
class Ends {
 public:
  Ends(std::uint32_t depth, std::uint32_t max_length)
      : memory(0, depth, max_length, -1),
        server(memory.endpoint()),
        worker(memory.descriptor(), passed_fds(memory)) {}

  /// Reverses the request `sequence`, if it is there.
  kernels::Outcome serve(std::uint64_t sequence) {
    return kernels::serve(kernels::SingleLane{}, worker.view(), sequence, kernels::Reverse{},
                          staging_);
  }

  ChannelMemory memory;
  Server server;
  ImportedChannel worker;

 private:
  kernels::Staging staging_{};
};

}  // namespace offload::channel::test
