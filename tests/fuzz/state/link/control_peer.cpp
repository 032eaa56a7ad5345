#include "tests/fuzz/state/link/control_peer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.hpp"
#include "net/fd_passing.hpp"
#include "tests/fuzz/input.hpp"

namespace offload::fuzz {

using protocol::MessageId;

void ControlPeer::send(std::span<const std::byte> bytes, std::span<const int> fds,
                       std::size_t kept) {
  if (!connected()) return;
  if (packets_) {
    try {
      net::send_with_fds(socket_.get(), bytes, fds);
    } catch (const core::Error&) {
      return;  // the other end is gone, or full
    }
    return;
  }
  kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  const std::size_t size = kept_.size() - std::min(kept, kept_.size());
  const ssize_t sent =
      size == 0 ? 0 : ::send(socket_.get(), kept_.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0) return;
  said_.insert(said_.end(), kept_.begin(), kept_.begin() + sent);
  kept_.erase(kept_.begin(), kept_.begin() + sent);
}

bool ControlPeer::has_said(std::span<const std::byte> bytes) const {
  return std::search(said_.begin(), said_.end(), bytes.begin(), bytes.end()) != said_.end();
}

core::Fd connect_packets(const std::string& path) {
  core::Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  require(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0,
          "the server listens");
  return fd;
}

void ControlPeer::end_sending() {
  if (connected()) ::shutdown(socket_.get(), SHUT_WR);
}

std::vector<comch::ControlMessage> ControlPeer::read() {
  std::vector<comch::ControlMessage> messages;
  while (connected() && !ended_) {
    std::array<std::byte, 4096> bytes;
    if (packets_) {
      try {
        auto message = net::receive_with_fds(socket_.get(), bytes);
        if (!message) break;
        ended_ = message->size == 0;
        if (ended_) break;
        messages.push_back(comch::parse_packet(std::span(bytes).first(message->size)));
        messages.back().fds = std::move(message->fds);
      } catch (const core::Error& error) {
        require(error.code() != core::ErrorCode::bad_message, "a packet is one control message");
        ended_ = true;
      }
      continue;
    }
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) break;
    ended_ = count <= 0;
    if (ended_) break;
    received_.insert(received_.end(), bytes.begin(), bytes.begin() + count);
  }
  while (!packets_) {
    const auto frame = protocol::parse_frame(received_, protocol::kMaxControlLength);
    require(frame.state != protocol::FrameView::State::bad, "a stream is control messages");
    if (frame.state != protocol::FrameView::State::complete) break;
    messages.push_back({frame.id, {frame.payload.begin(), frame.payload.end()}, {}});
    received_.erase(received_.begin(),
                    received_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
  }
  return messages;
}

namespace {

/// Its values are right where the script has 0.
Bytes make_hello(Script& script) {
  protocol::Hello hello;
  const std::uint8_t wrong = script.byte();
  hello.capabilities = (wrong & 15U) | protocol::kRingsDoorbell;
  hello.version = static_cast<std::uint16_t>(protocol::kControlVersion + ((wrong & 16U) != 0));
  hello.max_channels = (wrong & 32U) != 0 ? 1 : 16;
  hello.max_message_length = (wrong & 64U) != 0 ? 16 : 4096;
  hello.backend = "fuzz";
  hello.services = {(wrong & 128U) != 0 ? "echo" : "reverse"};
  return hello.encode();
}

Bytes make_welcome(Script& script) {
  const std::uint8_t wrong = script.byte();
  protocol::Welcome welcome;
  welcome.version = static_cast<std::uint16_t>(protocol::kControlVersion + ((wrong & 16U) != 0));
  welcome.channel_count = static_cast<std::uint16_t>(2 + (wrong & 15U));
  if ((wrong & 32U) != 0) welcome.channel_count = 0;
  welcome.keep_alive_ms = (wrong & 64U) != 0 ? 0 : 1000;
  if ((wrong & 128U) == 0) welcome.services = {"reverse"};
  return welcome.encode();
}

Bytes make_descriptor(Script& script, const protocol::Token& token) {
  const std::uint8_t wrong = script.byte();
  const std::uint8_t by = script.byte();
  protocol::ChannelDescriptor descriptor =
      Descriptors::instance().channels[wrong & 1U]->descriptor();
  switch (wrong >> 1U & 7U) {
    case 1: descriptor.channel = by; break;
    case 2: descriptor.depth = 1U << (by % 32U); break;
    case 3: descriptor.depth = by; break;
    case 4: descriptor.max_message_length = std::uint32_t{by} << (by % 25U); break;
    case 5: descriptor.service = by; break;
    case 6: descriptor.max_response_length = std::uint32_t{by} << (by % 25U); break;
    default: break;
  }
  if ((wrong & 16U) != 0) {
    descriptor.access.assign(token.begin(), token.end());
    descriptor.response_access.clear();
  }
  if ((wrong & 32U) != 0 && !descriptor.access.empty()) {
    descriptor.access[by % descriptor.access.size()] ^= std::byte{1};
  }
  return descriptor.encode();
}

Bytes make_payload(unsigned kind, Script& script, const protocol::Token& token) {
  using protocol::ExchangeConsumerId;
  switch (kind) {
    case 0: return make_hello(script);
    case 1: return make_welcome(script);
    case 2: return make_descriptor(script, token);
    case 3:
    case 4: {
      const std::uint32_t channel = script.byte();
      return ExchangeConsumerId{channel, channel}.encode();
    }
    case 5: return protocol::Assignment{script.byte()}.encode();
    case 6: return protocol::StartShutdown{protocol::ShutdownReason(script.byte() % 3U)}.encode();
    case 7: return protocol::KeepAlive{script.byte()}.encode();
    case 8: {
      const std::uint32_t taken = script.byte();
      return protocol::UserMessage{taken, Bytes(script.byte())}.encode();
    }
    case 12: return protocol::AttachChannel{script.byte(), token}.encode();
    case 15: {
      protocol::Token other = token;
      other[script.byte() % other.size()] ^= std::byte{1};
      return protocol::AttachChannel{0, other}.encode();
    }
    case 14: {
      const auto bytes = script.bytes(script.byte());
      return {bytes.begin(), bytes.end()};
    }
    default: return {};
  }
}

}  // namespace

Bytes make_message(Script& script, const protocol::Token& token) {
  constexpr std::array<MessageId, 16> kIds{MessageId::hello,
                                           MessageId::welcome,
                                           MessageId::channel_descriptor,
                                           MessageId::exchange_consumer_id_request,
                                           MessageId::exchange_consumer_id_response,
                                           MessageId::assignment,
                                           MessageId::start_shutdown,
                                           MessageId::keep_alive,
                                           MessageId::user_message,
                                           MessageId::detach,
                                           MessageId::shutdown_complete,
                                           MessageId::start_shutdown,  // as a worker sends it
                                           MessageId::attach_channel,
                                           MessageId::channel_attached,
                                           MessageId::error,
                                           MessageId::attach_channel};
  const std::uint8_t head = script.byte();
  const unsigned kind = head & 15U;
  const auto id = (head & 16U) == 0 ? kIds.at(kind) : static_cast<MessageId>(script.byte());
  Bytes frame = protocol::make_frame(id, make_payload(kind, script, token));
  if ((head & 0x80U) != 0) {
    const std::uint8_t by = script.byte();
    const std::size_t at = script.byte() % frame.size();
    if (by == 0) {
      frame.resize(at);
      if (frame.size() >= protocol::kFrameHeaderSize && (head & 0x40U) != 0) {
        protocol::store_header(frame.data(), id,
                               static_cast<std::uint32_t>(at - protocol::kFrameHeaderSize));
      }
    } else {
      frame[at] ^= static_cast<std::byte>(by);
    }
  }
  return frame;
}

Descriptors& Descriptors::instance() {
  static Descriptors one = [] {
    Descriptors made;
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      made.channels.push_back(std::make_unique<channel::ChannelMemory>(i, kDepth, kLongest, -1));
    }
    made.unsealed = core::Fd(::memfd_create("unsealed", MFD_CLOEXEC));
    made.null = core::Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    return made;
  }();
  return one;
}

std::vector<int> pick_descriptors(Script& script) {
  const std::uint8_t how = script.byte();
  const Descriptors& all = Descriptors::instance();
  const auto right = all.channels[how & 1U]->fds();
  std::vector<int> fds(right.begin(), right.end());
  const std::size_t at = (how >> 1U) & 3U;
  switch (how >> 4U) {
    case 1: fds.resize(at); break;
    case 2: fds.insert(fds.end(), 1 + at * 12, all.null.get()); break;
    case 3: fds[at] = all.null.get(); break;
    case 4: fds[at] = all.unsealed.get(); break;
    case 5: std::swap(fds[0], fds[at]); break;
    case 6: fds.clear(); break;
    case 7: fds.assign(net::kMaxPassedFds, all.null.get()); break;
    default: break;
  }
  return fds;
}

}  // namespace offload::fuzz
