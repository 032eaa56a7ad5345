#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "channel/channel_memory.hpp"
#include "channel/consumer.hpp"
#include "channel/producer.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "progress/task_pool.hpp"
#include "tests/support/bytes.hpp"

namespace offload::channel::test {

/// The descriptors of a channel as they arrive at a worker: copies.
inline std::array<core::Fd, 3> passed_fds(const Channel& channel) {
  std::array<core::Fd, 3> passed;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    passed[i] = core::Fd(::fcntl(channel.fds()[i], F_DUPFD_CLOEXEC, 0));
  }
  return passed;
}

/// A server's producer and consumer of one channel with all their tasks, on an engine of their own.
class Server {
 public:
  explicit Server(const ServerEnd& end)
      : cursors(*end.cursors),
        producer(end),
        consumer(end, producer),
        sends(producer, producer.capacity(), {free_send, free_send, this}),
        receives(consumer, producer.capacity(), {keep, note_failure, this}) {
    producer.connect(engine);
    consumer.connect(engine);
    producer.start();
    consumer.start();
    while (auto* const task = receives.allocate()) {
      EXPECT_TRUE(consumer.submit(*task).ok());
    }
  }
  ~Server() {
    if (consumer.state() == progress::Context::State::running) consumer.stop();
    if (producer.state() == progress::Context::State::running) producer.stop();
  }

  /// False if the channel is full. Not flushed.
  bool post(std::span<const std::byte> message, void* user_data = nullptr) {
    SendTask* const task = sends.allocate();
    if (task == nullptr) return false;
    task->message = message;
    task->user_data = user_data;
    EXPECT_TRUE(producer.submit_unflushed(*task).ok());
    return true;
  }

  /// The next response's task, if it is there.
  PostRecvTask* receive() {
    if (received_.empty()) engine.progress();
    if (received_.empty()) return nullptr;
    PostRecvTask* const task = received_.front();
    received_.pop_front();
    return task;
  }

  /// The next response's payload, its receive posted again; nothing if it is not there.
  std::optional<support::Bytes> take() {
    PostRecvTask* const task = receive();
    if (task == nullptr) return std::nullopt;
    last_status = task->response_status();
    auto payload = support::copy_of(task->payload());
    EXPECT_TRUE(consumer.submit(*task).ok());
    return payload;
  }

  const Cursors& cursors;
  progress::Engine engine;
  Producer producer;
  Consumer consumer;
  progress::TaskPool<SendTask> sends;
  progress::TaskPool<PostRecvTask> receives;
  kernels::Status last_status = kernels::Status::ok;
  int receives_failed = 0;

 private:
  static void free_send(SendTask& task, void* self) {
    EXPECT_TRUE(static_cast<Server*>(self)->sends.release(task).ok());
  }
  static void keep(PostRecvTask& task, void* self) {
    static_cast<Server*>(self)->received_.push_back(&task);
  }
  static void note_failure(PostRecvTask&, void* self) {
    ++static_cast<Server*>(self)->receives_failed;
  }

  std::deque<PostRecvTask*> received_;
};

/// A server's and a worker's end of one channel. The worker serves when the test says so.
class Ends {
 public:
  Ends(std::uint32_t depth, std::uint32_t max_length)
      : channel(0, depth, max_length, -1),
        server(channel.server_end()),
        worker(channel.descriptor(), passed_fds(channel)) {}

  /// Reverses the request `sequence`, if it is there.
  kernels::Outcome serve(std::uint64_t sequence) {
    return kernels::serve(kernels::SingleLane{}, worker.channel(), sequence, kernels::Reverse{},
                          staging_);
  }

  Channel channel;
  Server server;
  ChannelImport worker;

 private:
  kernels::Staging staging_{};
};

}  // namespace offload::channel::test
