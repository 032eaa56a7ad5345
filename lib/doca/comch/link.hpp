#pragma once

#include <sys/uio.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comch/transport/tcp/stream.hpp"

namespace offload::doca {

/// The kinds of frames between two processes that use this library. `first` and `second` are the
/// values of a frame's head.
enum class ComchFrame : std::uint32_t {
  hello = 1,      ///< of a client, once: Introduction and the server's name
  welcome,        ///< the server's answer: Introduction
  attach,         ///< the only one of a client's further stream: Attachment
  attached,       ///< the server's answer for a consumer of the client
  message,        ///< a control message
  credit,         ///< `first` messages were taken, so as many more may be sent
  consumer_new,   ///< of a server: it has the consumer `first`
  consumer_gone,  ///< the sender's consumer `first` has stopped
  posted,         ///< a consumer can take a message of `first` + 2^32 * `second` bytes
  data,  ///< for a posted buffer: `first` is the producer, `second` of the bytes are immediate
  unreachable,  ///< of a client: it has no stream to the server's consumer `first`
};

/// The head of each frame, in the byte order of the processors.
struct FrameHead {
  ComchFrame kind{};
  std::uint32_t length = 0;  ///< of the payload behind it, bytes
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};
static_assert(sizeof(FrameHead) == 16 && std::endian::native == std::endian::little);

/// The payload of hello and welcome.
struct Introduction {
  static constexpr std::uint32_t kVersion = 1;
  std::uint32_t version = kVersion;
  std::uint32_t longest_message = 0;  ///< that the sender sends or takes
  std::uint32_t receive_queue = 0;    ///< messages that it takes before it gives credit
  std::uint32_t reserved = 0;
  std::uint64_t token = 0;  ///< of welcome: names the connection to further streams
};
static_assert(sizeof(Introduction) == 24);

/// The payload of attach: the stream is for the data of this consumer.
struct Attachment {
  std::uint64_t token = 0;
  std::uint32_t consumer = 0;
  std::uint32_t is_servers = 0;  ///< 1: the consumer is the server's; 0: the client's
};
static_assert(sizeof(Attachment) == 16);

/// Returns the bytes of a value that is sent as it is.
template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

/// A stream of frames between two processes. Nothing waits. Once the peer is gone, frames to it are
/// dropped, and receiving throws Error (connection_reset) behind the last byte that has arrived.
/// One thread at a time.
class Link {
 public:
  explicit Link(comch::TcpStream stream) : stream_(std::move(stream)), input_(kInput) {
    stream_.keep_receiving();
  }
  Link& operator=(Link&&) = delete;
  ~Link();

  [[nodiscard]] int fd() const noexcept { return stream_.fd(); }
  /// Continues the handshake; returns whether it has finished.
  bool handshake();

  /// Sends a frame, or keeps what there is no room for. Its length is that of `payload`.
  void send(FrameHead head, std::span<const std::byte> payload = {});
  /// Keeps a frame for the next flush(). Ends the stream if the peer does not read.
  void keep(FrameHead head, std::span<const std::byte> payload = {});
  /// Sends kept bytes. Returns whether all were sent; false once the peer is gone.
  bool flush();
  [[nodiscard]] bool has_output() const noexcept { return sent_ < output_.size(); }
  /// Sends what there is room for; returns the number of bytes. Nothing may be kept. After a part
  /// the next call must begin with the rest. Throws Error (connection_reset) if the peer is gone.
  std::size_t send_some(std::span<const iovec> pieces);
  /// Tells the peer that no more follows.
  void end_output() noexcept;

  struct Frame {
    FrameHead head;
    std::span<const std::byte> payload;
  };
  /// Returns the next frame, whose payload is valid until the next call; nothing if it has not
  /// arrived. Throws Error (bad_message) for a payload longer than `longest`, 16 KiB at most.
  std::optional<Frame> next_frame(std::size_t longest);
  /// Returns the next `count` bytes, 16 KiB at most, which are valid until the next call; nothing
  /// if they have not arrived.
  std::optional<std::span<const std::byte>> take(std::size_t count);
  /// Returns whether the next call may find more without a look at the socket, or the last look did
  /// not take all that was there: a reader that stops otherwise saves a system call.
  [[nodiscard]] bool may_have_more() const noexcept { return begin_ != end_ || !is_drained_; }
  /// Returns how often bytes have arrived.
  [[nodiscard]] std::uint64_t arrivals() const noexcept { return arrivals_; }
  /// Receives the next bytes into `to`; returns how many there were.
  std::size_t receive_into(std::span<std::byte> to);

 private:
  static constexpr std::size_t kInput = std::size_t{64} * 1024;

  bool fill();
  std::size_t receive(std::span<std::byte> to);
  /// Keeps a frame without its first `sent` bytes. Throws std::bad_alloc.
  void keep_rest(const FrameHead& head, std::span<const std::byte> payload, std::size_t sent);
  void stop_sending() noexcept;

  comch::TcpStream stream_;
  std::vector<std::byte> output_;
  std::size_t sent_ = 0;  ///< of output_
  bool can_send_ = true;
  bool is_drained_ = false;  ///< the last look took less than there was room for
  std::vector<std::byte> input_;
  std::uint64_t arrivals_ = 0;
  std::size_t begin_ = 0;  ///< of the received bytes in input_
  std::size_t end_ = 0;
};

}  // namespace offload::doca
