#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "core/fd.hpp"

namespace offload::comch {

/// A data connection over a stream socket. Payloads are sent from where they lie, and long ones
/// received to where they belong.
class TcpDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// Throws Error.
  TcpDataConnection(progress::Engine& engine, core::Fd socket, const kernels::ChannelLayout& layout,
                    DataHandler& handler, std::uint32_t initial_credits);
  ~TcpDataConnection() override;

  void post_send(const protocol::DataHeader& header, const std::byte* payload) noexcept override;

 private:
  struct Outgoing {
    std::array<std::byte, protocol::kDataHeaderSize> header;
    const std::byte* payload;
    std::uint32_t length;
    [[nodiscard]] std::size_t size() const noexcept { return protocol::kDataHeaderSize + length; }
  };

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the connection's events come by themselves
  }
  core::Duration arm() override;
  void disarm() override {}
  void on_events(std::uint32_t epoll_events) override;

  bool send_posted();
  void advance(std::size_t bytes);
  bool receive();
  bool receive_long();
  bool receive_failed(ssize_t received);
  bool parse_input();
  [[nodiscard]] Outgoing& outgoing(std::uint64_t number) noexcept {
    return outgoing_[number % outgoing_.size()];
  }

  progress::Engine* engine_;
  core::Fd socket_;
  bool readable_ = true;
  bool writable_ = true;

  std::vector<Outgoing> outgoing_;
  std::vector<iovec> pieces_;
  std::uint64_t posted_ = 0;
  std::size_t sent_of_next_ = 0;  ///< bytes of message sent()

  std::unique_ptr<std::byte[]> input_;
  std::size_t input_size_ = 0;  ///< bytes in it that were not parsed yet
  // A long message of which the payload has not come whole.
  protocol::DataHeader long_header_;
  std::byte* long_payload_ = nullptr;  ///< null: there is none
  std::size_t long_received_ = 0;      ///< bytes of it
};

/// A connected stream socket.
class TcpDataEndpoint final : public DataEndpoint {
 public:
  explicit TcpDataEndpoint(core::Fd socket) noexcept : socket_(std::move(socket)) {}
  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  core::Fd socket_;
};

}  // namespace offload::comch
