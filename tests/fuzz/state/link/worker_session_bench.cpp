#include "tests/fuzz/state/link/worker_session_bench.hpp"

#include <sys/socket.h>

#include <memory>

#include "comch/transport/local/control.hpp"
#include "core/error.hpp"
#include "tests/fuzz/input.hpp"

namespace offload::fuzz {
namespace {

using protocol::MessageId;

constexpr std::uint64_t kMostMemory = 1U << 20;
constexpr std::uint32_t kAssigned = 7;  ///< no script sends this as its last assignment

bool is_a_workers(MessageId id) {
  switch (id) {
    case MessageId::hello:
    case MessageId::exchange_consumer_id_request:
    case MessageId::keep_alive:
    case MessageId::detach:
    case MessageId::start_shutdown:
    case MessageId::shutdown_complete:
    case MessageId::user_message:
    case MessageId::attach_channel:
    case MessageId::error: return true;
    default: return false;
  }
}

protocol::Hello hello(std::uint8_t settings) {
  protocol::Hello hello;
  hello.capabilities = protocol::kRingsDoorbell;
  if ((settings & 2U) != 0) hello.capabilities |= protocol::kWritesSlots;
  hello.max_channels = (settings & 4U) != 0 ? 2 : 16;
  hello.max_message_length = 4096;
  hello.backend = "fuzz";
  hello.services = {"reverse"};
  return hello;
}

comch::Listener& unix_listener(const comch::Address& address) {
  static const auto listener = comch::listen_local(address);
  return *listener;
}

}  // namespace

WorkerSessionBench::WorkerSessionBench(Script& script, const comch::Address& address,
                                       VirtualTime& time)
    : script_(&script), time_(&time), packets_(address.local()) {
  FakeNetwork::instance().on_connect = [this](core::Fd end) {
    peers_.emplace_back(std::move(end), false);
  };
  time_->on_wait = [this] {
    if (script_->ends()) return false;
    step(/*waits=*/true);
    return true;
  };
  const std::uint8_t settings = script_->byte();
  session_.emplace(engine_, address, hello(settings), kMostMemory,
                   static_cast<comch::WorkerSession::Observer&>(*this));
  if (packets_) {
    const auto connection = unix_listener(address).accept();
    require(connection != nullptr, "it connects");
    peers_.emplace_back(core::Fd(::dup(connection->fd())), true);
  }
}

void WorkerSessionBench::prepare(const comch::Address& address) {
  if (address.local()) (void)unix_listener(address);
}

WorkerSessionBench::~WorkerSessionBench() {
  FakeNetwork::instance().clear();
}

// ---- Calls of the session

void WorkerSessionBench::on_channels(std::vector<comch::AttachedChannel> channels) {
  require(stage_ == Stage::greeted, "channels come once");
  require(!channels.empty() && channels.size() <= 16, "as many as it serves");
  for (std::uint32_t i = 0; i < channels.size(); ++i) {
    require(channels[i].channel->index() == i, "in their order");
    require(packets_ == (channels[i].link == nullptr), "over a network each has its link");
    // All of its memory is there, and can be written as far as the worker may write.
    const kernels::ChannelView& view = channels[i].channel->view();
    volatile std::uint8_t* const last = view.responses + view.layout.response_bytes - 1;
    *last = static_cast<std::uint8_t>(*last + view.requests[view.layout.request_bytes - 1]);
  }
  channels_ = std::move(channels);
  stage_ = Stage::serving;
}
void WorkerSessionBench::on_attached() {
  require(stage_ == Stage::serving, "it is attached once it serves");
  stage_ = Stage::attached;
}
void WorkerSessionBench::on_assignment(std::uint32_t channels) {
  require(stage_ == Stage::attached, "who is assigned channels is attached");
  assigned_ = channels;
}
void WorkerSessionBench::on_user_message(std::span<const std::byte> bytes) {
  require(stage_ == Stage::attached, "who is talked to is attached");
  require(!bytes.empty() && bytes.size() <= protocol::kMaxUserMessage, "it says something");
}
void WorkerSessionBench::on_start_shutdown(protocol::ShutdownReason reason) {
  require(stage_ != Stage::lost, "nothing comes after the end");
  require(reason <= protocol::ShutdownReason::released, "a reason that there is");
}
void WorkerSessionBench::on_lost(const std::string& reason,
                                 std::optional<protocol::Refusal> refused) {
  require(stage_ != Stage::lost, "it is lost once");
  require(!reason.empty() || refused, "it says why");
  stage_ = Stage::lost;
}

// ---- Steps

void WorkerSessionBench::run() {
  while (!script_->ends()) step(/*waits=*/false);
  for (int i = 0; i < 4; ++i) turn();
  for (ControlPeer& each : peers_) read(each);
  check_rest();
}

ControlPeer* WorkerSessionBench::peer(std::size_t index) {
  return index < peers_.size() ? &peers_[index] : nullptr;
}

/// `waits`: the session waits for an answer, and cannot be called.
void WorkerSessionBench::step(bool waits) {
  const std::uint8_t head = script_->byte();
  ControlPeer* const to = peer((head >> 4U) & 3U);
  switch (head & 15U) {
    case 1: {
      const Bytes message = make_message(*script_, {});
      if (to != nullptr) to->send(message);
      break;
    }
    case 2: {
      const Bytes message = make_message(*script_, {});
      const std::size_t kept = script_->byte();
      if (to != nullptr) to->send(message, {}, kept);
      misaligned_ = true;
      break;
    }
    case 3: {
      const auto bytes = script_->bytes(script_->byte() % 65U);
      if (to != nullptr && !bytes.empty()) to->send(bytes);
      misaligned_ = true;
      break;
    }
    case 4:
      if (to != nullptr) to->close();
      break;
    case 5:
      if (to != nullptr) read(*to);
      break;
    case 7: {
      time_->advance(std::chrono::milliseconds(250) * script_->byte());
      if (!waits && stage_ != Stage::lost) session_->tick(engine_.run_time());
      break;
    }
    case 8:
      if (!waits) call();
      break;
    case 9:
      if (to != nullptr) to->end_sending();
      misaligned_ = true;
      break;
    case 10: {
      const Bytes message = make_message(*script_, {});
      const auto fds = pick_descriptors(*script_);
      if (to != nullptr) to->send(message, fds);
      break;
    }
    case 11: {
      const std::uint32_t index = script_->byte() & 1U;
      const auto fds = pick_descriptors(*script_);
      if (to != nullptr) send_channel(*to, index, fds);
      break;
    }
    case 6:
    case 0: break;
    default:
      if (waits) {
        peers_.back().send(MessageId::channel_attached, {});
      } else if (!peers_.empty()) {
        if ((head & 15U) == 13 && steps_done_ != 0) --steps_done_;
        if ((head & 15U) == 14) ++steps_done_;
        do_right(peers_.front(), steps_done_++);
      }
      break;
  }
  if ((head & 0x40U) == 0 && !waits) turn();
}

void WorkerSessionBench::turn() {
  engine_.run_once({});
}

void WorkerSessionBench::read(ControlPeer& from) {
  const bool first = &from == &peers_.front();
  for (const comch::ControlMessage& message : from.read()) {
    require(is_a_workers(message.id), "it is a message of a worker");
    require(message.fds.empty(), "a worker passes no descriptors");
    if (!first) continue;
    require(std::exchange(hello_seen_, true) || message.id == MessageId::hello,
            "expected a greeting first");
    if (message.id == MessageId::error) {
      require(!protocol::parse_error(message.payload).text.empty(), "a refusal says why");
    }
  }
}

void WorkerSessionBench::send_channel(ControlPeer& to, std::uint32_t index,
                                      std::span<const int> fds) {
  protocol::ChannelDescriptor descriptor = Descriptors::instance().channels[index]->descriptor();
  if (!packets_) {
    descriptor.access.assign(sizeof(protocol::Token), std::byte{1});
    descriptor.response_access.clear();
  }
  to.send(MessageId::channel_descriptor, descriptor.encode(), fds);
}

/// Does the `step`-th action of a correct server.
void WorkerSessionBench::do_right(ControlPeer& to, std::uint32_t step) {
  if (step == 0) {
    const protocol::Welcome welcome{
        protocol::kControlVersion, Descriptors::kChannels, 1000, {"reverse"}};
    return to.send(MessageId::welcome, welcome.encode());
  }
  if (step <= Descriptors::kChannels) {
    const auto fds = Descriptors::instance().channels[step - 1]->fds();
    return send_channel(to, step - 1, fds);
  }
  if (step <= 2 * Descriptors::kChannels) {
    const std::uint32_t channel = step - Descriptors::kChannels - 1;
    return to.send(MessageId::exchange_consumer_id_response,
                   protocol::ExchangeConsumerId{channel, channel}.encode());
  }
  to.send(MessageId::keep_alive, protocol::KeepAlive{step}.encode());
}

void WorkerSessionBench::call() {
  const std::uint8_t what = script_->byte();
  if (stage_ == Stage::lost) return;
  switch (what & 3U) {
    case 0: return session_->request_detach();
    case 1: return session_->request_shutdown();
    case 2: return session_->complete();
    default: break;
  }
  try {
    session_->send_user_message(Bytes(1U + what));
  } catch (const core::Error& error) {
    using core::ErrorCode;
    require(error.code() == ErrorCode::full || error.code() == ErrorCode::not_connected,
            "it says why not");
  }
}

/// Checks that a session that is not lost continues correctly, and hears of its server's end.
void WorkerSessionBench::check_rest() {
  if (peers_.empty()) return;
  ControlPeer& server = peers_.front();
  if (stage_ == Stage::attached && server.connected() && !misaligned_) {
    server.send(MessageId::assignment, protocol::Assignment{kAssigned}.encode());
    for (int i = 0; i < 3; ++i) turn();
    require(stage_ == Stage::lost || assigned_ == kAssigned, "an assignment arrives");
  }
  for (ControlPeer& each : peers_) each.close();
  for (int i = 0; i < 3; ++i) turn();
  require(stage_ == Stage::lost, "it hears of its server's end");
}

}  // namespace offload::fuzz
