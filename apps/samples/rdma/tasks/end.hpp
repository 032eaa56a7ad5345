#pragma once

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apps/samples/second_process.hpp"
#include "core/exit_status.hpp"
#include "device/device.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/connection.hpp"
#include "rdma_tasks/task_support.hpp"
#include "tasks/memory/inventory.hpp"
#include "tasks/memory/remote_region.hpp"

/// Shared by the samples of RDMA tasks: one end of a connection over the first RDMA device, and two
/// processes with one end each.
namespace offload::samples {

inline constexpr core::Duration kPatience = std::chrono::seconds(20);
inline constexpr int kNoDevice = 77;

/// A device, memory that the peer may do anything to, and a connection. The two ends tell each
/// other of both over `socket`; any other way of carrying some bytes would do.
class End {
 public:
  explicit End(int socket)
      : device(device::find(device::list_devices(), "rdma")),
        domain(device),
        registrar(domain),
        completions(device, engine, 2048),
        region({"sample", memory::kLocalAccess | memory::kRemoteAccess},
               {memory::allocate_range(kMemory)}),
        buffers(16),
        connection({device, domain, registrar, completions}, {}),
        remote(memory::Access::none, {}),
        socket_(socket) {
    region.add_registrar(registrar);
    region.start();
    buffers.start();
    connection.connect(engine);
  }
  ~End() { connection.stop_within(kPatience); }

  /// Tasks of one kind, to be made before start(). Throws Error if the device does not support
  /// them.
  template <class Task>
  progress::TaskPool<Task> tasks(std::size_t count = 4) {
    if (const auto support = rdma::supports_task<Task>(device); !support) {
      throw core::Error(core::ErrorCode::not_supported, support.reason);
    }
    const auto ignore = [](Task&, void*) {};
    return progress::TaskPool<Task>(connection, count, {ignore, ignore});
  }

  /// Receives can be submitted from here on.
  void start() { connection.start(); }
  /// Exchanges descriptors of queue pair and memory with the other end, and connects.
  void connect() {
    send(connection.descriptor().encode());
    connection.connect_to(rdma::ConnectionDescriptor::decode(receive()));
    send(memory::export_remote(region, registrar, memory::kRemoteAccess));
    remote = memory::import_remote(receive());
    wait_for_peer();
  }

  /// Submits a task, and throws Error if it is refused or fails.
  void run(rdma::RdmaTask& task) {
    submit(task);
    finish(task);
  }
  void submit(rdma::RdmaTask& task) {
    const core::Status status = connection.submit(task);
    if (!status.ok()) throw core::Error(status.error(), "the task was rejected");
  }
  void finish(rdma::RdmaTask& task) {
    const auto is_done = [&] { return task.state() == progress::Task::State::done; };
    if (!engine.run_until(is_done, kPatience)) {
      throw core::Error(core::ErrorCode::timed_out, "the task did not end in time");
    }
    if (!task.status().ok()) throw core::Error(task.status().error(), task.explain());
  }

  /// Waits until the other end has come to the same place.
  void wait_for_peer() {
    send({});
    static_cast<void>(receive());
  }
  void send(const std::vector<std::byte>& bytes) const {
    // One byte more: no message is empty, as that would be the peer's end.
    std::vector<std::byte> message(1 + bytes.size());
    std::ranges::copy(bytes, message.begin() + 1);
    core::check_errno(::send(socket_, message.data(), message.size(), MSG_NOSIGNAL), "send");
  }
  [[nodiscard]] std::vector<std::byte> receive() const {
    std::array<std::byte, 1024> room;
    const auto length = core::check_errno(::recv(socket_, room.data(), room.size(), 0), "recv");
    if (length == 0)
      throw core::Error(core::ErrorCode::connection_reset, "the peer has disconnected");
    return {room.begin() + 1, room.begin() + length};
  }

  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t length) const {
    return {region.ranges()[0].address + offset, length};
  }
  /// Empty memory, and memory with a text in it.
  memory::BufferRef room(std::size_t offset, std::size_t length) {
    return buffers.take(region, bytes(offset, length)).buffer;
  }
  memory::BufferRef text(std::size_t offset, std::string_view text) {
    const auto to = bytes(offset, text.size());
    std::ranges::copy(std::as_bytes(std::span(text)), to.begin());
    return buffers.take_by_data(region, to).buffer;
  }
  /// The peer's memory.
  [[nodiscard]] memory::RemoteBuffer there(std::size_t offset, std::size_t length) const {
    const auto& range = remote.ranges().at(0);
    return memory::RemoteBuffer::of(remote, range.address + offset, length).value();
  }

  static constexpr std::size_t kMemory = 64UL << 10;
  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::RdmaRegistrar registrar;
  progress::Engine engine;
  rdma::CompletionLoop completions;
  memory::MemoryRegion region;
  memory::BufferInventory buffers;
  rdma::Connection connection;
  memory::RemoteRegion remote;

 private:
  int socket_;
};

/// A task of a pool that has one.
template <class Task>
Task& taken(progress::TaskPool<Task>& pool) {
  Task* const task = pool.allocate();
  if (task == nullptr) throw core::Error(core::ErrorCode::full, "all tasks are in use");
  return *task;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The program: `requester` here, `responder` in a second process.
template <class Requester, class Responder>
int two_ends(const char* name, Requester requester, Responder responder) {
  return core::exit_status_of(name, [&] {
    if (const auto found = device::list_rdma_devices(); found.devices.empty()) {
      fmt::print("no RDMA device: {}\n", found.why_none);
      return kNoDevice;
    }
    const SecondProcess second(name, [&](int socket) {
      End end(socket);
      responder(end);
    });
    {
      End end(second.socket());
      requester(end);
    }
    second.wait();
    return 0;
  });
}

}  // namespace offload::samples
