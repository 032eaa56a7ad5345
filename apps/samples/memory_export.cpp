/// A sample: a process exports memory to another, which imports and writes it. Then it imports a
/// read-only export, and one that was tampered with.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "apps/samples/second_process.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "memory/region.hpp"
#include "memory/region_export.hpp"
#include "net/fd_passing.hpp"

namespace {

using namespace offload;
using memory::Access;
using memory::MemoryRegion;

constexpr const char* kName = "sample-memory-export";
constexpr std::size_t kBytes = 4096;

void send(int socket, const MemoryRegion& region, Access granted) {
  const memory::RegionExport exported = memory::export_region(region, granted);
  const std::array fds{exported.fds.front().get()};
  net::send_with_fds(socket, exported.blob, fds);
}

struct ReceivedExport {
  std::vector<std::byte> blob;
  std::vector<core::Fd> fds;
};

ReceivedExport receive(int socket) {
  std::vector<std::byte> blob(1024);
  auto message = net::receive_with_fds(socket, blob);
  if (!message) throw core::Error(core::ErrorCode::bad_message, "no export arrived");
  blob.resize(message->size);
  return {std::move(blob), std::move(message->fds)};
}

MemoryRegion import(ReceivedExport received) {
  return memory::import_region("imported", received.blob, std::move(received.fds));
}

std::byte* text_of(const MemoryRegion& region) {
  return region.ranges().front().address;
}

void write(const MemoryRegion& region, std::string_view text) {
  std::memcpy(text_of(region), text.data(),
              text.size() + 1);  // literals, with their terminating zero
}

void print(const char* reader, const MemoryRegion& region) {
  fmt::print("the {} process read: {}\n", reader, reinterpret_cast<const char*>(text_of(region)));
  std::fflush(stdout);
}

/// The name of the error that a call throws.
template <class Call>
std::string_view refusal_of(Call call) {
  try {
    call();
    return "nothing";
  } catch (const core::Error& error) {
    return core::name_of(error.code());
  }
}

void second_process(int socket) {
  MemoryRegion shared = import(receive(socket));
  shared.start();
  print("second", shared);
  write(shared, "hello from the second");

  MemoryRegion read_only = import(receive(socket));
  read_only.start();
  const auto widened = [&] { memory::export_region(read_only, memory::kLocalAccess); };
  fmt::print("a read-only export is not writable: {}\n", refusal_of(widened));

  ReceivedExport forged = receive(socket);
  forged.blob.back() ^= std::byte{1};
  fmt::print("a forged blob: {}\n", refusal_of([&] { import(std::move(forged)); }));
  std::fflush(stdout);
}

int run() {
  const samples::SecondProcess second(kName, second_process);
  MemoryRegion region({"shared", memory::kLocalAccess}, {memory::share_range("shared", kBytes)});
  region.start();
  write(region, "hello from the first");
  send(second.socket(), region, memory::kLocalAccess);
  send(second.socket(), region, Access::local_read);
  send(second.socket(), region, Access::local_read);
  second.wait();
  print("first", region);
  return 0;
}

}  // namespace

int main() {
  return core::exit_status_of(kName, run);
}
