#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "channel/channel_memory.hpp"
#include "comch/proxy/server_proxy.hpp"

namespace offload::comch {

/// A channel as a worker has it: the server's own memory, or one of this machine's with the server
/// at the other end of a connection.
class AttachedChannel {
 public:
  explicit AttachedChannel(channel::ChannelImport shared) : channel_(std::move(shared)) {}
  explicit AttachedChannel(std::unique_ptr<ServerProxy> remote) : channel_(std::move(remote)) {}

  /// What a back end serves.
  [[nodiscard]] const channel::ChannelImport& import() const noexcept {
    const auto* const remote = std::get_if<std::unique_ptr<ServerProxy>>(&channel_);
    return remote != nullptr ? (*remote)->channel()
                             : *std::get_if<channel::ChannelImport>(&channel_);
  }
  /// Null where the server is on this machine.
  [[nodiscard]] ServerProxy* remote() const noexcept {
    const auto* const remote = std::get_if<std::unique_ptr<ServerProxy>>(&channel_);
    return remote != nullptr ? remote->get() : nullptr;
  }

 private:
  std::variant<channel::ChannelImport, std::unique_ptr<ServerProxy>> channel_;
};

}  // namespace offload::comch
