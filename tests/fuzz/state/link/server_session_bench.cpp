#include "tests/fuzz/state/link/server_session_bench.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tests/fuzz/input.hpp"

namespace offload::fuzz {
namespace {

using protocol::MessageId;

constexpr std::size_t kMostWorkers = 3;

bool is_a_servers(MessageId id) {
  switch (id) {
    case MessageId::welcome:
    case MessageId::channel_descriptor:
    case MessageId::exchange_consumer_id_response:
    case MessageId::keep_alive:
    case MessageId::assignment:
    case MessageId::start_shutdown:
    case MessageId::user_message:
    case MessageId::error:
    case MessageId::channel_attached: return true;
    default: return false;
  }
}

protocol::Hello good_hello() {
  protocol::Hello hello;
  hello.capabilities = protocol::kRingsDoorbell;
  hello.max_channels = 16;
  hello.max_message_length = 4096;
  hello.backend = "fuzz";
  hello.services = {"reverse"};
  return hello;
}

}  // namespace

ServerSessionBench::ServerSessionBench(Script& script, const comch::Address& address,
                                       VirtualTime& time)
    : script_(&script), time_(&time), packets_(address.local()), address_(address) {
  session_.emplace(engine_, address_,
                   comch::ServerSession::Offer{std::vector<int>(Descriptors::kChannels, -1),
                                               Descriptors::kDepth,
                                               Descriptors::kLongest,
                                               48,
                                               {"reverse"},
                                               std::chrono::seconds(1),
                                               kMostWorkers},
                   static_cast<comch::ServerSession::Observer&>(*this));
}

ServerSessionBench::~ServerSessionBench() {
  FakeNetwork::instance().clear();
}

// ---- Calls of the session

void ServerSessionBench::on_worker_attached(comch::AttachedWorker worker) {
  require(ever_.insert(worker.id).second, "each worker attaches once");
  require(worker.channels.size() == Descriptors::kChannels, "with all its channels");
  for (const auto& channel : worker.channels) {
    require(packets_ == (channel->endpoint == nullptr), "over a network each has its connection");
  }
  attached_.insert(worker.id);
}
void ServerSessionBench::on_worker_leaving(comch::WorkerId worker) {
  require(attached_.contains(worker), "who leaves is there");
}
void ServerSessionBench::on_worker_lost(comch::WorkerId worker, comch::WorkerLoss /*loss*/) {
  require(attached_.erase(worker) == 1, "who is lost was there");
}
void ServerSessionBench::on_user_message(comch::WorkerId worker, std::span<const std::byte> bytes) {
  require(attached_.contains(worker), "who talks is there");
  require(!bytes.empty() && bytes.size() <= protocol::kMaxUserMessage, "and says something");
}

// ---- Steps

void ServerSessionBench::run() {
  while (!script_->ends()) step();
  turn();
  for (auto& worker : workers_) read(worker);
  close_all();
  require(attached_.empty(), "who is gone is lost");
  if (!session_->shutting_down()) {
    check_next_worker();
    session_->start_shutdown(protocol::ShutdownReason::together);
    close_all();
  }
  require(session_->done(), "it ends");
}

void ServerSessionBench::step() {
  const std::uint8_t head = script_->byte();
  auto& worker = workers_.at((head >> 4U) & 3U);
  switch (head & 15U) {
    case 0: connect(worker); break;
    case 1: {
      const Bytes message = make_message(*script_, token_);
      if (worker) worker->peer.send(message);
      break;
    }
    case 2: {
      const Bytes message = make_message(*script_, token_);
      const std::size_t kept = script_->byte();
      if (worker) worker->peer.send(message, {}, kept);
      break;
    }
    case 3: {
      const auto bytes = script_->bytes(script_->byte() % 65U);
      if (worker && !bytes.empty()) worker->peer.send(bytes);
      break;
    }
    case 4: worker.reset(); break;
    case 5: read(worker); break;
    case 6: break;
    case 7: {
      time_->advance(std::chrono::milliseconds(250) * script_->byte());
      session_->tick(engine_.run_time());
      break;
    }
    case 8: call(); break;
    case 9:
      if (worker) worker->peer.end_sending();
      break;
    case 10: {
      const Bytes message = make_message(*script_, token_);
      const auto fds = pick_descriptors(*script_);
      if (worker) worker->peer.send(message, fds);
      break;
    }
    case 13:
    case 14: {
      if (!worker) connect(worker);
      read(worker);
      const bool again = (head & 15U) == 13 && worker->steps != 0;
      const std::uint32_t step = again ? worker->steps - 1 : worker->steps + 1;
      worker->steps = step + 1;
      do_right(*worker, step);
      break;
    }
    default:
      if (!worker) connect(worker);
      read(worker);
      do_right(*worker, worker->steps++);
      break;
  }
  if ((head & 0x40U) == 0) turn();
}

void ServerSessionBench::turn() {
  engine_.run_once({});
}

void ServerSessionBench::connect(std::optional<Worker>& worker) {
  if (worker) return;
  worker.emplace(Worker{ControlPeer(
      packets_ ? connect_packets(address_.path) : FakeNetwork::instance().connect_stranger(),
      packets_)});
}

void ServerSessionBench::read(std::optional<Worker>& worker) {
  if (!worker) return;
  for (const comch::ControlMessage& message : worker->peer.read()) take(*worker, message);
}

void ServerSessionBench::take(Worker& worker, const comch::ControlMessage& message) {
  require(is_a_servers(message.id), "it is a message of a server");
  require(!worker.refused, "nothing follows a refusal");
  require(message.fds.empty() || (packets_ && message.id == MessageId::channel_descriptor),
          "descriptors come with a channel");
  switch (message.id) {
    case MessageId::error: {
      worker.refused = true;
      require(!protocol::parse_error(message.payload).text.empty(), "a refusal says why");
      break;
    }
    case MessageId::welcome:
      require(!std::exchange(worker.welcomed, true), "a worker is welcomed once");
      require(protocol::Welcome::decode(message.payload).has_value(), "a welcome can be read");
      break;
    case MessageId::channel_descriptor: {
      const auto descriptor = protocol::ChannelDescriptor::decode(message.payload);
      require(worker.welcomed && descriptor && descriptor->channel == worker.offered++,
              "channels are offered in order");
      require(worker.offered <= Descriptors::kChannels, "and no more than there are");
      require(!packets_ || message.fds.size() == 4, "with their descriptors");
      if (!packets_ && descriptor->access.size() == token_.size()) {
        std::ranges::copy(descriptor->access, token_.begin());
        tokens_.push_back(token_);
      }
      break;
    }
    case MessageId::channel_attached:
      require(std::ranges::any_of(tokens_,
                                  [&](const auto& token) { return worker.peer.has_said(token); }),
              "who is given a channel has the session's token");
      break;
    default: break;
  }
}

/// Does the `step`-th action of a correct worker.
void ServerSessionBench::do_right(Worker& worker, std::uint32_t step) {
  if (step == 0) return worker.peer.send(MessageId::hello, good_hello().encode());
  --step;
  if (!packets_) {
    if (step < Descriptors::kChannels) {
      ControlPeer data(FakeNetwork::instance().connect_stranger(), false);
      data.send(MessageId::attach_channel, protocol::AttachChannel{step, token_}.encode());
      turn();
      turn();
      (void)data.read();
      return;
    }
    step -= Descriptors::kChannels;
  }
  if (step < Descriptors::kChannels) {
    return worker.peer.send(MessageId::exchange_consumer_id_request,
                            protocol::ExchangeConsumerId{step, step}.encode());
  }
  worker.peer.send(MessageId::keep_alive, protocol::KeepAlive{step}.encode());
}

void ServerSessionBench::call() {
  const std::uint8_t what = script_->byte();
  const auto worker = static_cast<comch::WorkerId>(what >> 4U);
  switch (what & 7U) {
    case 0: return session_->assign(worker, 1);
    case 1: return session_->release(worker);
    case 2: return session_->drop(worker, "the script says so");
    case 3: return session_->refuse(worker, protocol::Refusal::worker_stuck, "so it says");
    case 4: return session_->start_shutdown(protocol::ShutdownReason::server_leaves);
    default: break;
  }
  try {
    session_->send_user_message(worker, Bytes(1 + script_->byte()));
  } catch (const core::Error& error) {
    using core::ErrorCode;
    require(error.code() == ErrorCode::full || error.code() == ErrorCode::not_connected,
            "it says why not");
  }
}

void ServerSessionBench::close_all() {
  for (auto& worker : workers_) worker.reset();
  for (int i = 0; i < 4; ++i) turn();
}

/// Checks that the session works like a new one.
void ServerSessionBench::check_next_worker() {
  auto& worker = workers_.front();
  connect(worker);
  for (std::uint32_t i = 0; i < 2 * Descriptors::kChannels + 1; ++i) {
    do_right(*worker, i);
    turn();
    turn();
    read(worker);
  }
  require(attached_.size() == 1, "the next worker attaches");
}

}  // namespace offload::fuzz
