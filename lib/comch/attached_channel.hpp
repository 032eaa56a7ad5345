#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "comch/channel.hpp"
#include "comch/remote_server.hpp"

namespace offload::comch {

/// A channel as a worker has it: the server's own memory, or one of this machine's with the server
/// at the other end of a connection.
class AttachedChannel {
 public:
  explicit AttachedChannel(ChannelImport shared) : channel_(std::move(shared)) {}
  explicit AttachedChannel(std::unique_ptr<RemoteServer> remote) : channel_(std::move(remote)) {}

  /// What a back end serves.
  [[nodiscard]] const ChannelImport& import() const noexcept {
    const auto* const remote = std::get_if<std::unique_ptr<RemoteServer>>(&channel_);
    return remote != nullptr ? (*remote)->channel() : *std::get_if<ChannelImport>(&channel_);
  }
  /// Null where the server is on this machine.
  [[nodiscard]] RemoteServer* remote() const noexcept {
    const auto* const remote = std::get_if<std::unique_ptr<RemoteServer>>(&channel_);
    return remote != nullptr ? remote->get() : nullptr;
  }

 private:
  std::variant<ChannelImport, std::unique_ptr<RemoteServer>> channel_;
};

}  // namespace offload::comch
