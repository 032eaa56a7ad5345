#include <fcntl.h>

#include <utility>

#include "core/error.hpp"
#include "tasks/sync/sync_event.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, imported as a sync event: either the event that was exported comes of it, or it is
/// refused as a message.
namespace offload::fuzz {
namespace {

void run(Input input) {
  static sync::SyncEvent event({.name = "fuzz"});
  static std::uint64_t count = 0;
  const auto exported = event.export_to_process();
  try {
    const auto imported =
        sync::SyncEvent::import(input.rest(), core::Fd(::fcntl(exported.fd, F_DUPFD_CLOEXEC, 0)));
    require(imported.publisher() <= sync::Publisher::gpu, "its publisher is one there is");
    event.set(++count);
    require(imported.get() == count, "it is the same event");
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message ||
                error.code() == core::ErrorCode::unsupported_version,
            "it is refused as a message");
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
