#include "tests/simulation/peer.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

namespace offload::simulation {
namespace {

int milliseconds(Time time) {
  return static_cast<int>(std::max<Time>(time, 0) / kMillisecond);
}

}  // namespace

std::string frame_of(std::uint32_t id, const std::string& payload) {
  std::string frame(protocol::kFrameHeaderSize, '\0');
  protocol::store_header(reinterpret_cast<std::byte*>(frame.data()),
                         static_cast<protocol::MessageId>(id),
                         static_cast<std::uint32_t>(payload.size()));
  return frame + payload;
}

core::Fd connect_to(const std::string& address) {
  const bool local = address.starts_with("unix:");
  core::Fd fd(::socket(local ? AF_UNIX : AF_INET, local ? SOCK_SEQPACKET : SOCK_STREAM, 0));
  if (!fd.valid()) return {};
  if (local) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, address.c_str() + 5, sizeof to.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) < 0) return {};
    return fd;
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) < 0 &&
      errno != EINPROGRESS) {
    return {};
  }
  pollfd out{fd.get(), POLLOUT, 0};
  ::poll(&out, 1, 10000);
  return fd;
}

bool Peer::Frame::refuses(protocol::Refusal code) const {
  return id == protocol::MessageId::error &&
         protocol::parse_error(std::as_bytes(std::span(payload))).code == code;
}

std::shared_ptr<Socket> Peer::socket() const {
  return process_->get<Socket>(fd_.get());
}

bool Peer::gone() const {
  const auto mine = socket();
  return ended_ || !mine || mine->broken || mine->input_ended;
}

void Peer::await_sent(Time limit) const {
  const auto other = socket() ? socket()->peer : std::weak_ptr<Socket>();
  kernel->wait(
      [other] {
        const auto server = other.lock();
        return !server || server->sent != 0;
      },
      kernel->now + limit);
}

void Peer::reset() {
  ended_ = true;
  const auto mine = socket();
  if (const auto other = mine->peer.lock()) other->reset(ECONNRESET);
  mine->reset(ECONNRESET);
}

void Peer::flush() {
  while (!output_.empty() && !ended_) {
    const auto sent = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) ended_ = true;
    if (sent <= 0) return;
    output_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool Peer::send(const std::string& bytes, Time limit) {
  const Time deadline = kernel->now + limit;
  output_ += bytes;
  for (flush(); !output_.empty() && !ended_ && kernel->now < deadline; flush()) {
    pollfd out{fd_.get(), POLLOUT, 0};
    ::poll(&out, 1, milliseconds(deadline - kernel->now) + 1);
  }
  return output_.empty() && !ended_;
}

void Peer::ask(std::uint64_t count, std::uint64_t length) {
  std::string frames;
  for (; count != 0; --count) {
    std::string payload(length, '\0');
    for (char& byte : payload) byte = static_cast<char>(kernel->random.next());
    frames += frame_of(4, payload);
    answers_.emplace_back(payload.rbegin(), payload.rend());
  }
  output_ += frames;
  flush();
}

bool Peer::take(Time deadline) {
  std::array<char, 65536> bytes;
  while (true) {
    ssize_t count = 0;
    flush();
    if (local_) {
      alignas(cmsghdr) std::array<char, 256> control;
      iovec piece{bytes.data(), bytes.size()};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      count = ::recvmsg(fd_.get(), &message, 0);
      const cmsghdr* const rights = count > 0 && message.msg_controllen != 0
                                        ? reinterpret_cast<cmsghdr*>(control.data())
                                        : nullptr;
      for (std::size_t i = 0; rights && CMSG_LEN((i + 1) * sizeof(int)) <= rights->cmsg_len; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(rights) + i * sizeof fd, sizeof fd);
        ::close(fd);
      }
    } else {
      count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    }
    if (count > 0) {
      input_.append(bytes.data(), static_cast<std::size_t>(count));
      return true;
    }
    if (count == 0 || errno != EAGAIN) ended_ = true;
    if (ended_ || kernel->now >= deadline) return false;
    pollfd in{fd_.get(), static_cast<short>(POLLIN | (output_.empty() ? 0 : POLLOUT)), 0};
    ::poll(&in, 1, milliseconds(deadline - kernel->now) + 1);
  }
}

std::optional<Peer::Frame> Peer::receive(Time limit) {
  const Time deadline = kernel->now + limit;
  while (true) {
    const auto frame = protocol::parse_frame(std::as_bytes(std::span(input_)), 1U << 24U);
    if (frame.state == protocol::FrameView::State::bad) {
      kernel->fail("a peer gets no frame");
      return {};
    }
    if (frame.state == protocol::FrameView::State::complete) {
      Frame found{frame.id, std::string(reinterpret_cast<const char*>(frame.payload.data()),
                                        frame.payload.size())};
      input_.erase(0, frame.size());
      return found;
    }
    if (!take(deadline)) return {};
  }
}

bool Peer::is_answered(Time limit) {
  const auto frame = receive(limit);
  if (!frame || answers_.empty()) return false;
  const std::string expected = std::move(answers_.front());
  answers_.pop_front();
  return frame->id == protocol::MessageId::client_response && frame->payload == expected;
}

bool Peer::ends(Time limit) {
  const Time deadline = kernel->now + limit;
  while (take(deadline)) input_.clear();
  return ended_;
}

}  // namespace offload::simulation
