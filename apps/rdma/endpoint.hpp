#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/rdma/environment.hpp"
#include "apps/rdma/options.hpp"
#include "memory/inventory.hpp"
#include "memory/region_export.hpp"
#include "progress/task_pool.hpp"
#include "rdma/connection/connection.hpp"
#include "sync/sync_event.hpp"

namespace offload::rdma_tool {

class SharedPool;

/// Controls under way at a time, of either end: a sync, a hello and some credits.
inline constexpr std::size_t kControls = 4;
/// A hello: the command line in short, and an exported region.
inline constexpr std::size_t kHelloBytes = 1024;

/// Messages of an operation that may be on the way to receives: those in flight, and as many while
/// the credits for the former travel.
constexpr std::size_t window(const Options& options) noexcept {
  return std::size_t{options.in_flight} * 2;
}
/// Receives that a connection has posted at a time.
constexpr std::size_t receives_of(const Options& options) noexcept {
  return window(options) + kControls;
}
/// Room of each, bytes.
std::size_t receive_room(const Options& options) noexcept;

/// A connection with its memory and tasks, in the words of the operations. Both ends have it alike:
///
///   outgoing: in_flight slots | incoming: for writes and reads of the peer | receives | hello
///
/// Messages of its own (controls) travel beside those of the operation, told by an immediate: what
/// both ends say at the start (hello), that one is ready for the next step (sync), and how many
/// receives were given back (credit), so that a stream never finds none. One thread.
class Endpoint {
 public:
  /// Starts the connection; its receives are posted. `shared`: null, or what it takes them from,
  /// which outlives it. Throws Error.
  Endpoint(Environment& environment, const Options& options, std::uint32_t number,
           SharedPool* shared);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  /// What one takes of a completion queue.
  static std::uint32_t completions(const Options& options) noexcept;

  [[nodiscard]] rdma::Connection& connection() noexcept { return connection_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  // All that waits throws as Environment::wait does.

  /// Once connected: tells the peer what this end runs and where its memory is, and hears the same
  /// of it. Throws Error (invalid_value) if it runs something else.
  void meet();
  /// Until the peer has come to the same point.
  void sync();

  /// The slot that the next operation takes its bytes from, or puts them into, once it is free.
  std::span<std::byte> room();
  void send(std::size_t length, std::optional<std::uint32_t> immediate);
  void write(std::size_t remote_slot, std::size_t length, std::optional<std::uint32_t> immediate);
  void read(std::size_t remote_slot, std::size_t length);
  /// Of the first eight bytes of the peer's slot. What they were comes to this end's.
  void compare_and_swap(std::size_t remote_slot, std::uint64_t compare, std::uint64_t swap);
  void fetch_and_add(std::size_t remote_slot, std::uint64_t add);
  /// For a graph to submit, one at a time and with nothing else on the endpoint: reads into the
  /// first slot, and sends what is in a buffer.
  rdma::ReadTask& prepared_read(std::size_t remote_slot, std::size_t length) noexcept;
  rdma::SendTask& prepared_send(const memory::Buffer& source) noexcept;
  /// Operations posted with one doorbell.
  void set_batch(std::uint32_t batch) noexcept { options_.batch = batch; }
  /// Until so many operations have ended, of all since the start.
  void wait_completed(std::uint64_t count);
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_; }

  /// The slot of the operation of that number, counted from the start.
  [[nodiscard]] std::span<std::byte> outgoing(std::uint64_t operation) const noexcept;
  /// Where the peer writes to and reads from.
  [[nodiscard]] std::span<std::byte> incoming(std::size_t slot) const noexcept;
  [[nodiscard]] std::size_t incoming_slots() const noexcept { return incoming_slots_; }
  /// One that the peer works on, by the function below; only of the operation sync-event.
  [[nodiscard]] sync::SyncEvent& event() noexcept { return *event_; }
  /// Waits for the end of it, so there is one at a time. Returns the task's result.
  std::uint64_t work_on_event(rdma::RemoteSyncEventTask::Action action, std::uint64_t argument);

  /// The peer's next message, in the order of their arrival; to be given back.
  rdma::Receive& receive();
  void give_back(rdma::Receive& task);

  /// For callbacks: a receive has come, or an operation failed.
  void received(rdma::Receive& task) noexcept;
  void failed(const rdma::Operation& task) noexcept;

 private:
  enum Control : std::uint32_t { kHello = 0xffff'ff00, kSync, kCredit };

  /// Callbacks that call `done` of this at the end of a task.
  template <class Task, auto done>
  typename progress::TaskPool<Task>::Callbacks callbacks() noexcept;
  void completed(rdma::Operation&) noexcept { ++completed_; }
  void control_completed(rdma::Operation&) noexcept { ++controls_completed_; }

  void make_buffers();
  void make_tasks();
  core::Status post(rdma::Receive& task) noexcept;
  void take_hello();
  [[nodiscard]] std::span<std::byte> slice(std::size_t offset, std::size_t length) const noexcept;
  [[nodiscard]] rdma::RemoteAddress remote(std::size_t slot) const noexcept;
  /// Its next task, and the buffer of the next slot with so much data.
  template <class Task>
  Task& next(progress::TaskPool<Task>& pool) noexcept;
  memory::Buffer* slot_buffer(std::size_t length) noexcept;
  void submit(rdma::Operation& task);
  void flush() noexcept;
  void control(Control what, const memory::Buffer* source = nullptr);
  void wait_credit();
  void require(core::Status status, const char* action) const;
  [[nodiscard]] std::string described() const;

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
  std::uint64_t streamed_ = 0;  ///< messages that took a receive of the peer
  std::uint64_t credited_ = 0;  ///< receives that the peer said it gave back
  std::uint64_t given_back_ = 0;
  std::uint64_t syncs_sent_ = 0;
  std::uint64_t syncs_heard_ = 0;
  std::uint32_t unflushed_ = 0;
  std::vector<std::byte> peer_hello_;
  std::vector<rdma::Receive*> arrived_;  ///< a ring: of so many, so many were taken
  std::uint64_t arrived_count_ = 0;
  std::uint64_t taken_count_ = 0;
};

}  // namespace offload::rdma_tool
