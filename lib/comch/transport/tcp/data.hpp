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

/// Carries them over a TCP connection. Payloads are sent from where they lie, and long ones
/// received to where they go.
class TcpDataConnection final : public DataConnection, progress::Pollable, progress::EventHandler {
 public:
  /// Throws Error.
  TcpDataConnection(progress::Engine& engine, core::Fd connection,
                    const kernels::ChannelLayout& layout, DataHandler& end);
  ~TcpDataConnection() override;

  void push(const protocol::DataHeader& header, const std::byte* payload) noexcept override;
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }

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

  bool send();
  void advance(std::size_t bytes);
  bool receive();
  bool receive_long();
  bool take_messages();
  void take(std::span<const std::byte> payload, const protocol::DataHeader& header);
  [[nodiscard]] Outgoing& outgoing(std::uint64_t number) noexcept {
    return outgoing_[number % outgoing_.size()];
  }

  progress::Engine* engine_;
  DataHandler* end_;
  core::Fd connection_;
  std::uint32_t max_length_;
  bool readable_ = true;
  bool writable_ = true;

  std::vector<Outgoing> outgoing_;
  std::vector<iovec> pieces_;
  std::uint64_t pushed_ = 0;
  std::uint64_t sent_ = 0;
  std::size_t sent_of_next_ = 0;  ///< bytes of message sent_

  std::unique_ptr<std::byte[]> input_;
  std::size_t input_size_ = 0;    ///< bytes in it that were not taken yet
  protocol::DataHeader long_;     ///< of the message that comes in
  std::byte* long_at_ = nullptr;  ///< where it goes; null: there is none
  std::size_t long_received_ = 0;
};

class TcpDataEndpoint final : public DataEndpoint {
 public:
  explicit TcpDataEndpoint(core::Fd connection) noexcept : connection_(std::move(connection)) {}
  [[nodiscard]] std::unique_ptr<DataConnection> carry(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& end,
                                                      std::uint32_t unasked) override;

 private:
  core::Fd connection_;
};

}  // namespace offload::comch
