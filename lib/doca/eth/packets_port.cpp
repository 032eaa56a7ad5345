#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/eth/port.hpp"
#include "kernels/group.hpp"
#include "kernels/packets/queue.hpp"
#include "packets/image.hpp"
#include "packets/port.hpp"
#include "packets/rule.hpp"
#include "progress/engine.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;
using kernels::SingleLane;
using kernels::packets::EthernetFrame;
using kernels::packets::FrameBatch;
using kernels::packets::Queue;
using kernels::packets::Verdict;
using kernels::packets::WaitLimit;
using kernels::packets::WorkResult;

constexpr WaitLimit kAtOnce{0};
/// Another thread that has begun to return frames may have lost its processor.
constexpr WaitLimit kForOthers{1'000'000'000};

packets::PortOptions options_of(const std::string& interface) {
  // One hardware queue: frames that the card gives to others would not reach the receivers.
  const std::uint32_t hardware_queues = packets::homes_of({.interface = interface}) / 2;
  if (hardware_queues != 1) {
    throw Error(ErrorCode::not_supported,
                interface + " has " + std::to_string(hardware_queues) +
                    " hardware queues, and this library receives from one: ethtool -L " +
                    interface + " combined 1");
  }
  return {.interface = interface, .hardware_queues = {0}, .queues = EthPort::kQueues};
}

/// The rules of OFFLOAD_DOCA_ETH_RULES, with semicolons between them.
std::vector<packets::Rule> rules_of_environment() {
  const char* const text = std::getenv("OFFLOAD_DOCA_ETH_RULES");
  std::vector<packets::Rule> rules;
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rules.push_back(packets::parse_rule(part, EthPort::kQueues));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return rules;
}

class PacketsPort final : public EthPort {
 public:
  explicit PacketsPort(const std::string& interface)
      : interface_(interface),
        control_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")),
        rules_(rules_of_environment()),
        memory_({.homes = 1 + kQueues, .frames_per_home = kFrames, .frame_bytes = 4096}),
        port_(memory_, options_of(interface)),
        ports_{&port_},
        image_(memory_, ports_) {
    for (std::uint32_t i = 0; i < kQueues; ++i) states_.at(i).seen = kFrames;
    port_.connect(engine_);
    port_.start();
  }
  ~PacketsPort() override { port_.stop(); }

  void begin_receiving(std::uint32_t queue) override {
    if (queue >= kQueues) {
      throw Error(ErrorCode::invalid_value, "queue " + std::to_string(queue) +
                                                " of an interface: 0 to " +
                                                std::to_string(kQueues - 1) + " are allowed");
    }
    const std::lock_guard lock(mutex_);
    State& state = states_.at(queue);
    if (state.has_receiver) {
      throw Error(ErrorCode::in_use, "queue " + std::to_string(queue) + " of " + port_.name() +
                                         " has a receiver already");
    }
    drop_waiting(queue);
    state.has_receiver = true;
    try {
      set_rules();
    } catch (...) {
      state.has_receiver = false;
      throw;
    }
  }
  void end_receiving(std::uint32_t queue) noexcept override {
    const std::lock_guard lock(mutex_);
    states_.at(queue).has_receiver = false;
    try {
      set_rules();
      drop_waiting(queue);
    } catch (const std::exception& error) {
      core::log_error("{}: {}", port_.name(), error.what());
    }
  }
  std::uint32_t begin_sending() override {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(states_.begin(), states_.end(),
                                    [](const State& state) { return !state.has_sender; });
    if (found == states_.end()) {
      throw Error(ErrorCode::full,
                  port_.name() + ": all " + std::to_string(kQueues) + " queues have senders");
    }
    found->has_sender = true;
    return static_cast<std::uint32_t>(found - states_.begin());
  }
  void end_sending(std::uint32_t queue) noexcept override {
    const std::lock_guard lock(mutex_);
    states_.at(queue).has_sender = false;
  }
  [[nodiscard]] core::Fd watch(std::uint32_t queue) const override {
    const int socket = port_.queues()[queue].socket.fd();
    return core::Fd(core::check_errno(::fcntl(socket, F_DUPFD_CLOEXEC, 0), "duplicate a socket"));
  }
  bool is_gone(core::TimePoint now, core::TimePoint& next_look) noexcept override {
    if (now < next_look) return false;
    next_look = now + std::chrono::seconds(1);
    ifreq request{};
    interface_.copy(request.ifr_name, sizeof request.ifr_name - 1);
    if (::ioctl(control_.get(), SIOCGIFINDEX, &request) == 0) return false;
    core::log_error("{}: the interface is gone", port_.name());
    return true;
  }

  std::size_t receive(std::uint32_t queue, std::size_t most,
                      const std::function<void(std::span<const std::byte>)>& take) override {
    const Queue& from = queue_of(queue);
    std::uint32_t& received = states_.at(queue).received;
    const FrameBatch batch = kernels::packets::receive(SingleLane{}, from, received,
                                                       static_cast<std::uint32_t>(most), kAtOnce);
    if (batch.count == 0) return 0;
    std::size_t taken = 0;
    const WorkResult result = kernels::packets::finish(
        SingleLane{}, from, from, received, batch, kForOthers, [&](EthernetFrame& frame) {
          take({reinterpret_cast<const std::byte*>(frame.data), frame.length});
          ++taken;
          return Verdict::drop;
        });
    if (result != WorkResult::done) {
      core::log_error("{}: frames of queue {} cannot be returned", port_.name(), queue);
    }
    port_.wake(0);  // whose socket has the ring of free frames
    return taken;
  }

  std::optional<Room> take_room(std::uint32_t queue) noexcept override {
    const Queue& from = queue_of(queue);
    // A frame that was sent is taken after take_sent() has said so.
    if (static_cast<std::uint32_t>(from.free_frames.order->taken) == states_.at(queue).seen) {
      return std::nullopt;
    }
    std::uint64_t address = 0;
    if (kernels::packets::take_frames(SingleLane{}, from.free_frames, 1, address) == 0) {
      return std::nullopt;
    }
    return Room{number_of(queue, address),
                memory_.bytes().subspan(address, memory_.sizes().frame_bytes)};
  }
  void send(std::uint32_t queue, const Room& room, std::uint32_t length) noexcept override {
    const auto address = static_cast<std::uint64_t>(room.bytes.data() - memory_.bytes().data());
    const WorkResult sent = kernels::packets::send(SingleLane{}, queue_of(queue), true,
                                                   {address, length, 0}, kForOthers);
    if (sent != WorkResult::done) {
      core::log_error("{}: a frame of queue {} cannot be sent", port_.name(), queue);
    }
  }
  void return_room(std::uint32_t queue, const Room& room) noexcept override {
    const auto address = static_cast<std::uint64_t>(room.bytes.data() - memory_.bytes().data());
    kernels::packets::give_back(SingleLane{}, queue_of(queue).frames, true, address, kForOthers);
  }
  void wake(std::uint32_t queue) noexcept override { port_.wake(queue); }
  std::size_t take_sent(std::uint32_t queue, std::span<std::uint32_t> numbers) noexcept override {
    const Queue& from = queue_of(queue);
    kernels::packets::recycle(SingleLane{}, from, kForOthers);
    // Each frame that was sent stands in the ring of free ones behind those seen before.
    const auto& ring = from.free_frames.ring;
    std::uint32_t& seen = states_.at(queue).seen;
    const std::uint32_t end = kernels::packets::take_position(ring.producer, seen);
    std::size_t count = 0;
    for (; seen != end && count < numbers.size(); ++seen) {
      numbers[count++] = number_of(queue, ring.at(seen));
    }
    return count;
  }

 private:
  struct State {
    bool has_receiver = false;  ///< by mutex_, as the next
    bool has_sender = false;
    std::uint32_t received = 0;  ///< the receiver's: entries of the receive ring
    std::uint32_t seen = 0;      ///< the sender's: positions of the ring of free frames
  };

  [[nodiscard]] const Queue& queue_of(std::uint32_t queue) const noexcept {
    return image_.queues()[queue];
  }
  [[nodiscard]] std::uint32_t number_of(std::uint32_t queue, std::uint64_t address) const noexcept {
    return static_cast<std::uint32_t>(address / memory_.sizes().frame_bytes) -
           port_.queues()[queue].home * kFrames;
  }
  /// Those of queues that have receivers hold.
  void set_rules() {
    std::vector<packets::Rule> now;
    for (const packets::Rule& rule : rules_) {
      const std::uint32_t first = rule.fields.target;
      const std::uint32_t count = std::max<std::uint32_t>(rule.fields.spread, 1);
      bool holds = true;
      for (std::uint32_t i = first; first < kQueues && i < first + count; ++i) {
        holds = holds && states_.at(i).has_receiver;
      }
      if (holds) now.push_back(rule);
    }
    port_.steering().set_rules(std::move(now));
  }
  /// Frees frames that arrived for a former receiver.
  void drop_waiting(std::uint32_t queue) {
    while (receive(queue, kFrames, [](std::span<const std::byte>) {}) != 0) continue;
  }

  std::string interface_;
  core::Fd control_;  ///< any socket of the interface's network namespace
  std::vector<packets::Rule> rules_;
  progress::Engine engine_;
  packets::FrameMemory memory_;
  packets::Port port_;
  std::array<const packets::Port*, 1> ports_;
  packets::HostImage image_;
  std::mutex mutex_;
  std::array<State, kQueues> states_;
};

/// The ports of this process. An interface takes one port at a time.
struct OpenPorts {
  struct Entry {
    std::weak_ptr<EthPort> port;
    bool exists = false;  ///< also while it is being closed
  };
  std::mutex mutex;
  std::condition_variable closed;
  std::map<std::string, Entry> by_interface;
};

/// Never destroyed, as destructors of a program may stop contexts at its end.
OpenPorts& open_ports() {
  static auto& ports = *new OpenPorts;
  return ports;
}

}  // namespace

bool EthPort::is_supported() noexcept {
  return true;
}

std::shared_ptr<EthPort> EthPort::open(const std::string& interface) {
  OpenPorts& ports = open_ports();
  std::unique_lock lock(ports.mutex);
  OpenPorts::Entry& entry = ports.by_interface[interface];
  for (;;) {
    if (auto port = entry.port.lock()) return port;
    if (!entry.exists) break;
    ports.closed.wait(lock);
  }
  auto made = std::make_unique<PacketsPort>(interface);
  const auto close = [&entry](EthPort* port) {
    delete port;
    OpenPorts& all = open_ports();
    const std::lock_guard closing(all.mutex);
    entry.exists = false;  // no entry is ever removed
    all.closed.notify_all();
  };
  std::shared_ptr<EthPort> port(made.release(), close);
  entry = {port, true};
  return port;
}

}  // namespace offload::doca
