#include "apps/rdma/wire.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "protocol/bytes.hpp"

namespace offload::rdma_tool {
namespace {

using core::Error;
using core::ErrorCode;
using memory::Access;

/// Controls under way at a time, of either end: a sync, a hello and some credits.
constexpr std::size_t kControls = 4;
/// A hello: the command line in short, and an exported region.
constexpr std::size_t kHelloBytes = 1024;
constexpr std::size_t kCacheLine = 64;
/// What a connection gets to stop; it takes two seconds at most to flush.
constexpr core::Duration kStopTime = std::chrono::seconds(3);

std::size_t lines(std::size_t bytes) noexcept {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

std::size_t stride_of(const Options& options) {
  return lines(*std::max_element(options.sizes.begin(), options.sizes.end()));
}

bool sends_data(Operation operation) noexcept {
  return operation != Operation::write && operation != Operation::read &&
         operation != Operation::write_imm && operation != Operation::atomic &&
         operation != Operation::sync_event;
}

/// Messages that may be on the way to receives: those in flight, and as many while the credits
/// for the former travel.
std::size_t window(const Options& options) noexcept {
  return std::size_t{options.in_flight} * 2;
}

Access access_of(const rdma::DeviceContext& device) noexcept {
  const Access remote = Access::remote_read | Access::remote_write;
  return device.atomics() == rdma::Atomics::none ? remote : remote | Access::remote_atomic;
}

rdma::ConnectionOptions connection_options(const Options& options, Access access) {
  rdma::ConnectionOptions result;
  result.queues.transport = options.transport;
  result.queues.send_depth = static_cast<std::uint32_t>(options.in_flight + kControls);
  result.queues.receive_depth = static_cast<std::uint32_t>(window(options) + kControls);
  result.queues.gather = 1;
  result.queues.inline_size = options.inline_size;
  result.access = access;
  if (!options.gid.empty()) result.gid.address = rdma::parse_gid(options.gid);
  return result;
}

}  // namespace

std::uint32_t Wire::completions(const Options& options) noexcept {
  const auto queues = connection_options(options, Access::none).queues;
  return queues.send_depth + queues.receive_depth;
}

template <class Task, auto done>
typename progress::TaskPool<Task>::Callbacks Wire::callbacks() noexcept {
  return {[](Task& task, void* wire) { (static_cast<Wire*>(wire)->*done)(task); },
          [](Task& task, void* wire) { static_cast<Wire*>(wire)->failed(task); }, this};
}

Wire::Wire(Stage& stage, const Options& options, std::uint32_t number)
    : stage_(stage),
      options_(options),
      number_(number),
      stride_(stride_of(options)),
      receive_stride_(std::max(sends_data(options.operation) ? stride_ : 0, kHelloBytes)),
      incoming_slots_(window(options) + 1),
      region_({"connection " + std::to_string(number),
               memory::kLocalAccess | access_of(stage.device())}),
      inventory_(options.in_flight + window(options) + kControls + 1),
      connection_(stage.endpoint(), connection_options(options, access_of(stage.device())),
                  "connection " + std::to_string(number)),
      controls_(connection_, kControls, callbacks<rdma::SendTask, &Wire::control_completed>()),
      sends_(connection_, options.in_flight, callbacks<rdma::SendTask, &Wire::completed>()),
      writes_(connection_, options.in_flight, callbacks<rdma::WriteTask, &Wire::completed>()),
      reads_(connection_, options.in_flight, callbacks<rdma::ReadTask, &Wire::completed>()),
      swaps_(connection_, options.in_flight,
             callbacks<rdma::CompareAndSwapTask, &Wire::completed>()),
      adds_(connection_, options.in_flight, callbacks<rdma::FetchAndAddTask, &Wire::completed>()),
      receives_(connection_, window(options) + kControls,
                callbacks<rdma::ReceiveTask, &Wire::received>()),
      arrived_(window(options) + kControls) {
  make_buffers();
  connection_.connect(stage.engine());
  connection_.start();
  post_receives();
}

Wire::~Wire() {
  if (connection_.state() == progress::Context::State::idle) return;
  connection_.stop();
  const auto limit = core::Clock::now() + kStopTime;
  while (connection_.state() != progress::Context::State::idle && core::Clock::now() < limit) {
    stage_.engine().run_once(limit);
  }
}

void Wire::make_buffers() {
  const std::size_t receives = receives_.size();
  region_.add_range(memory::allocate_range((options_.in_flight + incoming_slots_) * stride_ +
                                           receives * receive_stride_ + kHelloBytes));
  if (options_.operation == Operation::sync_event) {
    // The peer's card cannot wake anybody, no more than a GPU.
    event_.emplace(sync::SyncEvent::Options{"offload-rdma", sync::Publisher::gpu});
    region_.add_range(memory::borrow_range({event_->memory().data(), event_->memory().size()}));
  }
  region_.add_registrar(stage_.registrar());
  region_.start();
  inventory_.start();
  for (std::size_t i = 0; i < options_.in_flight; ++i) {
    outgoing_.push_back(inventory_.take(region_, outgoing(i)).buffer);
  }
  const std::size_t begin = (options_.in_flight + incoming_slots_) * stride_;
  for (std::size_t i = 0; i < receives; ++i) {
    receiving_.push_back(
        inventory_.take(region_, slice(begin + i * receive_stride_, receive_stride_)).buffer);
  }
  hello_ = inventory_.take(region_, slice(begin + receives * receive_stride_, kHelloBytes)).buffer;
}

void Wire::post_receives() {
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    rdma::ReceiveTask& task = *receives_.allocate();
    task.destination = receiving_[i].get();
    require(connection_.submit_unflushed(task), "post a receive");
  }
  require(connection_.flush(), "post receives");
  // All are out for good: each is submitted again in its turn.
  for (auto* pool : {&controls_, &sends_}) {
    while (pool->allocate() != nullptr) continue;
  }
  while (writes_.allocate() != nullptr) continue;
  while (reads_.allocate() != nullptr) continue;
  while (swaps_.allocate() != nullptr) continue;
  while (adds_.allocate() != nullptr) continue;
}

std::span<std::byte> Wire::slice(std::size_t offset, std::size_t length) const noexcept {
  return {region_.ranges()[0].address + offset, length};
}

std::span<std::byte> Wire::outgoing(std::uint64_t operation) const noexcept {
  return slice(operation % options_.in_flight * stride_, stride_);
}

std::span<std::byte> Wire::incoming(std::size_t slot) const noexcept {
  return slice((options_.in_flight + slot) * stride_, stride_);
}

rdma::RemotePlace Wire::remote(std::size_t slot) const noexcept {
  return {peer_, (options_.in_flight + slot) * stride_};
}

std::string Wire::described() const {
  return "connection " + std::to_string(number_);
}

void Wire::require(core::Status status, const char* action) const {
  if (status.ok()) return;
  throw Error(status.error(), described() + " cannot " + action + ": " +
                                  std::string(core::describe(status.error())));
}

template <class Task>
Task& Wire::next(progress::TaskPool<Task>& pool) noexcept {
  // Operations end in their order, and room() has seen that of the one before in this place.
  return pool.tasks()[submitted_ % options_.in_flight];
}

memory::Buffer* Wire::slot_buffer(std::size_t length) noexcept {
  memory::Buffer* const buffer = outgoing_[submitted_ % options_.in_flight].get();
  static_cast<void>(buffer->set_data(0, length));
  return buffer;
}

std::span<std::byte> Wire::room() {
  if (submitted_ >= options_.in_flight) wait_completed(submitted_ + 1 - options_.in_flight);
  return outgoing(submitted_);
}

void Wire::wait_completed(std::uint64_t count) {
  if (completed_ >= count) return;
  flush();
  stage_.wait([&] { return completed_ >= count; }, "the end of an operation");
}

void Wire::submit(rdma::Operation& task) {
  ++submitted_;
  ++unflushed_;
  require(connection_.submit_unflushed(task), "take an operation");
  if (unflushed_ >= options_.batch) flush();
}

void Wire::flush() noexcept {
  if (unflushed_ == 0) return;
  unflushed_ = 0;
  static_cast<void>(connection_.flush());  // what it finds wrong, the tasks tell
}

void Wire::send(std::size_t length, std::optional<std::uint32_t> immediate) {
  wait_credit();
  auto& task = next(sends_);
  task.source = slot_buffer(length);
  task.immediate = immediate;
  submit(task);
}

void Wire::submit_write(const rdma::RemotePlace& to, std::size_t length,
                        std::optional<std::uint32_t> immediate) {
  auto& task = next(writes_);
  task.source = slot_buffer(length);
  task.to = to;
  task.immediate = immediate;
  submit(task);
}

void Wire::submit_read(const rdma::RemotePlace& from, std::size_t length) {
  auto& task = next(reads_);
  task.destination = slot_buffer(0);
  task.from = from;
  task.length = length;
  submit(task);
}

void Wire::submit_add(const rdma::RemotePlace& at, std::uint64_t add) {
  auto& task = next(adds_);
  task.destination = slot_buffer(0);
  task.at = at;
  task.add = add;
  submit(task);
}

void Wire::write(std::size_t remote_slot, std::size_t length,
                 std::optional<std::uint32_t> immediate) {
  if (immediate) wait_credit();
  submit_write(remote(remote_slot), length, immediate);
}

void Wire::read(std::size_t remote_slot, std::size_t length) {
  submit_read(remote(remote_slot), length);
}

void Wire::fetch_and_add(std::size_t remote_slot, std::uint64_t add) {
  submit_add(remote(remote_slot), add);
}

void Wire::compare_and_swap(std::size_t remote_slot, std::uint64_t compare, std::uint64_t swap) {
  auto& task = next(swaps_);
  task.destination = slot_buffer(0);
  task.at = remote(remote_slot);
  task.compare = compare;
  task.swap = swap;
  submit(task);
}

void Wire::set_event(std::size_t length) {
  submit_write({peer_event_, 0}, length, {});
}

void Wire::get_event() {
  submit_read({peer_event_, 0}, sizeof(std::uint64_t));
}

void Wire::add_to_event(std::uint64_t count) {
  submit_add({peer_event_, 0}, count);
}

rdma::ReadTask& Wire::prepared_read(std::size_t remote_slot, std::size_t length) noexcept {
  auto& task = reads_.tasks()[0];
  task.destination = slot_buffer(0);
  task.from = remote(remote_slot);
  task.length = length;
  return task;
}

rdma::SendTask& Wire::prepared_send(const memory::Buffer& source) noexcept {
  auto& task = sends_.tasks()[0];
  task.source = &source;
  return task;
}

/// One in flight is a ping-pong, where the peer's answer is the credit.
void Wire::wait_credit() {
  if (options_.in_flight == 1) return;
  if (++streamed_ <= credited_ + window(options_)) return;
  flush();
  stage_.wait([&] { return streamed_ <= credited_ + window(options_); },
              "word of receives of the peer");
}

void Wire::failed(const rdma::Operation& task) noexcept {
  if (task.status() == ErrorCode::shutdown) return;
  const bool told = task.cause().domain != core::Cause::Domain::none;
  stage_.fail({task.status().error(),
               described() + ": " +
                   (told ? task.explain() : std::string(core::describe(task.status().error()))),
               task.cause()});
}

void Wire::received(rdma::ReceiveTask& task) noexcept {
  switch (task.immediate().value_or(0)) {
    case kHello: {
      const auto data = task.destination->data();
      peer_hello_.assign(data.begin(), data.end());
      break;
    }
    case kSync: ++syncs_heard_; break;
    case kCredit: credited_ += options_.in_flight; break;
    default: arrived_[arrived_count_++ % arrived_.size()] = &task; return;
  }
  task.destination->reset();
  static_cast<void>(connection_.submit(task));  // refused only once the connection has failed
}

rdma::ReceiveTask& Wire::receive() {
  if (taken_count_ == arrived_count_) {
    flush();
    stage_.wait([&] { return taken_count_ != arrived_count_; }, "a message of the peer");
  }
  return *arrived_[taken_count_++ % arrived_.size()];
}

void Wire::give_back(rdma::ReceiveTask& task) {
  task.destination->reset();
  require(connection_.submit(task), "post a receive");
  if (options_.in_flight != 1 && ++given_back_ % options_.in_flight == 0) control(kCredit);
}

void Wire::control(Control what, const memory::Buffer* source) {
  flush();
  stage_.wait([&] { return controls_submitted_ - controls_completed_ < kControls; },
              "the end of a control message");
  auto& task = controls_.tasks()[controls_submitted_++ % kControls];
  task.source = source;
  task.immediate = what;
  require(connection_.submit(task), "send a control message");
}

void Wire::sync() {
  control(kSync);
  ++syncs_sent_;
  stage_.wait(
      [&] { return syncs_heard_ >= syncs_sent_ && controls_completed_ == controls_submitted_; },
      "the peer");
}

void Wire::meet() {
  const std::string mine = agreed(options_);
  const auto hello = protocol::Writer()
                         .bytes(std::as_bytes(std::span(mine)))
                         .bytes(memory::export_remote(region_, stage_.registrar(),
                                                      region_.access() & memory::kRemoteAccess))
                         .take();
  if (hello.size() > kHelloBytes) throw Error(ErrorCode::invalid_value, "too many sizes");
  std::copy(hello.begin(), hello.end(), hello_->dataroom().begin());
  static_cast<void>(hello_->set_data(0, hello.size()));
  // The responder was connected first, so it hears the requester, and knows then that it is heard.
  if (options_.role == Role::requester) control(kHello, hello_.get());
  stage_.wait([&] { return !peer_hello_.empty(); }, "the peer's hello");
  if (options_.role == Role::responder) control(kHello, hello_.get());
  sync();

  protocol::Reader reader(peer_hello_);
  const auto text = reader.bytes();
  const auto blob = reader.bytes();
  if (!reader.finished()) throw Error(ErrorCode::bad_message, "the peer's hello is none");
  const std::string theirs(reinterpret_cast<const char*>(text.data()), text.size());
  if (mine != theirs) {
    throw Error(ErrorCode::invalid_value,
                "the peer runs '" + theirs + "', this end '" + mine + "'");
  }
  const auto region = memory::import_remote(blob);
  if (region.ranges().at(0).length < (options_.in_flight + incoming_slots_) * stride_) {
    throw Error(ErrorCode::bad_message, "the peer's memory is too short");
  }
  peer_ = region.ranges()[0];
  if (!event_) return;
  if (region.ranges().size() != 2 || region.ranges()[1].length < sizeof(std::uint64_t)) {
    throw Error(ErrorCode::bad_message, "the peer has no event");
  }
  peer_event_ = region.ranges()[1];
}

}  // namespace offload::rdma_tool
