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
#include "kernels/channel_layout.hpp"
#include "protocol/frame.hpp"
#include "tests/simulation/kernel/files.hpp"
#include "tests/simulation/peer.hpp"

namespace offload::simulation {
namespace {

constexpr Time kPatience = 90 * kSecond;
/// A client must receive something within this time while a worker is there all the time: the
/// requests of a worker that is silent go to another one after 2 s.
constexpr Time kLongestStall = 3500 * kMillisecond;

class Client {
 public:
  Client(Load& load, core::Fd fd, bool lies)
      : load_(load),
        fd_(std::move(fd)),
        left_(1 + kernel->random.below(kernel->random.one_in(4) ? 300 : 40)),
        window_(1 + kernel->random.below(kernel->random.one_in(2) ? 4 : load.most_window)),
        slow_(kernel->random.one_in(4)),
        half_closes_(kernel->random.one_in(4)),
        lies_after_(lies ? kernel->random.below(left_) + 1 : 0) {}

  void run() {
    const Time deadline = now() + kPatience;
    while (!ended_ && (left_ != 0 || !awaited_.empty() || !output_.empty())) {
      if (now() >= deadline) return wrong("is not answered");
      if (now() - moved_ > kLongestStall && is_calm_since(now() - kLongestStall) &&
          !load_.fleet->may_end(now())) {
        return wrong("is left alone while a worker is there");
      }
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
    if (!ended_ && half_closed_) await_end();
  }

 private:
  void wrong(const std::string& what) {
    ended_ = true;
    kernel->fail(fmt::format("a client {}: {} asked, {} answered", what, asked_, done_));
  }

  /// After this client has ended its sending, the server must end its sending as well.
  void await_end() {
    std::array<char, 64> bytes;
    pollfd events{fd_.get(), POLLIN, 0};
    ::poll(&events, 1, 5000);
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) return wrong("gets what it did not ask for");
    if (count < 0 && errno == EAGAIN) wrong("is answered, and its connection does not end");
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
        if (kernel->random.one_in(2)) output_ += std::string(kernel->random.below(200'000), 'y');
        awaited_.push_back({{}, now(), 0});
        return;
      }
      const std::uint64_t most =
          kernel->random.one_in(3) ? load_.longest : std::min(load_.longest, 40U);
      std::string payload(kernel->random.below(most + 1), '\0');
      for (char& byte : payload) byte = static_cast<char>(kernel->random.next());
      output_ += frame_of(4, payload);
      asked_bytes_ += protocol::kFrameHeaderSize + payload.size();
      awaited_.push_back({std::string(payload.rbegin(), payload.rend()), now(), asked_bytes_});
    }
  }

  void send() {
    const auto sent = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? void() : end("sending");
    output_.erase(0, static_cast<std::size_t>(sent));
    moved_ = now();
    if (output_.empty() && left_ == 0 && half_closes_ && !lied_) {
      half_closed_ = true;
      ::shutdown(fd_.get(), SHUT_WR);
    }
  }

  void receive() {
    std::array<char, 16384> bytes;
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return end("receiving", count == 0);
    input_.append(bytes.data(), static_cast<std::size_t>(count));
    moved_ = now();
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
    const Asked asked = std::move(awaited_.front());
    awaited_.pop_front();
    ++done_;
    const std::string_view got(reinterpret_cast<const char*>(frame.payload.data()),
                               frame.payload.size());
    const bool of_the_lie = lied_ && awaited_.empty();
    if (frame.id == protocol::MessageId::error) {
      const auto code = protocol::parse_error(frame.payload).code;
      ++load_.refused;
      if (of_the_lie && static_cast<unsigned>(code) <= 5) return;
      if (may_be_refused(code, asked.at)) return;
      return wrong(fmt::format("is refused: {}", protocol::describe(code)));
    }
    if (of_the_lie) return wrong("is answered where it broke the protocol");
    ++load_.answered;
    if (got == asked.answer) return;
    if (load_.fleet == nullptr || !load_.fleet->may_be_wrong(asked.at))
      return wrong("gets wrong bytes");
    if (got.size() > std::max<std::size_t>(asked.answer.size(), kernels::kLongestDigest)) {
      wrong("gets more than its request allows");
    }
  }
  [[nodiscard]] bool may_be_refused(protocol::Refusal code, Time asked) const {
    if (code == protocol::Refusal::shutting_down && load_.server_ends_at < began_) return false;
    return load_.fleet == nullptr ? load_.may_be_refused : load_.fleet->may_refuse(code, asked);
  }
  /// Returns the server's time: it stands still while the server is paused, which owes no answer
  /// then.
  [[nodiscard]] Time now() const {
    return load_.fleet != nullptr ? load_.fleet->now() : kernel->now;
  }
  [[nodiscard]] bool is_calm_since(Time time) const {
    return load_.fleet != nullptr && load_.fleet->calm_since(time);
  }

  /// Checks that requests that the server had read when it was told to end are answered, if there
  /// was time for it.
  void check_answered() {
    const auto socket = self_socket();
    if (slow_ || lied_ || awaited_.empty() || awaited_.front().end > socket->marked) return;
    if (is_calm_since(now() - (kernel->now - socket->marked_at)))
      wrong("is not answered by a server that ends");
  }
  [[nodiscard]] std::shared_ptr<Socket> self_socket() const {
    return kernel->current->process->get<Socket>(fd_.get());
  }

  void end(const char* where, bool in_order = false) {
    ended_ = true;
    if (awaited_.empty() && left_ == 0) return;
    ++load_.lost;
    if (load_.fleet != nullptr && load_.fleet->may_end(began_)) return;
    if (load_.server_ends_at >= began_ && in_order) return check_answered();
    if (!load_.may_be_reset && load_.server_gone_at < began_ && load_.server_ends_at < began_) {
      wrong(std::string("loses its connection ") + where);
    }
  }

  Load& load_;
  Time began_ = kernel->now;
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
  struct Asked {
    std::string answer;
    Time at;
    std::uint64_t end;  ///< of its frame in all that is sent
  };
  std::deque<Asked> awaited_;
  std::uint64_t asked_bytes_ = 0;
  Time moved_ = now();  ///< when bytes went or came
  bool half_closed_ = false;
};

}  // namespace

void run_client(Load& load, std::uint16_t port, bool lies) {
  const Time began = kernel->now;
  core::Fd fd = connect_to("tcp:" + std::to_string(port));
  if (fd.valid()) {
    Client(load, std::move(fd), lies).run();
  } else if (++load.lost; !load.may_be_turned_away && load.server_ends_at < began &&
                          load.server_gone_at < began) {
    kernel->fail("a client cannot connect");
  }
  --load.running;
}

}  // namespace offload::simulation
