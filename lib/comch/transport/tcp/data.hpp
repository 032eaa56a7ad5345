#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comch/transport/data_connection.hpp"
#include "comch/transport/tcp/stream.hpp"

namespace offload::comch {

/// A connected stream. Without TLS, or with TLS of the kernel, payloads are sent from their slots,
/// and long ones received into theirs.
class TcpDataEndpoint final : public DataEndpoint {
 public:
  explicit TcpDataEndpoint(TcpStream stream) noexcept : stream_(std::move(stream)) {}
  [[nodiscard]] std::unique_ptr<DataConnection> start(progress::Engine& engine,
                                                      const kernels::ChannelView& channel,
                                                      DataHandler& handler,
                                                      std::uint32_t initial_credits) override;

 private:
  TcpStream stream_;
};

}  // namespace offload::comch
