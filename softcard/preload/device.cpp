#include "softcard/preload/device.hpp"

#include <infiniband/verbs.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma/mlx5/devx_fields.hpp"

namespace offload::softcard {
namespace {

namespace mlx5 = rdma::mlx5;
namespace wire = kernels::rdma;
using core::Error;
using core::ErrorCode;
using mlx5::DevxField;
using mlx5::DevxOpcode;
using model::State;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRecordBytes = 8;
/// Keys end so, and are no other kind of number.
constexpr std::uint32_t kKeyStep = 0x100;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_value, why, {core::Cause::Domain::system, EINVAL});
}

std::uint32_t get(const void* command, DevxField field) {
  const auto* const words = static_cast<const std::uint32_t*>(command);
  const std::uint32_t word = wire::big_endian(words[field.first / 32]);
  return word << field.first % 32 >> (32 - field.width);
}

std::uint64_t get_long(const void* command, DevxField field) {
  return std::uint64_t{get(command, {field.first, 32})} << 32 |
         get(command, {field.first + 32, 32});
}

std::uint32_t* words_at(std::byte* record) {
  return reinterpret_cast<std::uint32_t*>(record);
}

}  // namespace

class Device::Call {
 public:
  explicit Call(const Device& device) : callers_(const_cast<Device&>(device).callers_) {
    callers_.fetch_add(1, std::memory_order_relaxed);
    lock_ = std::unique_lock(device.mutex_);
  }
  Call& operator=(Call&&) = delete;
  ~Call() { callers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t>& callers_;
  std::unique_lock<std::mutex> lock_;
};

/// SOFTCARD_VERBS_REPORT: the seconds between the device's reports.
Device::Device() {
  const char* const text = std::getenv("SOFTCARD_VERBS_REPORT");
  if (text == nullptr) return;
  report_every_ = std::chrono::seconds(std::strtoul(text, nullptr, 10));
  next_report_ = Clock::now() + report_every_;
}

Device& Device::instance() {
  static auto& device = *new Device;
  return device;
}

void Device::open() {
  const Call call(*this);
  if (!wire_) {
    wire_.emplace();
    card_.set_wire(&*wire_);
    card_.set_mirror(&mirrors_);
  }
  if (contexts_++ != 0) return;
  ends_.store(false, std::memory_order_relaxed);
  thread_ = std::thread([this] { run(); });
}

void Device::close() noexcept {
  std::thread ended;
  {
    const Call call(*this);
    if (--contexts_ != 0) return;
    ends_.store(true, std::memory_order_relaxed);
    ended = std::move(thread_);
  }
  ended.join();
  // A process that this one makes later then has its own address.
  const Call call(*this);
  if (contexts_ == 0) {
    card_.set_wire(nullptr);
    wire_.reset();
  }
}

/// Waits as long as nothing happens: doorbells are memory, which nothing but looking tells about.
void Device::run() noexcept {
  constexpr int kTurns = 2000;
  constexpr timespec kNap{0, 20'000};
  int idle = 0;
  while (!ends_.load(std::memory_order_relaxed)) {
    bool worked = false;
    try {
      const std::lock_guard lock(mutex_);
      worked = turn();
    } catch (const std::exception& error) {
      core::log_error("the software card has failed: {}", error.what());
      return;
    }
    idle = worked ? 0 : idle + 1;
    if (idle > kTurns) ::nanosleep(&kNap, nullptr);
    while (callers_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
  }
}

bool Device::turn() {
  bool worked = wire_->receive(card_);
  for (auto& [number, registers] : registers_) worked = registers.look(card_) || worked;
  worked = card_.progress() || worked;
  if (report_every_ != Clock::duration{} && Clock::now() >= next_report_) report();
  if (!card_.fault().empty() && !has_told_fault_) {
    has_told_fault_ = true;
    core::log_error("{}", card_.fault());
  }
  return worked;
}

void Device::report() {
  next_report_ = Clock::now() + report_every_;
  const GpuMirrors::Counts& copies = mirrors_.counts();
  const auto milliseconds = [](auto duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  };
  core::log_warning(
      "{} datagrams sent, {} received; {} reads and {} writes of memory of a GPU took {} ms, the "
      "longest one {} ms",
      wire_->sent(), wire_->received(), copies.reads, copies.writes, milliseconds(copies.waited),
      milliseconds(copies.longest));
  for (const auto& [number, pair] : pairs_) {
    core::log_warning("queue pair {}: {}", number, card_.describe(number));
  }
}

std::array<std::uint8_t, 16> Device::gid() const {
  const Call call(*this);
  std::array<std::uint8_t, 16> gid{};
  gid[10] = gid[11] = 0xff;
  if (!wire_) return gid;
  for (std::uint32_t i = 0; i < 4; ++i) {
    gid[12 + i] = static_cast<std::uint8_t>(wire_->address() >> (24 - 8 * i));
  }
  return gid;
}

std::uint32_t Device::add_domain() {
  const Call call(*this);
  return next_++;
}

std::uint32_t Device::add_space(void* address, std::size_t size) {
  const Call call(*this);
  if (address == nullptr || size == 0) refuse("memory for queues without an address or a size");
  spaces_.emplace(next_, mirrors_.add(address, size));
  return next_++;
}

void Device::remove_space(std::uint32_t number) noexcept {
  const Call call(*this);
  const auto found = spaces_.find(number);
  if (found == spaces_.end()) return;
  forget(found->second);
  spaces_.erase(found);
}

std::uint32_t Device::add_region(std::uint32_t domain, std::uint64_t first, void* address,
                                 std::size_t length, unsigned access) {
  const Call call(*this);
  constexpr unsigned kWrites =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const std::uint32_t key = next_++ * kKeyStep;
  const auto bytes = mirrors_.add(address, length);
  card_.add_memory(
      key, {first,
            bytes,
            {(access & IBV_ACCESS_REMOTE_READ) != 0, (access & IBV_ACCESS_REMOTE_WRITE) != 0,
             (access & IBV_ACCESS_REMOTE_ATOMIC) != 0},
            (access & kWrites) != 0,
            domain});
  regions_.emplace(key, bytes);
  return key;
}

void Device::remove_region(std::uint32_t key) noexcept {
  const Call call(*this);
  const auto found = regions_.find(key);
  if (found == regions_.end()) return;
  card_.remove_memory(key);
  forget(found->second);
  regions_.erase(found);
}

std::uint32_t Device::add_registers(std::span<std::byte> page) {
  const Call call(*this);
  registers_.emplace(next_, Area{{}, page});
  return next_++;
}

void Device::remove_registers(std::uint32_t number) noexcept {
  const Call call(*this);
  registers_.erase(number);
}

std::byte* Device::part_of(std::uint32_t space, std::uint64_t offset, std::size_t bytes,
                           std::size_t alignment) const {
  const auto found = spaces_.find(space);
  if (found == spaces_.end() || bytes > found->second.size() ||
      offset > found->second.size() - bytes || offset % alignment != 0) {
    refuse("a queue does not lie in memory that the device knows");
  }
  return &found->second[offset];
}

std::uint32_t Device::make_completions(const void* command) {
  const Call call(*this);
  const auto field = [&](DevxField of) { return get(command, mlx5::kCqContext + of); };
  const std::uint32_t log2 = field(mlx5::kCqLogOfSize);
  if (registers_.find(field(mlx5::kCqRegisters)) == registers_.end()) {
    refuse("a completion queue without registers");
  }
  std::byte* const entries =
      part_of(get(command, mlx5::kEntriesSpace), get_long(command, mlx5::kEntriesPlace),
              sizeof(wire::Cqe) << log2, kPage);
  std::byte* const record = part_of(field(mlx5::kCqRecordSpace),
                                    get_long(command, mlx5::kCqContext + mlx5::kCqRecordPlace),
                                    kRecordBytes, kRecordBytes);
  const std::uint32_t number = next_++;
  card_.add_completions({reinterpret_cast<wire::Cqe*>(entries), log2, words_at(record), number},
                        {.checks_overrun = field(mlx5::kCqIgnoresOverrun) == 0, .number = number});
  return number;
}

std::uint32_t Device::make_pair(const void* command) {
  const Call call(*this);
  const auto field = [&](DevxField of) { return get(command, mlx5::kQpContext + of); };
  const auto registers = registers_.find(field(mlx5::kRegisters));
  if (registers == registers_.end()) refuse("a queue pair without registers");
  if (field(mlx5::kReceiveKind) != 0) {
    throw Error(ErrorCode::not_supported, "a queue pair with shared receives",
                {core::Cause::Domain::system, EOPNOTSUPP});
  }
  const std::size_t receives = std::size_t{1} << field(mlx5::kLogOfReceives);
  const std::size_t blocks = std::size_t{1} << field(mlx5::kLogOfBlocks);
  const std::size_t before = receives * sizeof(wire::Segment);
  std::byte* const rings =
      part_of(get(command, mlx5::kRingsSpace), get_long(command, mlx5::kRingsPlace),
              before + blocks * wire::kBlockBytes, kPage);
  std::uint32_t* const records = words_at(
      part_of(field(mlx5::kRecordSpace), get_long(command, mlx5::kQpContext + mlx5::kRecordPlace),
              kRecordBytes, kRecordBytes));
  model::PairLayout layout;
  layout.number = next_++;
  layout.sends = {reinterpret_cast<wire::Segment*>(rings + before),
                  static_cast<std::uint32_t>(blocks)};
  layout.send_record = records + 1;
  layout.receives = {rings, static_cast<std::uint32_t>(receives), 4, false, records};
  layout.sent = field(mlx5::kSendCompletions);
  layout.came = field(mlx5::kReceiveCompletions);
  layout.domain = field(mlx5::kDomain);
  layout.has_record = field(mlx5::kDoorbellKind) == 0;
  layout.may_wait = field(mlx5::kMaster) != 0;
  card_.add(layout);
  registers->second.add_pair(layout.number);
  pairs_.emplace(layout.number, Pair{registers->first});
  return layout.number;
}

void Device::change_pair(std::uint32_t number, const void* command) {
  const auto own = gid();
  const Call call(*this);
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) refuse("a command for an object that is no queue pair");
  const auto field = [&](DevxField of) { return get(command, mlx5::kQpContext + of); };
  const auto path = [&](DevxField of) { return get(command, mlx5::kPathOfQp + of); };
  State& state = found->second.state;
  model::PairChange change;
  std::optional<State> from;
  switch (static_cast<DevxOpcode>(get(command, mlx5::kOpcode))) {
    case DevxOpcode::reset_to_init:
      from = State::reset;
      change.state = State::init;
      change.rights = {field(mlx5::kRemoteRead) != 0, field(mlx5::kRemoteWrite) != 0,
                       field(mlx5::kRemoteAtomic) != 0};
      break;
    case DevxOpcode::init_to_receive: {
      from = State::init;
      change.state = State::receiving;
      change.peer = field(mlx5::kPeer);
      change.receive_psn = field(mlx5::kReceivePsn);
      change.rnr_timer = static_cast<std::uint8_t>(field(mlx5::kRnrTimer));
      const auto* const peer =
          static_cast<const std::uint8_t*>(command) + (mlx5::kPathOfQp + mlx5::kPeerGid) / 8;
      const bool is_here = std::equal(own.begin(), own.end(), peer);
      change.remote = is_here ? 0 : path({mlx5::kPeerGid + 96, 32});
      break;
    }
    case DevxOpcode::receive_to_send:
      from = State::receiving;
      change.state = State::sending;
      change.send_psn = field(mlx5::kSendPsn);
      change.retries = static_cast<std::uint8_t>(field(mlx5::kRetries));
      change.rnr_retries = static_cast<std::uint8_t>(field(mlx5::kRnrRetries));
      change.timeout = static_cast<std::uint8_t>(path(mlx5::kTimeout));
      break;
    case DevxOpcode::to_error: change.state = State::error; break;
    case DevxOpcode::to_reset:
      registers_.at(found->second.registers).look(card_);  // doorbells from before it
      change.state = State::reset;
      break;
    default: refuse("an unknown command for a queue pair");
  }
  if (from && state != *from) refuse("a queue pair is in another state than its command is for");
  card_.change(number, change);
  state = *change.state;
}

void Device::remove_completions(std::uint32_t number) noexcept {
  const Call call(*this);
  card_.remove_completions(number);
}

void Device::remove_pair(std::uint32_t number) noexcept {
  const Call call(*this);
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) return;
  const auto registers = registers_.find(found->second.registers);
  if (registers != registers_.end()) registers->second.remove_pair(number);
  card_.remove(number);
  pairs_.erase(found);
}

}  // namespace offload::softcard
