#include "apps/rdma_tasks/endpoint.hpp"

#include <algorithm>

#include "apps/rdma_tasks/shared_pool.hpp"
#include "protocol/bytes.hpp"

namespace offload::rdma_tool {
namespace {

using core::Error;
using memory::Access;

constexpr std::size_t kCacheLine = 64;
/// How long a connection may take to stop, of which flushing takes 2 s at most.
constexpr core::Duration kStopTime = std::chrono::seconds(3);

std::size_t lines(std::size_t bytes) noexcept {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

std::size_t stride_of(const Options& options) noexcept {
  return lines(*std::ranges::max_element(options.sizes));
}

bool sends_data(Operation operation) noexcept {
  return operation != Operation::write && operation != Operation::read &&
         operation != Operation::write_imm && operation != Operation::atomic &&
         operation != Operation::sync_event;
}

rdma::ConnectionOptions connection_options(const rdma::PathOptions& path, const Options& options,
                                           Access access, const SharedPool* shared) {
  rdma::ConnectionOptions result;
  static_cast<rdma::PathOptions&>(result) = path;
  result.queues.qp_type = options.qp_type;
  result.queues.max_send_wr = static_cast<std::uint32_t>(options.in_flight + kControls);
  result.queues.max_recv_wr = static_cast<std::uint32_t>(receives_of(options));
  if (shared != nullptr) result.queues.srq = shared->queue();
  result.queues.max_sge = 1;
  result.queues.max_inline_data = options.max_inline_data;
  result.access = access;
  return result;
}

}  // namespace

std::size_t receive_room(const Options& options) noexcept {
  return std::max(sends_data(options.operation) ? stride_of(options) : 0, kHelloBytes);
}

std::uint32_t Endpoint::completions(const Options& options) noexcept {
  const auto queues = connection_options({}, options, Access::none, nullptr).queues;
  const std::uint32_t more =
      options.initiator == Initiator::gpu ? DevicePath::completions(options) : 0;
  return queues.max_send_wr + queues.max_recv_wr + more;
}

template <class Task, auto done>
typename progress::TaskPool<Task>::Callbacks Endpoint::callbacks() noexcept {
  return {[](Task& task, void* endpoint) { (static_cast<Endpoint*>(endpoint)->*done)(task); },
          [](Task& task, void* endpoint) { static_cast<Endpoint*>(endpoint)->failed(task); }, this};
}

Endpoint::Endpoint(Environment& environment, const Options& options, std::uint32_t number,
                   SharedPool* shared)
    : environment_(environment),
      options_(options),
      number_(number),
      shared_(shared),
      stride_(stride_of(options)),
      incoming_slots_(window(options) + 1),
      region_({"connection " + std::to_string(number),
               memory::kLocalAccess | environment.peer_access()}),
      inventory_(options.in_flight + receives_of(options) + 1),
      connection_(
          environment.objects(),
          connection_options(environment.path(), options, environment.peer_access(), shared),
          "connection " + std::to_string(number)),
      controls_(connection_, kControls, callbacks<rdma::SendTask, &Endpoint::control_completed>()),
      sends_(connection_, options.in_flight, callbacks<rdma::SendTask, &Endpoint::completed>()),
      writes_(connection_, options.in_flight, callbacks<rdma::WriteTask, &Endpoint::completed>()),
      reads_(connection_, options.in_flight, callbacks<rdma::ReadTask, &Endpoint::completed>()),
      swaps_(connection_, options.in_flight,
             callbacks<rdma::CompareAndSwapTask, &Endpoint::completed>()),
      adds_(connection_, options.in_flight,
            callbacks<rdma::FetchAndAddTask, &Endpoint::completed>()),
      events_(connection_, options.in_flight,
              callbacks<rdma::RemoteSyncEventTask, &Endpoint::completed>()),
      receives_(connection_, receives_of(options),
                callbacks<rdma::ReceiveTask, &Endpoint::received>()),
      arrived_(receives_of(options)) {
  make_buffers();
  connection_.connect(environment.engine());
  connection_.start();
  make_device_path();
  make_tasks();
  if (shared_ != nullptr) shared_->add(connection_.queue_pair()->qp_num(), *this);
}

Endpoint::~Endpoint() {
  if (shared_ != nullptr) shared_->remove(*this);
  device_.reset();
  connection_.stop_within(kStopTime);
}

void Endpoint::make_buffers() {
  const std::size_t receives = shared_ == nullptr ? receives_.size() : 0;
  const std::size_t room = receive_room(options_);
  const std::size_t bytes = (options_.in_flight + incoming_slots_) * stride_ + device_bytes() +
                            receives * room + kHelloBytes;
  const bool by_device = options_.initiator == Initiator::gpu;
  region_.add_range(by_device ? environment_.lanes().allocate(bytes)
                              : memory::allocate_range(bytes));
  if (options_.operation == Operation::sync_event) {
    // The peer's device wakes no thread: this end polls, as for a GPU.
    event_.emplace(sync::SyncEvent::Options{"offload-rdma", sync::Publisher::gpu});
    region_.add_range(memory::borrow_range({event_->memory().data(), event_->memory().size()}));
  }
  region_.add_registrar(environment_.registrar());
  region_.start();
  inventory_.start();
  for (std::size_t i = 0; i < options_.in_flight; ++i) {
    outgoing_.push_back(inventory_.take(region_, outgoing(i)).buffer);
  }
  const std::size_t begin = (options_.in_flight + incoming_slots_) * stride_ + device_bytes();
  for (std::size_t i = 0; i < receives; ++i) {
    receiving_.push_back(inventory_.take(region_, slice(begin + i * room, room)).buffer);
  }
  hello_ = inventory_.take(region_, slice(begin + receives * room, kHelloBytes)).buffer;
}

/// Words, and a slot for each message that may be on its way.
std::size_t Endpoint::device_bytes() const noexcept {
  if (options_.initiator == Initiator::cpu) return 0;
  return DeviceWords::kBytes + window(options_) * stride_;
}

void Endpoint::make_device_path() {
  if (options_.initiator == Initiator::cpu) return;
  device_ = std::make_unique<DevicePath>(environment_, options_, environment_.peer_access(),
                                         described() + ", device");
  const std::size_t words = (options_.in_flight + incoming_slots_) * stride_;
  device_->set_memory({region_.ranges()[0].address,
                       region_.key(environment_.registrar(), 0)->local,
                       {},
                       stride_,
                       options_.in_flight,
                       incoming_slots_,
                       words,
                       words + DeviceWords::kBytes});
}

/// Allocates every task for good: each is submitted again and again.
void Endpoint::make_tasks() {
  const auto take_all = [](auto&... pools) {
    const auto take = [](auto& pool) {
      while (pool.allocate() != nullptr) continue;
    };
    (take(pools), ...);
  };
  take_all(controls_, sends_, writes_, reads_, swaps_, adds_, events_, receives_);
  for (std::size_t i = 0; i < receiving_.size(); ++i) {
    rdma::ReceiveTask& task = receives_.tasks()[i];
    task.destination = receiving_[i].get();
    require(connection_.submit_unflushed(task), "post a receive");
  }
  require(connection_.flush(), "post receives");
}

std::span<std::byte> Endpoint::slice(std::size_t offset, std::size_t length) const noexcept {
  return {region_.ranges()[0].address + offset, length};
}

std::span<std::byte> Endpoint::outgoing(std::uint64_t operation) const noexcept {
  return slice(operation % options_.in_flight * stride_, stride_);
}

std::span<std::byte> Endpoint::incoming(std::size_t slot) const noexcept {
  return slice((options_.in_flight + slot) * stride_, stride_);
}

rdma::RemoteAddress Endpoint::remote(std::size_t slot) const noexcept {
  return {peer_, (options_.in_flight + slot) * stride_};
}

void Endpoint::require(core::Status status, const char* action) const {
  if (status.ok()) return;
  throw Error(status.error(), described() + " cannot " + action + ": " +
                                  std::string(core::describe(status.error())));
}

// ---- Messages of an Endpoint: receives, credits and control messages

using core::ErrorCode;

/// With one in flight, a ping-pong, the peer's answer is the credit.
void Endpoint::wait_credit() {
  if (options_.in_flight == 1) return;
  if (++streamed_ <= credited_ + window(options_)) return;
  flush();
  environment_.wait([&] { return streamed_ <= credited_ + window(options_); },
                    "a credit from the peer");
}

void Endpoint::failed(const rdma::RdmaTask& task) noexcept {
  if (task.status() == ErrorCode::shutdown) return;
  // The peer has received this end's last sync, as it has sent its own. Its device may complete
  // that receive before it acknowledges, and the peer may end its queue pair in between.
  if (environment_.closing() && syncs_received_ == syncs_sent_) {
    controls_completed_ = controls_submitted_;
    return;
  }
  const bool told = task.cause().domain != core::Cause::Domain::none;
  environment_.fail(
      {task.status().error(),
       described() + ": " +
           (told ? task.explain() : std::string(core::describe(task.status().error()))),
       task.cause()});
}

void Endpoint::received(rdma::Receive& task) noexcept {
  switch (task.immediate().value_or(0)) {
    case kHello: {
      const auto data = task.destination->data();
      peer_hello_.assign(data.begin(), data.end());
      break;
    }
    case kSync: ++syncs_received_; break;
    case kCredit: credited_ += options_.in_flight; break;
    default:
      if (peer_hello_.empty()) {
        environment_.fail(
            {ErrorCode::bad_message, described() + ": the peer is another program; expected the "
                                                   "hello of offload-rdma as its first message"});
        return;
      }
      arrived_[arrived_count_++ % arrived_.size()] = &task;
      return;
  }
  static_cast<void>(post(task));  // refused only once the connection has failed
}

core::Status Endpoint::post(rdma::Receive& task) noexcept {
  task.destination->reset();
  if (shared_ != nullptr) return shared_->post(static_cast<rdma::SharedReceiveTask&>(task));
  return connection_.submit(static_cast<rdma::ReceiveTask&>(task));
}

rdma::Receive& Endpoint::receive() {
  if (taken_count_ == arrived_count_) {
    flush();
    environment_.wait([&] { return taken_count_ != arrived_count_; }, "a message from the peer");
  }
  return *arrived_[taken_count_++ % arrived_.size()];
}

void Endpoint::give_back(rdma::Receive& task) {
  if (options_.in_flight == 1 || shared_ != nullptr) {
    require(post(task), "post a receive");
  } else {
    // In a stream it is posted with the next credit.
    task.destination->reset();
    require(connection_.submit_unflushed(static_cast<rdma::ReceiveTask&>(task)), "post a receive");
  }
  if (options_.in_flight != 1 && ++given_back_ % options_.in_flight == 0) control(kCredit);
}

void Endpoint::control(Control what, const memory::Buffer* source) {
  flush();
  environment_.wait([&] { return controls_submitted_ - controls_completed_ < kControls; },
                    "the completion of a control message");
  auto& task = controls_.tasks()[controls_submitted_++ % kControls];
  task.source = source;
  task.immediate = what;
  require(connection_.submit(task), "send a control message");
}

void Endpoint::sync() {
  control(kSync);
  ++syncs_sent_;
  environment_.wait(
      [&] { return syncs_received_ >= syncs_sent_ && controls_completed_ == controls_submitted_; },
      "the peer");
}

void Endpoint::exchange_hello() {
  const std::string mine = agreed(options_);
  std::vector<std::byte> device;
  if (device_) device = device_->descriptor().encode();
  const auto hello = protocol::Writer()
                         .bytes(std::as_bytes(std::span(mine)))
                         .bytes(memory::export_remote(region_, environment_.registrar(),
                                                      region_.access() & memory::kRemoteAccess))
                         .bytes(device)
                         .take();
  if (hello.size() > kHelloBytes) throw Error(ErrorCode::invalid_value, "too many sizes");
  std::ranges::copy(hello, hello_->dataroom().begin());
  static_cast<void>(hello_->set_data(0, hello.size()));
  // The responder connected first, so it receives the requester's hello, and answers.
  if (options_.role == Role::requester) control(kHello, hello_.get());
  environment_.wait([&] { return !peer_hello_.empty(); }, "the peer's hello");
  if (options_.role == Role::responder) control(kHello, hello_.get());
  sync();
  take_hello();
}

void Endpoint::connect_to_itself() {
  const auto& memory = region_.ranges()[0];
  device_->connect_to(device_->descriptor(), {reinterpret_cast<std::uint64_t>(memory.address),
                                              region_.key(environment_.registrar(), 0)->remote});
}

void Endpoint::take_hello() {
  protocol::Reader reader(peer_hello_);
  const auto text = reader.bytes();
  const auto blob = reader.bytes();
  const auto device = reader.bytes();
  if (!reader.finished()) throw Error(ErrorCode::bad_message, "the peer's hello is malformed");
  const std::string theirs(reinterpret_cast<const char*>(text.data()), text.size());
  const std::string mine = agreed(options_);
  if (mine != theirs) {
    throw Error(ErrorCode::invalid_value,
                "the peer runs '" + theirs + "', this end runs '" + mine + "'");
  }
  const auto region = memory::import_remote(blob);
  if (region.ranges().at(0).length <
      (options_.in_flight + incoming_slots_) * stride_ + device_bytes()) {
    throw Error(ErrorCode::bad_message, "the peer's memory is too small");
  }
  peer_ = region.ranges()[0];
  if (device_) {
    device_->connect_to(rdma::ConnectionDescriptor::decode(device), {peer_.address, peer_.key});
  }
  if (!event_) return;
  if (region.ranges().size() != 2 || region.ranges()[1].length < sizeof(std::uint64_t)) {
    throw Error(ErrorCode::bad_message, "the peer has no event");
  }
  peer_event_ = region.ranges()[1];
}

// ---- Operations of an Endpoint

template <class Task>
Task& Endpoint::next(progress::TaskPool<Task>& pool) noexcept {
  // Operations complete in order, and room() has waited for the last one of this slot.
  return pool.tasks()[submitted_ % options_.in_flight];
}

memory::Buffer* Endpoint::slot_buffer(std::size_t length) noexcept {
  memory::Buffer* const buffer = outgoing_[submitted_ % options_.in_flight].get();
  static_cast<void>(buffer->set_data(0, length));
  return buffer;
}

std::span<std::byte> Endpoint::room() {
  if (submitted_ >= options_.in_flight) wait_completed(submitted_ + 1 - options_.in_flight);
  return outgoing(submitted_);
}

void Endpoint::wait_completed(std::uint64_t count) {
  if (completed_ >= count) return;
  flush();
  environment_.wait([&] { return completed_ >= count; }, "the completion of an operation");
}

void Endpoint::submit(rdma::RdmaTask& task) {
  ++submitted_;
  ++unflushed_;
  require(connection_.submit_unflushed(task), "take an operation");
  if (unflushed_ >= options_.batch) flush();
}

void Endpoint::flush() noexcept {
  if (unflushed_ == 0) return;
  unflushed_ = 0;
  static_cast<void>(connection_.flush());  // errors end the tasks
}

void Endpoint::send(std::size_t length, std::optional<std::uint32_t> immediate) {
  wait_credit();
  auto& task = next(sends_);
  task.source = slot_buffer(length);
  task.immediate = immediate;
  submit(task);
}

void Endpoint::write(std::size_t remote_slot, std::size_t length,
                     std::optional<std::uint32_t> immediate) {
  if (immediate) wait_credit();
  auto& task = next(writes_);
  task.source = slot_buffer(length);
  task.to = remote(remote_slot);
  task.immediate = immediate;
  submit(task);
}

rdma::ReadTask& Endpoint::prepared_read(std::size_t remote_slot, std::size_t length) noexcept {
  auto& task = next(reads_);
  task.destination = slot_buffer(0);
  task.from = remote(remote_slot);
  task.length = length;
  return task;
}

void Endpoint::read(std::size_t remote_slot, std::size_t length) {
  submit(prepared_read(remote_slot, length));
}

void Endpoint::fetch_and_add(std::size_t remote_slot, std::uint64_t add) {
  auto& task = next(adds_);
  task.destination = slot_buffer(0);
  task.at = remote(remote_slot);
  task.add = add;
  submit(task);
}

void Endpoint::compare_and_swap(std::size_t remote_slot, std::uint64_t compare,
                                std::uint64_t swap) {
  auto& task = next(swaps_);
  task.destination = slot_buffer(0);
  task.at = remote(remote_slot);
  task.compare = compare;
  task.swap = swap;
  submit(task);
}

std::uint64_t Endpoint::work_on_event(rdma::RemoteSyncEventTask::Action action,
                                      std::uint64_t argument) {
  auto& task = next(events_);
  task.action = action;
  task.event = {peer_event_, 0};
  task.argument = argument;
  task.scratch = slot_buffer(0);
  submit(task);
  wait_completed(submitted_);
  return task.result;
}

rdma::SendTask& Endpoint::prepared_send(const memory::Buffer& source) noexcept {
  auto& task = sends_.tasks()[0];
  task.source = &source;
  return task;
}

}  // namespace offload::rdma_tool
