#include <array>
#include <memory>
#include <vector>

#include "core/log.hpp"
#include "protocol/data.hpp"
#include "tests/fuzz/state/descriptors.hpp"
#include "tests/fuzz/state/relayed_channel.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

/// One channel over a network, or two, each with the server's and the worker's proxy and a
/// connection between them that the script controls. One thread.
///
/// The input: a byte of settings (1: 8 slots, else 4; 2: sockets with little room; 4: two
/// channels), then steps. A step is a byte, its low four bits the kind, 0x10 the channel, 0x20 the
/// direction (set: from the worker). Operands come behind it.
///
///   0  post a request: u16 length      8  carry all, both ways
///   1  post many: count, length        9  change a byte: u16 distance ahead, XOR mask
///   2  hand them on                   10  lose bytes: count
///   3  a turn of the server           11  insert a header, and bytes: sequence, u16 length, count,
///   4  a turn of the worker's end         status, bytes
///   5  the back end answers: slots    12  cut
///   6  carry: u16 bytes               13  the back end lies: u16 length, status, count
///   7  carry all but the last: bytes  14  end one direction
///                                     15  the worker is replaced
///
/// RelayedChannel checks the answers. A connection that the script did not disturb does not fail;
/// and once a reliable worker is there, all requests are answered.
namespace offload::fuzz {
namespace {

constexpr int kMostRounds = 500;

class RelayBench {
 public:
  explicit RelayBench(Script script) : script_(script) {
    const std::uint8_t settings = script_.byte();
    channels_.resize((settings & 4U) != 0 ? 2 : 1);
    for (auto& channel : channels_) {
      channel = std::make_unique<RelayedChannel>(engine_, (settings & 1U) != 0 ? 8 : 4,
                                                 (settings & 2U) != 0);
    }
  }

  void run() {
    while (!script_.ends()) step();
    finish();
  }

 private:
  void step() {
    const std::uint8_t head = script_.byte();
    RelayedChannel& channel = *channels_.at((head >> 4U) % channels_.size());
    const std::size_t from = (head >> 5U) & 1U;
    switch (head & 15U) {
      case 0: post(channel, script_.two_bytes() % (RelayedChannel::kLongest + 1)); break;
      case 1: post_many(channel); break;
      case 2: channel.flush(); break;
      case 3: turn(); break;
      case 4: turn_worker(channel); break;
      case 5:
        for (unsigned i = script_.byte(); i != 0 && channel.serve(); --i) continue;
        break;
      case 6: channel.pipe().carry(from, script_.two_bytes()); break;
      case 7: carry_most(channel, from); break;
      case 8:
        channel.pipe().carry(0, SIZE_MAX);
        channel.pipe().carry(1, SIZE_MAX);
        break;
      case 9: change(channel, from); break;
      case 10:
        if (channel.pipe().lose(from, 1U + script_.byte())) channel.distrust();
        break;
      case 11: insert(channel, from); break;
      case 12:
        channel.distrust();
        channel.pipe().cut();
        break;
      case 13: lie(channel); break;
      case 14:
        channel.distrust();
        channel.pipe().end(1 - from);
        break;
      default: replace(channel); break;
    }
  }

  void turn() {
    engine_.run_once({});
    for (auto& channel : channels_) {
      channel->release();
      require(
          !channel->trusted() || (channel->failure(0) == nullptr && channel->failure(1) == nullptr),
          "what nobody touched does not fail");
    }
  }
  /// Runs the worker's engine, which polls for the back end's answers before it asks the kernel.
  void turn_worker(RelayedChannel& channel) {
    time_.advance(std::chrono::milliseconds(1));
    channel.turn_worker();
  }

  bool post(RelayedChannel& channel, std::uint32_t length) {
    std::vector<std::byte> request(length);
    for (std::byte& byte : request) byte = static_cast<std::byte>(next_byte_++ * 151U >> 3U);
    return channel.post(std::move(request));
  }
  void post_many(RelayedChannel& channel) {
    const unsigned count = script_.byte();
    const std::uint32_t length = script_.byte();
    for (unsigned i = 0; i < count && post(channel, length); ++i) continue;
  }
  void change(RelayedChannel& channel, std::size_t from) {
    const std::size_t at = script_.two_bytes();
    const std::uint8_t by = script_.byte();
    if (by == 0) return;
    channel.distrust();
    channel.pipe().change(from, at, by);
  }
  /// Carries all but the last bytes: the script may carry those separately.
  void carry_most(RelayedChannel& channel, std::size_t from) {
    channel.pipe().carry_all_but(from, script_.byte());
    turn_worker(channel);
    turn();
  }
  void insert(RelayedChannel& channel, std::size_t from) {
    protocol::DataHeader header;
    header.sequence = script_.byte();
    header.length = script_.two_bytes();
    header.count = script_.byte();
    header.status = script_.byte();
    std::array<std::byte, protocol::kDataHeaderSize> bytes;
    header.store(bytes.data());
    channel.distrust();
    channel.pipe().insert(from, script_.bytes(std::min<std::size_t>(header.length, 64)));
    channel.pipe().insert(from, bytes);
  }
  void lie(RelayedChannel& channel) {
    const std::uint32_t length = script_.two_bytes();
    const std::uint32_t status = script_.byte();
    channel.lie(length, status, script_.byte());
  }
  void replace(RelayedChannel& channel) {
    if (++replaced_ > 4) return;
    channel.replace();
  }

  void finish() {
    for (auto& channel : channels_) {
      // An end that reads sees that its connection has ended, and reports the reason.
      turn_worker(*channel);
      if (!channel->trusted()) channel->replace();
      channel->flush();
    }
    int quiet = 0;
    for (int i = 0; i < kMostRounds && quiet < 3; ++i) {
      bool moved = false;
      turn();
      for (auto& channel : channels_) {
        moved = channel->pipe().carry(0, SIZE_MAX) != 0 || moved;
        turn_worker(*channel);
        while (channel->serve()) moved = true;
        turn_worker(*channel);
        moved = channel->pipe().carry(1, SIZE_MAX) != 0 || moved;
      }
      quiet = moved ? 0 : quiet + 1;
    }
    require(quiet == 3, "all comes to an end");
    for (auto& channel : channels_) {
      require(channel->awaited() == 0, "each request is answered");
      // Both ends detect it.
      channel->distrust();
      channel->pipe().cut();
      turn();
      turn_worker(*channel);
      turn();
      turn_worker(*channel);
      require(channel->failure(0) != nullptr && channel->failure(1) != nullptr,
              "an end that is cut off says so");
    }
  }

  NoDescriptorStays no_descriptor_stays_;
  VirtualTime time_;
  Script script_;
  progress::Engine engine_;
  std::vector<std::unique_ptr<RelayedChannel>> channels_;
  unsigned next_byte_ = 0;
  int replaced_ = 0;
};

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::RelayBench({data, size}).run();
  return 0;
}
