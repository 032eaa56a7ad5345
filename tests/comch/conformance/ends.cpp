#include "tests/comch/conformance/ends.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "tests/comch/conformance/transport.hpp"

namespace offload::comch::conformance {
namespace {

/// Longer than any pause of a test: those about silence are worker_session_test and
/// server_session_test.
constexpr core::Duration kKeepAlive = std::chrono::seconds(10);
constexpr core::Duration kRest = std::chrono::milliseconds(1);

}  // namespace

ServerSide::ServerSide(const Address& address) {
  ServerSession::Offer offer{
      std::vector<int>(kChannels, -1), kDepth, kLongest, 48, {"reverse"}, kKeepAlive, kMostWorkers};
  for (std::uint32_t i = 0; i < kChannels; ++i) ends.push_back(std::make_unique<End>(i));
  session = std::make_unique<ServerSession>(engine_, address, std::move(offer),
                                            static_cast<ServerSession::Observer&>(*this));
  address_ = session->address();
  thread_ = std::thread([this] { run(); });
}

ServerSide::~ServerSide() {
  run_there([this] { stop_ = true; });
  thread_.join();
}

void ServerSide::run_there(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  engine_.notify();
  done_.wait(lock, [this] { return work_ == nullptr; });
}

void ServerSide::run() {
  while (!stop_) {
    turn();
    const std::lock_guard lock(mutex_);
    if (work_ == nullptr) continue;
    (*work_)();
    work_ = nullptr;
    done_.notify_one();
  }
}

void ServerSide::turn() {
  engine_.run_once(core::Clock::now() + kRest);
  for (const auto& end : ends) {
    end->server.requester.flush();
    while (auto response = end->server.take()) end->responses.push_back(*std::move(response));
    if (!end->remote || end->remote->failure() == nullptr) continue;
    connection_lost = *end->remote->failure();
    end->remote.reset();
    session->drop(current_, connection_lost);
  }
  // Here, as all responses are released.
  if (next_) move_to(*std::exchange(next_, {}));
}

void ServerSide::move_to(AttachedWorker worker) {
  if (current_ != 0) session->assign(current_, 0);
  current_ = worker.id;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    End& end = *ends[i];
    end.former.emplace_back(std::exchange(end.attached, std::move(worker.channels[i])),
                            std::move(end.remote));
    const auto to = end.attached->memory.endpoint();
    end.server.requester.move_to(to, end.attached->wakeup);
    if (!end.attached->endpoint) continue;
    end.remote =
        std::make_unique<WorkerProxy>(end.server.requester, to, std::move(end.attached->endpoint));
  }
  session->assign(current_, kChannels);
}

void ServerSide::on_worker_attached(AttachedWorker worker) {
  ++attached;
  next_ = std::move(worker);
}

void ServerSide::on_worker_leaving(WorkerId worker) {
  session->release(worker);
}

void ServerSide::on_worker_lost(WorkerId worker, WorkerLoss /*loss*/) {
  ++lost;
  if (next_ && next_->id == worker) next_.reset();
  if (current_ != worker) return;
  current_ = 0;
  for (const auto& end : ends) {
    end->server.requester.set_wakeup(channel::Wakeup::none);
    end->remote.reset();
  }
}

protocol::Hello hello() {
  protocol::Hello hello;
  hello.capabilities = testing::WithParamInterface<TestedTransport>::GetParam().capabilities;
  hello.max_channels = kChannels;
  hello.max_message_length = kLongest;
  hello.backend = "cpu";
  hello.services = {"reverse"};
  return hello;
}

WorkerSide::WorkerSide(const Address& address, Until until, std::optional<protocol::Hello> hello)
    : until_(until),
      backend_(backend::make_cpu_backend({})),
      session_(std::make_unique<WorkerSession>(engine_, address,
                                               hello.value_or(conformance::hello()), kMostMemory,
                                               static_cast<WorkerSession::Observer&>(*this))) {
  if (until_ == Until::greeted) return;
  EXPECT_TRUE(run_until(
      [&] { return lost || (until_ == Until::offered ? !channels_.empty() : attached == 1); }));
}

WorkerSide::~WorkerSide() {
  session_.reset();
  EXPECT_TRUE(backend_->stop(support::kBound));
}

void WorkerSide::on_channels(std::vector<AttachedChannel> channels) {
  channels_ = std::move(channels);
  std::vector<channel::SharedChannel> served;
  for (const auto& attached_channel : channels_) served.push_back(attached_channel.channel);
  backend_->start(std::move(served), channels_.front().service);
  for (const auto& attached_channel : channels_) {
    if (!attached_channel.link) continue;
    attached_channel.link->start(channel::Wakeup::doorbell, [this] { engine_.notify(); });
  }
}

void WorkerSide::on_lost(const std::string& reason, std::optional<protocol::Refusal> by) {
  lost = reason;
  refused = by;
}

void WorkerSide::check_connections() {
  for (const auto& channel : channels_) {
    if (lost || !channel.link) continue;
    if (const std::string* const reason = channel.link->failure()) on_lost(*reason, {});
  }
}

}  // namespace offload::comch::conformance
