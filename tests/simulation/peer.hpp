#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "core/fd.hpp"
#include "protocol/frame.hpp"
#include "tests/simulation/kernel/files.hpp"

namespace offload::simulation {

std::string frame_of(std::uint32_t id, const std::string& payload);
/// To tcp:PORT, tcp:HOST:PORT or unix:PATH; no descriptor if nobody listens there.
core::Fd connect_to(const std::string& address);

/// One end of a connection to a server that is spoken by hand, by the fiber that made it.
class Peer {
 public:
  struct Frame {
    protocol::MessageId id;
    std::string payload;
    [[nodiscard]] bool refuses(protocol::Refusal code) const;
  };

  explicit Peer(const std::string& address)
      : fd_(connect_to(address)), local_(address.starts_with("unix:")) {}

  [[nodiscard]] bool connected() const { return fd_.valid(); }
  /// All of it, or until `limit`, or the end. On a Unix socket as one packet.
  bool send(const std::string& bytes, Time limit = 5 * kSecond);
  /// Requests of `length` random bytes each; what they are to be answered with is kept. What the
  /// socket does not take now it takes while something is received.
  void ask(std::uint64_t count, std::uint64_t length);
  /// The next frame; nothing if none comes within `limit`, or the connection ends.
  std::optional<Frame> receive(Time limit);
  /// Whether the next frame is the response to the oldest request.
  bool is_answered(Time limit);
  /// Whether it ends within `limit`, whatever comes before.
  bool ends(Time limit);
  [[nodiscard]] bool ended() const { return ended_; }
  /// The same at once, and nothing is read.
  [[nodiscard]] bool gone() const;
  [[nodiscard]] std::shared_ptr<Socket> socket() const;
  /// Waits until the server has sent something to it, which need not have arrived.
  void await_sent(Time limit) const;
  [[nodiscard]] std::uint64_t owed() const { return answers_.size(); }
  /// The next frame was something else in place of this answer.
  void forget_oldest() { answers_.pop_front(); }
  [[nodiscard]] const std::string& oldest() const { return answers_.front(); }
  /// As a client that ends with bytes unread.
  void reset();

 private:
  bool take(Time deadline);
  void flush();

  Process* process_ = kernel->current->process;
  core::Fd fd_;
  bool local_;
  bool ended_ = false;
  std::string input_;
  std::string output_;
  std::deque<std::string> answers_;
};

}  // namespace offload::simulation
