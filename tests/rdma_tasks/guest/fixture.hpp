#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "device/device.hpp"
#include "memory/region_export.hpp"
#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"
#include "tests/rdma_tasks/outcomes.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::rdma {

/// Opens the device that this program tests: the tests need one, as in the guest of
/// scripts/rdma-guest, and fail elsewhere.
inline DeviceContext open_device() {
  const auto devices = device::list_devices();
  return DeviceContext(device::find(devices, "rdma"));
}

/// One side of two peers, with its pools of tasks.
struct Side {
  Side(const SharedObjects& objects, const ConnectionOptions& options, progress::Engine& engine,
       std::string name)
      : connection(objects, options, std::move(name)) {
    connection.connect(engine);
    sends.emplace(connection, 64, outcomes.callbacks<SendTask>());
    receives.emplace(connection, 64, outcomes.callbacks<ReceiveTask>());
    writes.emplace(connection, 4, outcomes.callbacks<WriteTask>());
    reads.emplace(connection, 4, outcomes.callbacks<ReadTask>());
    swaps.emplace(connection, 4, outcomes.callbacks<CompareAndSwapTask>());
    adds.emplace(connection, 4, outcomes.callbacks<FetchAndAddTask>());
  }

  Outcomes outcomes;
  Connection connection;
  std::optional<progress::TaskPool<SendTask>> sends;
  std::optional<progress::TaskPool<ReceiveTask>> receives;
  std::optional<progress::TaskPool<WriteTask>> writes;
  std::optional<progress::TaskPool<ReadTask>> reads;
  std::optional<progress::TaskPool<CompareAndSwapTask>> swaps;
  std::optional<progress::TaskPool<FetchAndAddTask>> adds;
};

/// Takes a task from the pool, which has one.
template <class T>
T& taken(std::optional<progress::TaskPool<T>>& pool) {
  T* const task = pool->allocate();
  if (task == nullptr) std::abort();
  return *task;
}

/// A device with the objects that connections share, and memory that peers may use in every way.
class DeviceTest : public testing::Test {
 protected:
  static constexpr std::size_t kMemory = 8UL << 20;

  DeviceTest()
      : device_(open_device()),
        domain_(device_),
        registrar_(domain_),
        loop_(device_, engine_, 4096),
        region_({"region", memory::kLocalAccess | memory::kRemoteAccess},
                {memory::allocate_range(kMemory)}),
        buffers_(64) {
    region_.add_registrar(registrar_);
    region_.start();
    buffers_.start();
    remote_ =
        memory::import_remote(memory::export_remote(region_, registrar_, memory::kRemoteAccess))
            .ranges()
            .at(0);
  }

  [[nodiscard]] SharedObjects objects() const { return {device_, domain_, registrar_, loop_}; }
  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t length) const {
    return {region_.ranges()[0].address + offset, length};
  }
  memory::BufferRef room(std::size_t offset, std::size_t length) {
    return buffers_.take(region_, bytes(offset, length)).buffer;
  }
  /// Returns a buffer with random bytes.
  memory::BufferRef data(std::size_t offset, std::size_t length) {
    const auto random = support::random_bytes(length, static_cast<std::uint32_t>(offset + length));
    std::copy(random.begin(), random.end(), bytes(offset, length).begin());
    return buffers_.take_by_data(region_, bytes(offset, length)).buffer;
  }
  /// Returns the address of a place in the region, as the peer uses it.
  [[nodiscard]] RemoteAddress place(std::size_t offset) const { return {remote_, offset}; }

  /// Turns the engine until `condition` holds, asleep between events or polling all the time.
  template <class Condition>
  bool until(Condition condition, bool asleep = true) {
    return support::eventually(condition, [&] {
      if (asleep) {
        engine_.run_once(core::Clock::now() + std::chrono::seconds(1));
      } else {
        engine_.progress();
      }
    });
  }
  void stop(progress::Context& context) {
    if (context.state() == progress::Context::State::idle) return;
    context.stop();
    EXPECT_TRUE(until([&] { return context.state() == progress::Context::State::idle; }));
  }

  DeviceContext device_;
  ProtectionDomain domain_;
  RdmaRegistrar registrar_;
  mutable progress::Engine engine_;
  mutable CompletionLoop loop_;
  memory::MemoryRegion region_;
  memory::BufferInventory buffers_;
  memory::RemoteRange remote_;
};

inline void connect(Connection& a, Connection& b) {
  const auto of_a = a.descriptor().encode();
  const auto of_b = b.descriptor().encode();
  a.connect_to(ConnectionDescriptor::decode(of_b));
  b.connect_to(ConnectionDescriptor::decode(of_a));
}

}  // namespace offload::rdma
