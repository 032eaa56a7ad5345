#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma_tasks/outcomes.hpp"

namespace offload::rdma {

inline ConnectionOptions small_queues() {
  ConnectionOptions options;
  options.queues.max_send_wr = 4;
  options.queues.max_recv_wr = 4;
  options.queues.max_sge = 2;
  return options;
}

/// One connection, on a device that does what the test says.
class ConnectionTest : public FakeDeviceTest {
 protected:
  explicit ConnectionTest(const ConnectionOptions& options = small_queues())
      : device_("fake0"),
        domain_(device_),
        registrar_(domain_),
        loop_(device_, engine_, 8),
        connection_({device_, domain_, registrar_, loop_}, options),
        region_({"region", memory::kLocalAccess}, {memory::allocate_range(64 * 1024)}),
        buffers_(16) {
    region_.add_registrar(registrar_);
    region_.start();
    buffers_.start();
    connection_.connect(engine_);
    sends_.emplace(connection_, 8, outcomes_.callbacks<SendTask>());
    receives_.emplace(connection_, 8, outcomes_.callbacks<ReceiveTask>());
    writes_.emplace(connection_, 8, outcomes_.callbacks<WriteTask>());
    reads_.emplace(connection_, 8, outcomes_.callbacks<ReadTask>());
    swaps_.emplace(connection_, 8, outcomes_.callbacks<CompareAndSwapTask>());
    adds_.emplace(connection_, 8, outcomes_.callbacks<FetchAndAddTask>());
  }
  ~ConnectionTest() override {
    if (connection_.state() != progress::Context::State::idle) connection_.stop();
    turn();
    EXPECT_EQ(connection_.state(), progress::Context::State::idle);
  }

  void start_connected() {
    connection_.start();
    connection_.connect_to(a_peer());
  }
  test::FakeQueuePair& queue() { return *test::fake().queue_pairs.at(0); }
  void turn() {
    for (int i = 0; i < 40; ++i) engine_.progress();
  }
  memory::BufferRef room(std::size_t offset, std::size_t length) {
    return buffers_.take(region_, {region_.ranges()[0].address + offset, length}).buffer;
  }
  memory::BufferRef data(std::size_t offset, std::size_t length) {
    return buffers_.take_by_data(region_, {region_.ranges()[0].address + offset, length}).buffer;
  }
  core::Status send(bool flush = true) {
    SendTask& task = *sends_->allocate();
    return flush ? connection_.submit(task) : connection_.submit_unflushed(task);
  }
  core::Status receive() { return connection_.submit(*receives_->allocate()); }
  static RemoteAddress place(std::uint64_t length, std::uint64_t offset = 0) {
    return {{0x10000, length, 9}, offset};
  }

  DeviceContext device_;
  ProtectionDomain domain_;
  RdmaRegistrar registrar_;
  progress::Engine engine_;
  CompletionLoop loop_;
  Connection connection_;
  memory::MemoryRegion region_;
  memory::BufferInventory buffers_;
  Outcomes outcomes_;
  std::optional<progress::TaskPool<SendTask>> sends_;
  std::optional<progress::TaskPool<ReceiveTask>> receives_;
  std::optional<progress::TaskPool<WriteTask>> writes_;
  std::optional<progress::TaskPool<ReadTask>> reads_;
  std::optional<progress::TaskPool<CompareAndSwapTask>> swaps_;
  std::optional<progress::TaskPool<FetchAndAddTask>> adds_;
};

}  // namespace offload::rdma
