/// A sample without requests and responses: a kernel watches values, and sends a notice whenever
/// there were kEvents events. The other process, as a DPU would, has posted receives for them.
#include "apps/samples/unsolicited.hpp"

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <thread>

#include "apps/samples/second_process.hpp"
#include "channel/channel_memory.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "net/fd_passing.hpp"

namespace {

using namespace offload;
using core::Error;
using core::ErrorCode;

constexpr const char* kName = "sample-unsolicited";
constexpr core::Duration kPatience = std::chrono::seconds(20);

/// The receiving side: a requester whose requests are receives.
class Receiver {
 public:
  explicit Receiver(channel::ChannelMemory& memory) : requester_(memory.endpoint(), *this) {
    requester_.open(engine_);
    requester_.set_wakeup(channel::Wakeup::polling);
    for (std::uint32_t i = 0; i < samples::kReceives; ++i) post();
  }

  /// Compares each notice with its own count. Throws Error.
  void receive(std::uint32_t notices) {
    const auto deadline = core::Clock::now() + kPatience;
    while (received_ < notices) {
      if (core::Clock::now() > deadline) throw Error(ErrorCode::timed_out, "no notice arrived");
      if (engine_.progress() == 0) std::this_thread::yield();
    }
  }

  void on_response(channel::PostRecvTask& task) {
    samples::Notice notice{};
    if (task.payload().size() != sizeof notice) {
      throw Error(ErrorCode::bad_message, "a notice has the wrong length");
    }
    std::memcpy(&notice, task.payload().data(), sizeof notice);
    ++received_;
    while (events_ / samples::kEvents < received_) count_a_chunk();
    if (notice.events != events_ || notice.chunk + 1 != chunks_) {
      throw Error(ErrorCode::bad_message, fmt::format("notice {} is wrong", received_));
    }
    [[maybe_unused]] const core::Status status = requester_.release(task);
    requester_.flush();  // frees the slot
    post();
  }

 private:
  void post() {
    const core::Status status = requester_.post({}, this);
    if (!status.ok()) throw Error(status.error(), "cannot post a receive");
    requester_.flush();  // each in a separate slot
  }
  void count_a_chunk() {
    for (std::uint32_t i = 0; i < samples::kChunk; ++i) {
      if (samples::value_at(chunks_ * samples::kChunk + i) > samples::kAlarm) ++events_;
    }
    ++chunks_;
  }

  progress::Engine engine_;
  channel::Requester requester_;
  std::uint32_t received_ = 0;
  std::uint32_t events_ = 0;
  std::uint32_t chunks_ = 0;
};

std::uint32_t notices() {
  std::uint32_t events = 0;
  for (std::uint32_t i = 0; i < samples::kChunks * samples::kChunk; ++i) {
    if (samples::value_at(i) > samples::kAlarm) ++events;
  }
  return events / samples::kEvents;
}

void receiving_process(int socket) {
  channel::ChannelMemory memory(0, samples::kReceives, 64, -1);
  Receiver receiver(memory);
  net::send_with_fds(socket, memory.descriptor().encode(), memory.fds());
  receiver.receive(notices());
}

int run() {
  const samples::SecondProcess second(kName, receiving_process);
  std::array<std::byte, 4096> bytes;
  auto message = net::receive_with_fds(second.socket(), bytes);
  const auto shape = protocol::ChannelDescriptor::decode(std::span(bytes).first(message->size));
  channel::OwnedChannelFds fds;
  if (!shape || message->fds.size() != fds.size()) {
    throw Error(ErrorCode::bad_message, "no channel arrived");
  }
  std::move(message->fds.begin(), message->fds.end(), fds.begin());
  const channel::ImportedChannel channel(*shape, std::move(fds));
  channel::start_regions(channel);
  const char* by = nullptr;
  const std::uint32_t taken = samples::watch(channel.view(), by);
  second.wait();
  fmt::print("{}: {} unsolicited notices, sent by {}\n", kName, taken, by);
  return taken == notices() ? 0 : 1;
}

}  // namespace

int main() {
  return core::exit_status_of(kName, run);
}
