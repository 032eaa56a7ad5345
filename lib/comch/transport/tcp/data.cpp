#include "comch/transport/tcp/data.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;

/// The maximum number of messages in one system call.
constexpr std::size_t kSentAtOnce = 128;
/// The number of bytes of one system call; most bytes of a long content do not use this buffer.
constexpr std::size_t kInputSize = 64 * 1024;
/// The number of system calls in one turn, so that a peer that always sends does not occupy the
/// engine.
constexpr int kReceivesAtOnce = 8;

/// Carries the messages on the socket itself, framed by their headers.
class TcpDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  TcpDataConnection(progress::Engine& engine, TcpStream stream,
                    const kernels::ChannelLayout& layout, DataHandler& handler,
                    std::uint32_t initial_credits)
      : DataConnection(handler, layout, initial_credits),
        engine_(&engine),
        stream_(std::move(stream)),
        outgoing_(layout.depth),
        input_(std::make_unique_for_overwrite<std::byte[]>(kInputSize)) {
    pieces_.reserve(2 * kSentAtOnce);
    engine_->watch(stream_.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
    engine_->activate(*this);
  }
  ~TcpDataConnection() override {
    engine_->deactivate(*this);
    engine_->unwatch(stream_.fd(), *this);
  }

  void post_send(const DataHeader& header, const std::byte* content) noexcept override {
    Outgoing& message = outgoing(posted_++);
    header.store(message.header.data());
    message.content = content;
    message.length = header.length;
  }

 private:
  struct Outgoing {
    std::array<std::byte, kDataHeaderSize> header;
    const std::byte* content;
    std::uint32_t length;
    [[nodiscard]] std::size_t size() const noexcept { return kDataHeaderSize + length; }
  };

  bool poll() override {
    if (failed()) return false;
    bool worked = handler().post_sends();
    worked = send_posted() || worked;
    worked = receive() || worked;
    return worked;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the connection's events wake the engine
  }
  core::Duration arm() override {
    const bool has_more = readable_ || (writable_ && sent() != posted_);
    return has_more && !failed() ? core::Duration{} : core::Duration::max();
  }
  void disarm() override {}
  void on_events(std::uint32_t epoll_events) override {
    if ((epoll_events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable_ = true;
    if ((epoll_events & EPOLLOUT) != 0) writable_ = true;
  }

  bool send_posted() {
    bool worked = false;
    while (writable_ && sent() != posted_) {
      pieces_.clear();
      std::size_t skip = sent_of_next_;
      std::size_t total = 0;
      const auto add = [&](std::byte* data, std::size_t size) {
        const std::size_t skipped = std::min(skip, size);
        skip -= skipped;
        if (size == skipped) return;
        pieces_.push_back({data + skipped, size - skipped});
        total += size - skipped;
      };
      const std::uint64_t end = std::min(posted_, sent() + kSentAtOnce);
      for (std::uint64_t number = sent(); number != end; ++number) {
        Outgoing& message = outgoing(number);
        add(message.header.data(), message.header.size());
        add(const_cast<std::byte*>(message.content), message.length);  // sendmsg only reads
      }
      const auto bytes = stream_.send(pieces_);
      if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
        fail_with([&] { return "the connection broke: " + stream_.failure(errno); });
        return true;
      }
      // A partial send: EPOLLOUT arrives when there is room again.
      if (bytes < static_cast<ssize_t>(total) && !(bytes < 0 && errno == EINTR)) writable_ = false;
      if (bytes > 0) advance(static_cast<std::size_t>(bytes));
      worked = true;
    }
    return worked;
  }

  void advance(std::size_t bytes) {
    std::uint64_t next = sent();
    sent_of_next_ += bytes;
    while (next != posted_ && sent_of_next_ >= outgoing(next).size()) {
      sent_of_next_ -= outgoing(next++).size();
    }
    if (next != sent()) complete_sends(next - sent());
  }

  bool receive() {
    bool worked = false;
    for (int i = 0; readable_ && !failed() && i < kReceivesAtOnce; ++i) {
      if (long_content_ != nullptr) {
        worked = receive_long() || worked;
        continue;
      }
      const std::size_t room = kInputSize - input_size_;
      const auto received = stream_.receive({input_.get() + input_size_, room});
      if (receive_failed(received)) break;
      worked = true;
      input_size_ += static_cast<std::size_t>(received);
      if (!parse_input()) break;
    }
    if (worked) handler().on_receives_done();
    return worked;
  }

  /// Receives the rest of a long content into its slot.
  bool receive_long() {
    const std::size_t left = long_header_.length - long_received_;
    const auto received = stream_.receive({long_content_ + long_received_, left});
    if (receive_failed(received)) return false;
    long_received_ += static_cast<std::size_t>(received);
    if (long_received_ == long_header_.length) {
      deliver(long_header_, {std::exchange(long_content_, nullptr), long_received_});
    }
    return true;
  }

  /// Returns whether recv() returned no bytes: there are none now, or the connection has ended.
  bool receive_failed(ssize_t received) {
    if (received > 0) return false;
    if (received == 0) {
      fail("the peer closed the connection");
    } else if (errno == EAGAIN) {
      readable_ = false;
    } else if (errno != EINTR) {
      fail_with([&] { return "the connection broke: " + stream_.failure(errno); });
    }
    return true;
  }

  /// Delivers the whole messages of the input. Returns false if the connection has failed.
  bool parse_input() {
    std::size_t at = 0;
    while (!failed() && long_content_ == nullptr && input_size_ - at >= kDataHeaderSize) {
      const DataHeader header = DataHeader::load(input_.get() + at);
      if (!check(header)) break;
      const std::size_t there =
          std::min<std::size_t>(input_size_ - at - kDataHeaderSize, header.length);
      const std::byte* const content = input_.get() + at + kDataHeaderSize;
      if (header.length <= kernels::kMaxPacketPayload) {
        if (there < header.length) break;
        deliver(header, {content, there});
      } else {
        std::byte* const to = handler().receive_buffer(header.sequence);
        std::memcpy(to, content, there);
        if (there == header.length) {
          deliver(header, {to, there});
        } else {
          long_header_ = header;
          long_content_ = to;
          long_received_ = there;
        }
      }
      at += kDataHeaderSize + there;
    }
    input_size_ -= at;
    std::memmove(input_.get(), input_.get() + at, input_size_);
    return !failed();
  }
  [[nodiscard]] Outgoing& outgoing(std::uint64_t number) noexcept {
    return outgoing_[number % outgoing_.size()];
  }

  progress::Engine* engine_;
  TcpStream stream_;
  bool readable_ = true;
  bool writable_ = true;

  std::vector<Outgoing> outgoing_;
  std::vector<iovec> pieces_;
  std::uint64_t posted_ = 0;
  std::size_t sent_of_next_ = 0;  ///< bytes of message sent()

  std::unique_ptr<std::byte[]> input_;
  std::size_t input_size_ = 0;  ///< bytes in it that were not parsed yet
  // A long message whose content is incomplete.
  DataHeader long_header_;
  std::byte* long_content_ = nullptr;  ///< null: there is none
  std::size_t long_received_ = 0;      ///< bytes of it
};

}  // namespace

std::unique_ptr<DataConnection> TcpDataEndpoint::start(progress::Engine& engine,
                                                       const kernels::ChannelView& channel,
                                                       DataHandler& handler,
                                                       std::uint32_t initial_credits) {
  return std::make_unique<TcpDataConnection>(engine, std::move(stream_), channel.layout, handler,
                                             initial_credits);
}

}  // namespace offload::comch
