#include "doca/rdma/endpoint.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/rdma/connection.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;

RdmaEndpoint::RdmaEndpoint() : Context("rdma", Turns::on_request) {}

RdmaEndpoint::~RdmaEndpoint() {
  end();
  clear();
}

void RdmaEndpoint::configure(RdmaDevice& device, const RdmaEndpointOptions& options,
                             std::unique_ptr<RdmaKernelPath> kernels) {
  expect_idle("be configured");
  clear();
  kernels_ = std::move(kernels);
  device_ = &device;
  options_ = options;
}

/// In the order in which they need each other. Not at the end of a stop, which a callback of one of
/// them may have asked for: before the next start, or at the end.
void RdmaEndpoint::clear() noexcept {
  listeners.clear();
  last_of_number_.clear();
  connections_.clear();
  receives_.reset();
  completions_.reset();
}

progress::Context::Step RdmaEndpoint::on_start() {
  clear();
  if (kernels_) return Step::done;
  const rdma::QueuePairOptions& queues = options_.connection.queues;
  const bool shares = options_.receives != 0;
  const std::uint32_t each = queues.max_send_wr + (shares ? 0 : queues.max_recv_wr);
  const std::uint32_t needed = options_.most_connections * each + options_.receives;
  // If the device can, with room for connections that are stopping while others begin.
  const auto most = static_cast<std::uint32_t>(device_->device.attributes().max_cqe);
  const std::uint32_t depth = std::max(needed, std::min(2 * needed, most));
  try {
    completions_.emplace(device_->device, *engine(), depth);
    if (shares) {
      receives_.emplace(device_->domain, device_->registrar, *completions_, options_.receives,
                        queues.max_sge);
      receives_->connect(*engine());
      receives_->start();
    }
  } catch (...) {
    clear();
    throw;
  }
  return Step::done;
}

doca_rdma_connection& RdmaEndpoint::add(doca_rdma& rdma) {
  forget_ended();
  if (is_full()) {
    throw Error(ErrorCode::full, "the context has " + std::to_string(options_.most_connections) +
                                     " connections, as many as it may have");
  }
  return *connections_.emplace_back(std::make_unique<doca_rdma_connection>(rdma));
}

void RdmaEndpoint::start(doca_rdma_connection& connection, const rdma::PathOptions* path) {
  rdma::ConnectionOptions options = options_.connection;
  if (path != nullptr) static_cast<rdma::PathOptions&>(options) = *path;
  if (receives_) options.queues.srq = receives_->queue();
  if (kernels_) options.queues.srq = &kernels_->receives();
  const rdma::SharedObjects objects{device_->device, device_->domain, device_->registrar,
                                    kernels_ ? kernels_->completions() : *completions_};
  connection.connection.emplace(objects, options, "rdma connection");
  if (kernels_) {
    connection.connection->set_connection_callback(
        [path = kernels_.get()](const rdma::Connection& of, bool connected) {
          const rdma::QueuePair* const pair = of.queue_pair();
          if (pair == nullptr) return;
          connected ? path->attach(*pair) : path->detach(*pair);
        });
  }
  connection.connection->connect(*engine());
  connection.connection->start();
  last_of_number_[connection.connection->queue_pair()->qp_num()] = &connection;
}

std::size_t RdmaEndpoint::live() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& connection) { return !connection->given_back; }));
}

void RdmaEndpoint::stop_later(doca_rdma_connection& connection) noexcept {
  connection.stops = true;
  clean_up_later();
}

/// Drops the connections that the program has given back, and that nothing uses any more.
void RdmaEndpoint::forget_ended() noexcept {
  if (in_callbacks != 0) return;
  const auto has_ended = [](const doca_rdma_connection& connection) {
    const bool is_idle = !connection.connection || connection.connection->state() == State::idle;
    return connection.given_back && connection.tasks == 0 && is_idle;
  };
  std::erase_if(last_of_number_, [&](const auto& each) { return has_ended(*each.second); });
  std::erase_if(connections_, [&](const auto& each) { return has_ended(*each); });
}

doca_rdma_connection* RdmaEndpoint::find(std::uint32_t qp_num) const noexcept {
  const auto last = last_of_number_.find(qp_num);
  if (last == last_of_number_.end()) return nullptr;
  const auto& connection = last->second->connection;
  // Null after its end, when the device may give the number to another one.
  const auto* const queue = connection ? connection->queue_pair() : nullptr;
  return queue != nullptr && queue->qp_num() == qp_num ? last->second : nullptr;
}

std::size_t RdmaEndpoint::submitted() const noexcept {
  std::size_t count = receives_ ? receives_->in_flight() : 0;
  for (const auto& each : connections_) {
    if (each->connection) count += each->connection->in_flight();
  }
  return count;
}

void RdmaEndpoint::flush_all() noexcept {
  if (receives_) static_cast<void>(receives_->flush());
  for (const auto& each : connections_) {
    if (each->connection) static_cast<void>(each->connection->flush());
  }
}

bool RdmaEndpoint::all_idle() const noexcept {
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& each) {
    return !each->connection || each->connection->state() == State::idle;
  });
}

bool RdmaEndpoint::uses_cm() const noexcept {
  return !listeners.empty() ||
         std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& each) { return each->cm || each->request; });
}

progress::Context::Step RdmaEndpoint::on_stop() noexcept {
  // Callbacks of tasks that end here wait, so the list does not change.
  for (const auto& each : connections_) {
    if (each->cm) each->cm->disconnect();
    if (each->connection && each->connection->state() == State::running) each->connection->stop();
  }
  if (uses_cm() || !all_idle()) return Step::in_progress;
  if (receives_ && receives_->state() == State::running) receives_->stop();
  return Step::done;
}

void RdmaEndpoint::on_abandon() noexcept {
  clear();
}

bool RdmaEndpoint::on_poll(std::size_t) {
  if (state() == State::stopping) {
    if (!all_idle()) return false;
    // Not in an event of theirs, as this is a poll.
    listeners.clear();
    for (const auto& each : connections_) {
      each->cm.reset();
      each->request.reset();
    }
    if (receives_ && receives_->state() == State::running) receives_->stop();
    stopped();
    return true;
  }
  std::erase_if(listeners, [](const auto& listener) { return listener->ends; });
  bool worked = false;
  for (std::size_t i = 0; i < connections_.size() && state() == State::running; ++i) {
    doca_rdma_connection& each = *connections_[i];
    if (!each.stops || !each.connection || each.connection->state() != State::running) continue;
    ++in_callbacks;  // of the tasks that end
    each.connection->stop();
    --in_callbacks;
    worked = true;
  }
  return worked;
}

}  // namespace offload::doca
