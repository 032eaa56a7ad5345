#include <algorithm>

#include "apps/rdma/endpoint.hpp"
#include "apps/rdma/shared_pool.hpp"
#include "protocol/bytes.hpp"

/// Messages of an Endpoint: receives, credits and control messages.
namespace offload::rdma_tool {

using core::Error;
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
  std::copy(hello.begin(), hello.end(), hello_->dataroom().begin());
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

}  // namespace offload::rdma_tool
