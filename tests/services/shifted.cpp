#include <chrono>
#include <csignal>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/module/service_module.hpp"

namespace {

using offload::kernels::Block;
using offload::kernels::Request;
using offload::kernels::ServiceSetup;

/// Answers with the bytes that a table in its memory has for the request's, and counts its answers
/// there. On a CPU alone. Options: by (added to each byte), and what a service should not do:
/// hang-on and die-on (a first byte), pause-us, longer (bytes), throw, exhaust.
struct Shifted {
  static constexpr const char* kName = "shifted";
  static constexpr int kNever = 256;

  const std::uint8_t* table;
  std::uint64_t* answers;
  std::uint32_t longer;
  int hang_on;
  int die_on;
  std::uint32_t pause_us;

  [[nodiscard]] std::uint32_t response_length(std::uint32_t length) const {
    return length + longer;
  }

  static Shifted make(const ServiceSetup& setup) {
    if (setup.find("throw") != nullptr) throw std::runtime_error("as it was\ntold");
    if (setup.find("exhaust") != nullptr) throw std::bad_alloc();
    const int by = std::stoi(setup.option("by", "1"));
    std::vector<std::uint8_t> table;
    for (int i = 0; i < 256; ++i) table.push_back(static_cast<std::uint8_t>(i + by));
    Shifted made{};
    made.table = setup.copy(table);
    made.answers = setup.allocate<std::uint64_t>(1);
    made.longer = static_cast<std::uint32_t>(std::stoul(setup.option("longer", "0")));
    made.hang_on = std::stoi(setup.option("hang-on", std::to_string(kNever).c_str()));
    made.die_on = std::stoi(setup.option("die-on", std::to_string(kNever).c_str()));
    made.pause_us = static_cast<std::uint32_t>(std::stoul(setup.option("pause-us", "0")));
    return made;
  }

  template <class Group, class Response>
  void operator()(const Group& group, const Request& request, const Response& response) const {
    // Relaxed: a count, which orders nothing; all channels' threads add to it.
    __atomic_fetch_add(answers, 1, __ATOMIC_RELAXED);
    while (request.length() != 0 && request.byte(0) == hang_on) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    // Dies like in a crash, but without a sanitizer's report.
    if (request.length() != 0 && request.byte(0) == die_on) std::raise(SIGKILL);
    if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    response.fill(group, [&](std::uint32_t offset) {
      Block block{};
      std::uint8_t bytes[sizeof block] = {};
      for (std::uint32_t i = 0; i < sizeof block && offset + i < request.length(); ++i) {
        bytes[i] = table[request.byte(offset + i)];
      }
      std::memcpy(&block, bytes, sizeof block);
      return block;
    });
  }
};

}  // namespace

OFFLOAD_SERVICE_MODULE(Shifted);
