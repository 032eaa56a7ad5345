#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rdma/emulator/queue_emulator.hpp"
#include "tests/rdma/queue_owner.hpp"
#include "tests/rdma_tasks/guest/fixture.hpp"

namespace offload::rdma {

using wire::CqeKind;
using wire::LocalBuffer;
using wire::Opcode;
using wire::Posted;
using wire::Syndrome;

inline ConnectionOptions some_inline() {
  ConnectionOptions options;
  options.queues.max_inline_data = 64;
  return options;
}

/// One end: a connection without tasks, and an emulator on its queue pair.
struct EmulatorEnd {
  EmulatorEnd(const SharedObjects& objects, const ConnectionOptions& options,
              progress::Engine& engine, const std::string& name)
      : connection(objects, options, name) {
    connection.connect(engine);
    connection.start();
    owner.emplace(QueueSizes{32, 8}, connection.queue_pair()->qp_num());
    emulator.emplace(
        QueueEmulatorParts{objects.domain, objects.completions, *connection.queue_pair()},
        owner->queues, [this](QueueEmulator&, const core::Error& why) { told = why.what(); });
    emulator->connect(engine);
    emulator->start();
  }

  Connection connection;
  std::optional<QueueOwner> owner;
  std::optional<QueueEmulator> emulator;
  std::string told;
};

class EmulatorGuestTest : public DeviceTest {
 protected:
  static constexpr std::size_t kTo = 4UL << 20;

  ~EmulatorGuestTest() override {
    for (EmulatorEnd& end : ends_) {
      stop(*end.emulator);
      stop(end.connection);
    }
  }

  EmulatorEnd& make_end(const std::string& name, const ConnectionOptions& options = some_inline()) {
    return ends_.emplace_back(objects(), options, engine_, name);
  }
  void connect_ends(EmulatorEnd& a, EmulatorEnd& b) {
    connect(a.connection, b.connection);
    a.emulator->start_sends();
    b.emulator->start_sends();
  }
  [[nodiscard]] LocalBuffer local(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(bytes(offset, length).data()),
            static_cast<std::uint32_t>(length), region_.key(registrar_, 0)->local};
  }
  [[nodiscard]] wire::RemotePointer remote(std::size_t offset) const {
    return {remote_.address + offset, remote_.key};
  }
  void fill(std::size_t offset, std::size_t length) {
    const auto random = support::random_bytes(length, static_cast<std::uint32_t>(offset + length));
    std::copy(random.begin(), random.end(), bytes(offset, length).begin());
  }
  void clear(std::size_t offset, std::size_t length) {
    std::memset(bytes(offset, length).data(), 0, length);
  }
  /// Checks that the bytes at `from` are at `to`, and no byte more.
  void expect_same(std::size_t from, std::size_t to, std::size_t length) {
    EXPECT_EQ(std::memcmp(bytes(from, length + 1).data(), bytes(to, length + 1).data(), length), 0);
    EXPECT_EQ(bytes(to + length, 1)[0], std::byte{0});
  }

  static constexpr wire::Completion kNone{
      CqeKind::invalid, Syndrome::none, 0, {}, 0, 0, 0, 0, 0, 0, 0};
  static wire::SendWork work_of(Opcode opcode, const LocalBuffer* buffers, std::uint32_t count) {
    wire::SendWork work;
    work.opcode = opcode;
    work.flags = wire::kSignaled;
    work.buffers = buffers;
    work.buffer_count = count;
    return work;
  }
  void post(EmulatorEnd& end, const wire::SendWork& work) {
    ASSERT_EQ(end.owner->post(work), Posted::done);
    end.owner->publish();
  }
  /// Posts a receive and waits until the device has it, before a message can come.
  void post_receive(EmulatorEnd& end, const LocalBuffer& buffer) {
    ASSERT_EQ(end.owner->post_receive(buffer), Posted::done);
    for (int i = 0; i < 3; ++i) engine_.progress();
  }
  /// Returns the next completion; one of kind `invalid` if it does not come.
  wire::Completion next(EmulatorEnd& end, bool asleep = false) {
    std::optional<wire::Completion> completion;
    EXPECT_TRUE(until([&] { return (completion = end.owner->poll()).has_value(); }, asleep));
    return completion.value_or(kNone);
  }
  wire::Completion next_receive(EmulatorEnd& end, bool asleep = false) {
    std::optional<wire::Completion> completion;
    EXPECT_TRUE(
        until([&] { return (completion = end.owner->poll_receive()).has_value(); }, asleep));
    return completion.value_or(kNone);
  }
  void expect_done(EmulatorEnd& end, bool asleep = false) {
    const auto completion = next(end, asleep);
    EXPECT_EQ(completion.kind, CqeKind::request) << end.told;
    EXPECT_EQ(completion.queue, end.connection.queue_pair()->qp_num());
  }

  std::list<EmulatorEnd> ends_;
};

class EmulatorPairTest : public EmulatorGuestTest {
 protected:
  void make(const ConnectionOptions& options = some_inline()) {
    a_ = &make_end("a", options);
    b_ = &make_end("b", options);
    connect_ends(*a_, *b_);
  }
  void expect_failed(EmulatorEnd& end, Syndrome syndrome) {
    const auto completion = next(end);
    EXPECT_EQ(completion.kind, CqeKind::request_error);
    EXPECT_EQ(completion.syndrome, syndrome);
    EXPECT_TRUE(until([&] { return !end.told.empty(); }));
  }
  /// Checks that all posted entries are flushed, and those that are posted then.
  void expect_flushes(EmulatorEnd& end) {
    post(end, work_of(Opcode::send, nullptr, 0));
    const auto completion = next(end);
    EXPECT_EQ(completion.syndrome, Syndrome::flushed);
    post_receive(end, local(0, 64));
    EXPECT_EQ(next_receive(end).syndrome, Syndrome::flushed);
  }

  EmulatorEnd* a_ = nullptr;
  EmulatorEnd* b_ = nullptr;
};

}  // namespace offload::rdma
