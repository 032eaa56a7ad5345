#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rdma/proxy/proxy.hpp"
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

/// One end: a connection without tasks, and a proxy on its queue pair.
struct ProxyEnd {
  ProxyEnd(const SharedObjects& objects, const ConnectionOptions& options, progress::Engine& engine,
           const std::string& name)
      : connection(objects, options, name) {
    connection.connect(engine);
    connection.start();
    owner.emplace(QueueSizes{32, 8}, connection.queue_pair()->qp_num());
    proxy.emplace(ProxyParts{objects.domain, objects.completions, *connection.queue_pair()},
                  owner->queues, [this](Proxy&, const core::Error& why) { told = why.what(); });
    proxy->connect(engine);
    proxy->start();
  }

  Connection connection;
  std::optional<QueueOwner> owner;
  std::optional<Proxy> proxy;
  std::string told;
};

class ProxyGuestTest : public DeviceTest {
 protected:
  static constexpr std::size_t kTo = 4UL << 20;

  ~ProxyGuestTest() override {
    for (ProxyEnd& end : ends_) {
      stop(*end.proxy);
      stop(end.connection);
    }
  }

  ProxyEnd& make_end(const std::string& name, const ConnectionOptions& options = some_inline()) {
    return ends_.emplace_back(objects(), options, engine_, name);
  }
  void connect_ends(ProxyEnd& a, ProxyEnd& b) {
    connect(a.connection, b.connection);
    a.proxy->start_sends();
    b.proxy->start_sends();
  }
  [[nodiscard]] LocalBuffer local(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(bytes(offset, length).data()),
            static_cast<std::uint32_t>(length), region_.key(registrar_, 0)->local};
  }
  [[nodiscard]] wire::RemoteBuffer remote(std::size_t offset) const {
    return {remote_.address + offset, remote_.key};
  }
  void fill(std::size_t offset, std::size_t length) {
    const auto random = support::random_bytes(length, static_cast<std::uint32_t>(offset + length));
    std::copy(random.begin(), random.end(), bytes(offset, length).begin());
  }
  void clear(std::size_t offset, std::size_t length) {
    std::memset(bytes(offset, length).data(), 0, length);
  }
  /// What is at `from` is at `to`, and no byte more.
  void expect_same(std::size_t from, std::size_t to, std::size_t length) {
    EXPECT_EQ(std::memcmp(bytes(from, length + 1).data(), bytes(to, length + 1).data(), length), 0);
    EXPECT_EQ(bytes(to + length, 1)[0], std::byte{0});
  }

  static constexpr wire::Completion kNone{
      CqeKind::invalid, Syndrome::none, 0, {}, 0, 0, 0, 0, 0, 0};
  static wire::SendWork work_of(Opcode opcode, const LocalBuffer* buffers, std::uint32_t count) {
    wire::SendWork work;
    work.opcode = opcode;
    work.flags = wire::kSignaled;
    work.buffers = buffers;
    work.buffer_count = count;
    return work;
  }
  void post(ProxyEnd& end, const wire::SendWork& work) {
    ASSERT_EQ(end.owner->post(work), Posted::done);
    end.owner->publish();
  }
  /// The device has it before a message can come.
  void post_receive(ProxyEnd& end, const LocalBuffer& buffer) {
    ASSERT_EQ(end.owner->post_receive(buffer), Posted::done);
    for (int i = 0; i < 3; ++i) engine_.progress();
  }
  /// The next completion; one of kind `invalid` if it does not come.
  wire::Completion next(ProxyEnd& end, bool asleep = false) {
    std::optional<wire::Completion> completion;
    EXPECT_TRUE(until([&] { return (completion = end.owner->poll()).has_value(); }, asleep));
    return completion.value_or(kNone);
  }
  wire::Completion next_receive(ProxyEnd& end, bool asleep = false) {
    std::optional<wire::Completion> completion;
    EXPECT_TRUE(
        until([&] { return (completion = end.owner->poll_receive()).has_value(); }, asleep));
    return completion.value_or(kNone);
  }
  void expect_done(ProxyEnd& end, bool asleep = false) {
    const auto completion = next(end, asleep);
    EXPECT_EQ(completion.kind, CqeKind::request) << end.told;
    EXPECT_EQ(completion.queue, end.connection.queue_pair()->qp_num());
  }

  std::list<ProxyEnd> ends_;
};

class ProxyPairTest : public ProxyGuestTest {
 protected:
  void make(const ConnectionOptions& options = some_inline()) {
    a_ = &make_end("a", options);
    b_ = &make_end("b", options);
    connect_ends(*a_, *b_);
  }
  void expect_failed(ProxyEnd& end, Syndrome syndrome) {
    const auto completion = next(end);
    EXPECT_EQ(completion.kind, CqeKind::request_error);
    EXPECT_EQ(completion.syndrome, syndrome);
    EXPECT_TRUE(until([&] { return !end.told.empty(); }));
  }
  /// All that is posted comes back, and what is posted then.
  void expect_flushes(ProxyEnd& end) {
    post(end, work_of(Opcode::send, nullptr, 0));
    const auto completion = next(end);
    EXPECT_EQ(completion.syndrome, Syndrome::flushed);
    post_receive(end, local(0, 64));
    EXPECT_EQ(next_receive(end).syndrome, Syndrome::flushed);
  }

  ProxyEnd* a_ = nullptr;
  ProxyEnd* b_ = nullptr;
};

}  // namespace offload::rdma
