#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comch/transport/data_connection.hpp"
#include "core/fd.hpp"

namespace offload::comch {

/// A connected stream socket. Payloads are sent from where they lie, and long ones received to
/// where they belong.
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
