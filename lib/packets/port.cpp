#include "packets/port.hpp"

#include <fmt/core.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/log.hpp"
#include "packets/privileges.hpp"

namespace offload::packets {
namespace {

using core::Error;
using core::ErrorCode;

/// The interval of polls of a ring in memory, which wakes no thread.
constexpr core::Duration kLookInterval = std::chrono::microseconds(50);
constexpr core::Duration kLinkInterval = std::chrono::seconds(1);

unsigned index_of(const std::string& interface) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index != 0) return index;
  throw Error(ErrorCode::not_found, fmt::format("there is no interface '{}'", interface));
}

core::Fd control_socket() {
  return core::Fd(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
}

/// Names the interface in a request of ioctl(2).
ifreq request_about(const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  return request;
}

/// As ethtool -l; sysfs may be that of another network namespace.
std::vector<std::uint32_t> all_queues(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request = request_about(interface);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  const core::Fd control = control_socket();
  const bool told = ::ioctl(control.get(), SIOCETHTOOL, &request) == 0;
  const std::uint32_t count = told ? channels.rx_count + channels.combined_count : 1;
  std::vector<std::uint32_t> queues(std::max(count, 1U));
  std::iota(queues.begin(), queues.end(), 0U);
  return queues;
}

PortOptions completed(PortOptions options) {
  static_cast<void>(index_of(options.interface));
  if (options.hardware_queues.empty()) options.hardware_queues = all_queues(options.interface);
  for (const std::uint32_t queue : options.hardware_queues) {
    if (queue < OFFLOAD_MOST_HARDWARE_QUEUES) continue;
    throw Error(ErrorCode::invalid_value,
                fmt::format("queue {} of {}: at most {} are allowed", queue, options.interface,
                            OFFLOAD_MOST_HARDWARE_QUEUES - 1));
  }
  if (options.queues == 0 || options.queues > OFFLOAD_MOST_QUEUES) {
    throw Error(ErrorCode::invalid_value,
                fmt::format("{} queues: 1 to {}", options.queues, +OFFLOAD_MOST_QUEUES));
  }
  return options;
}

bool is_waiting(const std::uint32_t* producer, const std::uint32_t* consumer) noexcept {
  // Relaxed: the system call that follows orders what it needs.
  return __atomic_load_n(producer, __ATOMIC_RELAXED) != __atomic_load_n(consumer, __ATOMIC_RELAXED);
}

template <class Ring>
bool wants_wakeup(const Ring& ring) noexcept {
  return is_waiting(ring.producer, ring.consumer) &&
         (__atomic_load_n(ring.flags, __ATOMIC_RELAXED) & kernels::packets::kNeedWakeup) != 0;
}

}  // namespace

std::uint32_t homes_of(const PortOptions& options) {
  const PortOptions whole = completed(options);
  return static_cast<std::uint32_t>(whole.hardware_queues.size()) * (1 + whole.queues);
}

Port::Port(FrameMemory& memory, PortOptions options, OnError on_error)
    : Context("port '" + options.interface + "'", Turns::always),
      options_(completed(std::move(options))),
      memory_(memory),
      on_error_(std::move(on_error)),
      steering_(options_.interface, index_of(options_.interface)),
      control_(control_socket()) {
  queues_.reserve(options_.hardware_queues.size() * options_.queues);
  wake_ups_ = std::make_unique<WakeUps[]>(options_.hardware_queues.size() * options_.queues);
  for (const std::uint32_t number : options_.hardware_queues) {
    add_hardware_queue(memory, number, index_of(options_.interface));
  }
  steering_.set_rules({});
}

Port::~Port() {
  end();
}

void Port::add_hardware_queue(FrameMemory& memory, std::uint32_t number, unsigned interface_index) {
  const HardwareQueue hardware{number, memory.take_home(), queues_.size()};
  SocketPlace place{options_.interface, interface_index, number, options_.only_copy, -1};
  for (std::uint32_t i = 0; i < options_.queues; ++i) {
    queues_.push_back({number, i, memory.take_home(), Socket(memory, place)});
    place.same_hardware_queue = queues_[hardware.first].socket.fd();
    steering_.add_socket(number, i, queues_.back().socket.fd());
  }
  hardware_.push_back(hardware);
}

Socket::Statistics Port::statistics() const {
  Socket::Statistics sum;
  for (const PortQueue& queue : queues_) {
    const Socket::Statistics each = queue.socket.statistics();
    sum.dropped += each.dropped;
    sum.ring_full += each.ring_full;
    if (queue.number == 0) sum.no_frames += each.no_frames;  // of the fill ring that all share
    sum.invalid_sends += each.invalid_sends;
  }
  return sum;
}

void Port::fill(const HardwareQueue& hardware) const noexcept {
  const auto& ring = queues_[hardware.first].socket.fill();
  const std::uint64_t begin = std::uint64_t{hardware.home} * memory_.sizes().frames_per_home;
  for (std::uint32_t i = 0; i <= ring.mask; ++i) {
    ring.entries[i] = (begin + i) * memory_.sizes().frame_bytes;
  }
  kernels::packets::publish_position(ring.producer, ring.mask + 1);
}

progress::Context::Step Port::on_start() {
  if (std::exchange(is_used_, true)) {
    core::throw_bad_state(name(), "used", "start again");
  }
  for (const HardwareQueue& hardware : hardware_) fill(hardware);
  for (const PortQueue& queue : queues_) {
    engine()->watch(queue.socket.fd(), EPOLLIN | EPOLLET, *this);
  }
  try {
    steering_.attach();
  } catch (...) {
    leave();
    throw;
  }
  core::log_info("{}: {} queues on {} of the interface, {}", name(), queues_.size(),
                 hardware_.size(), is_zero_copy() ? "zero copy" : "frames are copied");
  request_turn();
  return Step::done;
}

void Port::leave() noexcept {
  steering_.detach();
  for (const PortQueue& queue : queues_) engine()->unwatch(queue.socket.fd(), *this);
}

progress::Context::Step Port::on_stop() noexcept {
  leave();
  return Step::done;
}

bool Port::wake(std::size_t queue) noexcept {
  const PortQueue& own = queues_[queue];
  bool woke = false;
  if (wants_wakeup(own.socket.send())) {
    // In copy mode this sends 32 packets at most (the kernel's TX_BATCH_SIZE) and says EAGAIN if
    // there are more; EBUSY and ENOBUFS say to try again later, and so does what is left.
    static_cast<void>(::sendto(own.socket.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0));
    woke = true;
  }
  if (own.socket.fill().flags != nullptr && wants_wakeup(own.socket.fill())) {
    static_cast<void>(::recvfrom(own.socket.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr));
    woke = true;
  }
  if (woke) wake_ups_[queue].count.fetch_add(1, std::memory_order_relaxed);
  return woke;
}

std::uint64_t Port::wake_ups() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    sum += wake_ups_[i].count.load(std::memory_order_relaxed);
  }
  return sum;
}

void Port::look_at_link() {
  ifreq request = request_about(options_.interface);
  if (::ioctl(control_.get(), SIOCGIFFLAGS, &request) != 0) {
    is_gone_ = true;
    return;
  }
  const bool is_up = (request.ifr_flags & IFF_UP) != 0;
  if (is_up == std::exchange(is_up_, is_up)) return;
  if (is_up) {
    core::log_info("{}: the interface is up again", name());
  } else {
    core::log_warning("{}: the interface is down; packets wait until it is up again", name());
  }
}

bool Port::on_poll(std::size_t) {
  if (error_) return false;
  if (engine()->now() >= next_look_) {
    next_look_ = engine()->now() + kLinkInterval;
    look_at_link();
  }
  if (is_gone_) {
    error_.emplace(ErrorCode::not_connected, name() + ": the interface is gone");
    if (on_error_) on_error_(*this, *error_);
    return true;
  }
  bool worked = false;
  if (options_.wakes_driver && is_up_) {
    for (std::size_t i = 0; i < queues_.size(); ++i) worked = wake(i) || worked;
  }
  return worked;
}

core::Duration Port::arm() {
  return options_.wakes_driver ? kLookInterval : kLinkInterval;
}

void Port::on_events(std::uint32_t epoll_events) {
  // EPOLLIN: packets are there, so a turn is worth it. An error: the interface was removed.
  if ((epoll_events & (EPOLLERR | EPOLLHUP)) != 0) is_gone_ = true;
}

}  // namespace offload::packets
