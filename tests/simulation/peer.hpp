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
/// Connects to tcp:PORT, tcp:HOST:PORT or unix:PATH; returns no descriptor if no server listens
/// there.
core::Fd connect_to(const std::string& address);

/// One end of a connection to a server, whose frames the fiber that made it sends and reads itself.
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
  /// Sends all of it, or until `limit`, or the end. On a Unix socket it is one packet.
  bool send(const std::string& bytes, Time limit = 5 * kSecond);
  /// Sends requests of `length` random bytes each, and keeps the expected answers. The socket takes
  /// the rest of them while something is received.
  void ask(std::uint64_t count, std::uint64_t length);
  /// Returns the next frame; nothing if none comes within `limit`, or the connection ends.
  std::optional<Frame> receive(Time limit);
  /// Returns whether the next frame is the response to the oldest request.
  bool is_answered(Time limit);
  /// Returns whether the connection ends within `limit`, whatever frames come before.
  bool ends(Time limit);
  [[nodiscard]] bool ended() const { return ended_; }
  /// Returns whether it has ended by now, without reading anything.
  [[nodiscard]] bool gone() const;
  [[nodiscard]] std::shared_ptr<Socket> socket() const;
  /// Waits until the server has sent something to it, which need not have arrived.
  void await_sent(Time limit) const;
  [[nodiscard]] std::uint64_t owed() const { return answers_.size(); }
  /// Drops the oldest expected answer: the next frame was another one instead.
  void forget_oldest() { answers_.pop_front(); }
  [[nodiscard]] const std::string& oldest() const { return answers_.front(); }
  /// Closes like a client that ends with bytes unread.
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
