#include "apps/rdma/endpoint.hpp"

#include <algorithm>

#include "apps/rdma/shared_pool.hpp"

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
  return lines(*std::max_element(options.sizes.begin(), options.sizes.end()));
}

bool sends_data(Operation operation) noexcept {
  return operation != Operation::write && operation != Operation::read &&
         operation != Operation::write_imm && operation != Operation::atomic &&
         operation != Operation::sync_event;
}

Access access_of(const rdma::DeviceContext& device) noexcept {
  const Access remote = Access::remote_read | Access::remote_write;
  const bool atomics = device.attributes().atomic_cap != IBV_ATOMIC_NONE;
  return atomics ? remote | Access::remote_atomic : remote;
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
               memory::kLocalAccess | access_of(environment.device())}),
      inventory_(options.in_flight + receives_of(options) + 1),
      connection_(
          environment.objects(),
          connection_options(environment.path(), options, access_of(environment.device()), shared),
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
  if (connection_.state() == progress::Context::State::idle) return;
  connection_.stop();
  const auto limit = core::Clock::now() + kStopTime;
  while (connection_.state() != progress::Context::State::idle && core::Clock::now() < limit) {
    environment_.engine().run_once(limit);
  }
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
  device_ = std::make_unique<DevicePath>(environment_, options_, access_of(environment_.device()),
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

std::string Endpoint::described() const {
  return "connection " + std::to_string(number_);
}

void Endpoint::require(core::Status status, const char* action) const {
  if (status.ok()) return;
  throw Error(status.error(), described() + " cannot " + action + ": " +
                                  std::string(core::describe(status.error())));
}

}  // namespace offload::rdma_tool
