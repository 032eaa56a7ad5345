#include <chrono>
#include <vector>

#include "clients/cpp/include/offload_client.h"
#include "clients/cpp/src/exchange.hpp"
#include "tests/fuzz/input.hpp"

/// Any bytes as a server's, in any pieces, while requests are submitted, sent in part, expire and
/// are sent again: each request ends once, and those that are answered do so in their order.
namespace offload::fuzz {
namespace {

using clients::Exchange;

class Script {
 public:
  explicit Script(Input input) : input_(input) {}

  void run() {
    for (int step = 0; step < 200 && !input_.rest().empty(); ++step) {
      switch (input_.integer<std::uint8_t>() % 6U) {
        case 0: submit(); break;
        case 1: send(); break;
        case 2: receive(); break;
        case 3: exchange_.expire(core::TimePoint(std::chrono::seconds(++seconds_))); break;
        case 4: lose((input_.integer<std::uint8_t>() & 1U) != 0); break;
        default: take(); break;
      }
    }
    lose(false);
    take();
    require(exchange_.is_idle(), "each request has ended");
    for (const int count : ended_) require(count == 1, "a request ends once");
  }

 private:
  void submit() {
    if (exchange_.is_full()) return;
    const std::vector<std::byte> payload(input_.integer<std::uint8_t>());
    const bool idempotent = (input_.integer<std::uint8_t>() & 1U) != 0;
    const core::TimePoint deadline(std::chrono::seconds(seconds_ + input_.integer<std::uint8_t>()));
    exchange_.submit(payload, ended_.size(), deadline, idempotent);
    ended_.push_back(0);
  }
  void send() {
    if (exchange_.ending()) return;  // as the client does
    iovec pieces[4];
    std::size_t size = 0;
    const std::size_t count = exchange_.gather(pieces);
    for (std::size_t i = 0; i < count; ++i) size += pieces[i].iov_len;
    exchange_.add_sent(std::min<std::size_t>(size, input_.integer<std::uint16_t>() % 600U));
  }
  void receive() {
    take();
    auto room = exchange_.room();
    const std::size_t size = std::min<std::size_t>(input_.integer<std::uint8_t>(), room.size());
    for (std::byte& byte : room.first(size)) byte = std::byte{input_.integer<std::uint8_t>()};
    exchange_.add_received(size);
  }
  void take() {
    while (const auto outcome = exchange_.next()) {
      ++ended_[outcome->tag];
      require(outcome->status == OFFLOAD_OK || !outcome->text.empty(), "a failure has a text");
      require(outcome->data.size() <= kLongest, "a response has at most the allowed length");
      if (outcome->status != OFFLOAD_OK) continue;
      require(outcome->tag >= answered_, "responses have the order of their requests");
      answered_ = outcome->tag + 1;
    }
  }
  void lose(bool retry) {
    take();
    exchange_.lose(OFFLOAD_LOST, "lost", retry);
  }

  static constexpr std::uint32_t kLongest = 300;
  Input input_;
  Exchange exchange_{{.requests = 16, .response_length = kLongest, .retries = true}};
  int seconds_ = 0;
  std::vector<int> ended_;  ///< how often, by tag
  std::uint64_t answered_ = 0;
};

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::Script({data, size}).run();
  return 0;
}
