#include "tests/simulation/client.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <string>

#include "core/fd.hpp"
#include "protocol/frame.hpp"

namespace offload::simulation {
namespace {

constexpr Time kPatience = 90 * kSecond;

std::string frame_of(std::uint32_t id, const std::string& payload) {
  std::string frame(protocol::kFrameHeaderSize, '\0');
  protocol::store_header(reinterpret_cast<std::byte*>(frame.data()),
                         static_cast<protocol::MessageId>(id),
                         static_cast<std::uint32_t>(payload.size()));
  return frame + payload;
}

core::Fd connect_to(std::uint16_t port) {
  core::Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 &&
      errno != EINPROGRESS) {
    return {};
  }
  pollfd out{fd.get(), POLLOUT, 0};
  ::poll(&out, 1, 10000);
  return fd;
}

class Client {
 public:
  Client(Load& load, core::Fd fd, bool lies)
      : load_(load),
        fd_(std::move(fd)),
        left_(1 + kernel->random.below(kernel->random.one_in(4) ? 300 : 40)),
        window_(1 + kernel->random.below(kernel->random.one_in(2) ? 4 : 200)),
        slow_(kernel->random.one_in(4)),
        half_closes_(kernel->random.one_in(4)),
        lies_after_(lies ? kernel->random.below(left_) + 1 : 0) {}

  void run() {
    const Time deadline = kernel->now + kPatience;
    while (!ended_ && (left_ != 0 || !awaited_.empty() || !output_.empty())) {
      if (kernel->now >= deadline) return wrong("is not answered");
      ask();
      const bool sends = !output_.empty();
      pollfd events{fd_.get(), static_cast<short>(POLLIN | (sends ? POLLOUT : 0)), 0};
      ::poll(&events, 1, 1000);
      if (sends && (events.revents & POLLOUT) != 0) send();
      if (slow_ && kernel->random.one_in(3)) {
        kernel->sleep(static_cast<Time>(kernel->random.below(20 * kMillisecond)));
      }
      if ((events.revents & (POLLIN | POLLERR | POLLHUP)) != 0) receive();
    }
  }

 private:
  void wrong(const std::string& what) {
    ended_ = true;
    kernel->fail(fmt::format("a client {}: {} asked, {} answered", what, asked_, done_));
  }

  void ask() {
    while (left_ != 0 && awaited_.size() < window_ && output_.size() < 200'000) {
      --left_;
      ++asked_;
      if (lies_after_ != 0 && asked_ == lies_after_) {
        lied_ = true;
        left_ = 0;
        output_ += kernel->random.one_in(2) ? frame_of(4, std::string(load_.longest + 1, 'x'))
                                            : frame_of(5, "not for a server");
        awaited_.emplace_back();
        return;
      }
      const std::uint64_t most =
          kernel->random.one_in(3) ? load_.longest : std::min(load_.longest, 40U);
      std::string payload(kernel->random.below(most + 1), '\0');
      for (char& byte : payload) byte = static_cast<char>(kernel->random.next());
      output_ += frame_of(4, payload);
      awaited_.emplace_back(payload.rbegin(), payload.rend());
    }
  }

  void send() {
    const auto sent = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? void() : end("sending");
    output_.erase(0, static_cast<std::size_t>(sent));
    if (output_.empty() && left_ == 0 && half_closes_) ::shutdown(fd_.get(), SHUT_WR);
  }

  void receive() {
    std::array<char, 16384> bytes;
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end(count == 0 ? "receiving, in order" : "receiving");
    input_.append(bytes.data(), static_cast<std::size_t>(count));
    while (!ended_) {
      const auto frame = protocol::parse_frame(std::as_bytes(std::span(input_)), 1U << 24U);
      if (frame.state == protocol::FrameView::State::incomplete) return;
      if (frame.state == protocol::FrameView::State::bad) return wrong("gets no frame");
      check(frame);
      input_.erase(0, frame.size());
    }
  }

  void check(const protocol::FrameView& frame) {
    if (awaited_.empty()) return wrong("gets what it did not ask for");
    const std::string expected = std::move(awaited_.front());
    awaited_.pop_front();
    ++done_;
    const std::string_view got(reinterpret_cast<const char*>(frame.payload.data()),
                               frame.payload.size());
    const bool of_the_lie = lied_ && awaited_.empty();
    if (frame.id == protocol::MessageId::error) {
      const auto code = protocol::parse_error(frame.payload).code;
      ++load_.refused;
      if (of_the_lie ? static_cast<unsigned>(code) <= 5 : load_.may_be_refused) return;
      return wrong(fmt::format("is refused: {}", protocol::describe(code)));
    }
    if (of_the_lie) return wrong("is answered where it broke the protocol");
    ++load_.answered;
    if (got != expected) wrong("gets wrong bytes");
  }

  void end(const char* where) {
    ended_ = true;
    if (awaited_.empty() && left_ == 0) return;
    ++load_.lost;
    if (!load_.may_be_reset) wrong(std::string("loses its connection ") + where);
  }

  Load& load_;
  core::Fd fd_;
  std::uint64_t left_;
  std::uint64_t window_;
  bool slow_;
  bool half_closes_;
  std::uint64_t lies_after_;
  bool lied_ = false;
  bool ended_ = false;
  std::uint64_t asked_ = 0;
  std::uint64_t done_ = 0;
  std::string output_;
  std::string input_;
  std::deque<std::string> awaited_;
};

}  // namespace

void run_client(Load& load, std::uint16_t port, bool lies) {
  core::Fd fd = connect_to(port);
  if (fd.valid()) {
    Client(load, std::move(fd), lies).run();
  } else if (++load.lost; !load.may_be_reset) {
    kernel->fail("a client cannot connect");
  }
  --load.running;
}

}  // namespace offload::simulation
