#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/rdma_tasks/device/path.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"
#include "tasks/memory/remote_region.hpp"
#include "tasks/sync/sync_event.hpp"

namespace offload::rdma_tool {

class SharedPool;

/// Outstanding control messages of either end: a sync, a hello and some credits.
inline constexpr std::size_t kControls = 4;
/// Bytes of a hello: the agreed options, and an exported region.
inline constexpr std::size_t kHelloBytes = 1024;

/// Messages that may be on their way to receives: those in flight, and as many while the credits
/// for the former are on their way back.
constexpr std::size_t window(const Options& options) noexcept {
  return std::size_t{options.in_flight} * 2;
}
/// Receives that a connection has posted.
constexpr std::size_t receives_of(const Options& options) noexcept {
  return window(options) + kControls;
}
/// Bytes of each receive.
std::size_t receive_room(const Options& options) noexcept;

/// One end of a connection, with its memory and tasks. Both ends have the same memory layout:
///
///   outgoing: in_flight slots | incoming: slots that the peer writes and reads | of a DevicePath,
///   if it has one: words and receives | receives | hello
///
/// Control messages, marked by their immediates, travel beside those of the operation: a hello at
/// the start, a sync when an end is ready for the next step, and a credit for receives that were
/// posted again, so that no message of a stream finds none. One thread.
class Endpoint {
 public:
  /// Starts the connection and posts its receives. `shared`: the receives that it shares, which
  /// outlive it, or null. Throws Error.
  Endpoint(Environment& environment, const Options& options, std::uint32_t number,
           SharedPool* shared);
  Endpoint& operator=(Endpoint&&) = delete;
  ~Endpoint();

  /// The completion queue entries that an endpoint needs.
  static std::uint32_t completions(const Options& options) noexcept;

  [[nodiscard]] rdma::Connection& connection() noexcept { return connection_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  // Functions that wait throw as Environment::wait does.

  /// Exchanges hellos with the peer, which have the agreed options and the memory of each. Throws
  /// Error (invalid_value) if the peer runs something else.
  void exchange_hello();
  /// In place of a peer: what device functions write comes to this end's memory.
  void connect_to_itself();
  /// Waits for the peer's sync().
  void sync();

  /// Waits for the slot of the next operation's bytes to be free, and returns it.
  std::span<std::byte> room();
  void send(std::size_t length, std::optional<std::uint32_t> immediate);
  void write(std::size_t remote_slot, std::size_t length, std::optional<std::uint32_t> immediate);
  void read(std::size_t remote_slot, std::size_t length);
  /// On the first 8 bytes of the peer's slot. Their former value goes to this end's slot.
  void compare_and_swap(std::size_t remote_slot, std::uint64_t compare, std::uint64_t swap);
  void fetch_and_add(std::size_t remote_slot, std::uint64_t add);
  /// Tasks for a graph to submit, one at a time and with no other outstanding: a read into the
  /// first slot, and a send of a buffer.
  rdma::ReadTask& prepared_read(std::size_t remote_slot, std::size_t length) noexcept;
  rdma::SendTask& prepared_send(const memory::Buffer& source) noexcept;
  /// Sets the number of operations posted with one doorbell.
  void set_batch(std::uint32_t batch) noexcept { options_.batch = batch; }
  /// Waits until `count` operations have completed since the start.
  void wait_completed(std::uint64_t count);
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_; }

  /// The slot of an operation, numbered from the start.
  [[nodiscard]] std::span<std::byte> outgoing(std::uint64_t operation) const noexcept;
  /// A slot that the peer writes and reads.
  [[nodiscard]] std::span<std::byte> incoming(std::size_t slot) const noexcept;
  [[nodiscard]] std::size_t incoming_slots() const noexcept { return incoming_slots_; }
  /// The event of this end, which the peer works on; only for the operation sync-event.
  [[nodiscard]] sync::SyncEvent& event() noexcept { return *event_; }
  /// Operates on the peer's event and waits for the completion. Returns the task's result.
  std::uint64_t work_on_event(rdma::RemoteSyncEventTask::Action action, std::uint64_t argument);

  /// Returns the path to which device functions post; null with --initiator cpu.
  [[nodiscard]] DevicePath* device() noexcept { return device_.get(); }

  /// Waits for the peer's next message. give_back() posts its receive again.
  rdma::Receive& receive();
  void give_back(rdma::Receive& task);

  /// Called when a receive has completed, and when an operation has failed.
  void received(rdma::Receive& task) noexcept;
  void failed(const rdma::RdmaTask& task) noexcept;

 private:
  enum Control : std::uint32_t { kHello = 0xffff'ff00, kSync, kCredit };

  /// Callbacks that call `done` when a task has succeeded.
  template <class Task, auto done>
  typename progress::TaskPool<Task>::Callbacks callbacks() noexcept;
  void completed(rdma::RdmaTask&) noexcept { ++completed_; }
  void control_completed(rdma::RdmaTask&) noexcept { ++controls_completed_; }

  void make_buffers();
  void make_tasks();
  core::Status post(rdma::Receive& task) noexcept;
  void make_device_path();
  [[nodiscard]] std::size_t device_bytes() const noexcept;
  void take_hello();
  [[nodiscard]] std::span<std::byte> slice(std::size_t offset, std::size_t length) const noexcept;
  [[nodiscard]] rdma::RemoteAddress remote(std::size_t slot) const noexcept;
  /// The next task of a pool, and the buffer of the next slot with `length` bytes of data.
  template <class Task>
  Task& next(progress::TaskPool<Task>& pool) noexcept;
  memory::Buffer* slot_buffer(std::size_t length) noexcept;
  void submit(rdma::RdmaTask& task);
  void flush() noexcept;
  void control(Control what, const memory::Buffer* source = nullptr);
  void wait_credit();
  void require(core::Status status, const char* action) const;
  [[nodiscard]] std::string described() const { return "connection " + std::to_string(number_); }

  Environment& environment_;
  Options options_;
  std::uint32_t number_;
  SharedPool* shared_;
  std::size_t stride_;
  std::size_t incoming_slots_;
  std::optional<sync::SyncEvent> event_;
  memory::MemoryRegion region_;
  memory::BufferInventory inventory_;
  std::vector<memory::BufferRef> outgoing_;
  std::vector<memory::BufferRef> receiving_;
  memory::BufferRef hello_;
  rdma::Connection connection_;
  std::unique_ptr<DevicePath> device_;
  progress::TaskPool<rdma::SendTask> controls_;
  progress::TaskPool<rdma::SendTask> sends_;
  progress::TaskPool<rdma::WriteTask> writes_;
  progress::TaskPool<rdma::ReadTask> reads_;
  progress::TaskPool<rdma::CompareAndSwapTask> swaps_;
  progress::TaskPool<rdma::FetchAndAddTask> adds_;
  progress::TaskPool<rdma::RemoteSyncEventTask> events_;
  progress::TaskPool<rdma::ReceiveTask> receives_;
  memory::RemoteRange peer_;
  memory::RemoteRange peer_event_;

  // Counted from the start.
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t controls_submitted_ = 0;
  std::uint64_t controls_completed_ = 0;
  std::uint64_t streamed_ = 0;  ///< messages sent to receives of the peer
  std::uint64_t credited_ = 0;  ///< receives that the peer has posted again
  std::uint64_t given_back_ = 0;
  std::uint64_t syncs_sent_ = 0;
  std::uint64_t syncs_received_ = 0;
  std::uint32_t unflushed_ = 0;
  std::vector<std::byte> peer_hello_;
  std::vector<rdma::Receive*> arrived_;  ///< a ring
  std::uint64_t arrived_count_ = 0;
  std::uint64_t taken_count_ = 0;
};

}  // namespace offload::rdma_tool
