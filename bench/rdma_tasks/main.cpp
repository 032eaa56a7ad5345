#include <fmt/core.h>

#include <cstdio>

#include "bench/rdma_emulator/nothing_device.hpp"
#include "cli/options.hpp"
#include "core/exit_status.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"

/// Measures an operation by lib/rdma's tasks without the device: one at a time is submitted, and
/// its completion taken in turns of the engine, over a device that has done at once what is posted.
/// Instructions are callgrind's, as the difference of two counts of messages
/// (docs/evidence/benchmarks.md).
namespace offload::bench {
namespace {

struct Options {
  std::uint64_t messages = 1'000'000;
  std::uint32_t batch = 1;
};

int run(const Options& options) {
  progress::Engine engine;
  const rdma::DeviceContext device(kNothingDevice);
  const rdma::ProtectionDomain domain(device);
  rdma::RdmaRegistrar registrar(domain);
  rdma::CompletionLoop completions(device, engine, 4096);
  memory::MemoryRegion region({"messages", memory::kLocalAccess | memory::kRemoteAccess});
  region.add_range(memory::allocate_range(4096));
  region.add_registrar(registrar);
  region.start();
  memory::BufferInventory inventory(1);
  inventory.start();
  const memory::BufferRef buffer = inventory.take(region, {region.ranges()[0].address, 64}).buffer;
  static_cast<void>(buffer->set_data(0, 64));

  rdma::ConnectionOptions connection_options;
  connection_options.queues.max_send_wr = 1024;
  connection_options.queues.max_inline_data = 0;
  rdma::Connection connection({device, domain, registrar, completions}, connection_options);
  connection.connect(engine);
  std::uint64_t done = 0;
  const auto count = [](rdma::WriteTask&, void* counter) {
    ++*static_cast<std::uint64_t*>(counter);
  };
  progress::TaskPool<rdma::WriteTask> pool(connection, options.batch, {count, count, &done});
  connection.start();
  connection.connect_to(connection.descriptor());
  const memory::RemoteRange to{reinterpret_cast<std::uint64_t>(region.ranges()[0].address), 4096,
                               1};
  for (rdma::WriteTask& task : pool.tasks()) {
    static_cast<void>(pool.allocate());
    task.source = buffer.get();
    task.to = {to, 64};
  }

  const auto begun = core::Clock::now();
  for (std::uint64_t sent = 0; sent < options.messages;) {
    for (rdma::WriteTask& task : pool.tasks()) {
      if (!connection.submit_unflushed(task).ok()) return 1;
      ++sent;
    }
    if (!connection.flush().ok()) return 1;
    while (done != sent) engine.progress();
  }
  const auto spent = core::Clock::now() - begun;
  fmt::print("{:.0f} ns a message, {} a doorbell\n",
             static_cast<double>(spent.count()) / static_cast<double>(done), options.batch);
  connection.stop();
  return 0;
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("bench-rdma-tasks", [&] {
    bench::Options options;
    cli::CommandLine line(
        "bench-rdma-tasks",
        "Measures the cost of an operation with tasks of lib/rdma, without the device.");
    cli::add_integer<std::uint64_t>(line, "--messages", options.messages, 1, 1'000'000'000,
                                    "Post this number of writes of 64 bytes");
    cli::add_integer<std::uint32_t>(line, "--batch", options.batch, 1, 1024,
                                    "Post this number of writes with one doorbell");
    if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
    return bench::run(options);
  });
}
