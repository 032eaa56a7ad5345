#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "channel/requester.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// Represents a worker on another machine for the server's channel: it sends the content of each
/// request slot, and writes each response that arrives into its slot, where the requester finds and
/// checks it. Requests stay in their slots until then, so that the requester can move unanswered
/// ones to the next worker. While the requester uses another worker, the proxy only waits.
///
/// Uses the requester's engine and thread.
class WorkerProxy final : DataHandler {
 public:
  /// `channel`: the one that the requester uses or will move to. `endpoint`: to the worker's
  /// ServerProxy. Throws Error.
  WorkerProxy(const channel::Requester& requester, const channel::ChannelEndpoint& channel,
              std::unique_ptr<DataEndpoint> endpoint);

  /// Returns why the connection has ended; null while it has not.
  [[nodiscard]] const std::string* failure() const noexcept { return connection_->failure(); }

 private:
  bool post_sends() override;
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(view_.response(first_ + sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header, std::span<const std::byte> content) override;
  [[nodiscard]] bool awaits_content() const noexcept override {
    return slots_->view().requests == view_.requests && slots_->awaited() != 0;
  }

  const channel::SlotQueue* slots_;  ///< the requester's
  kernels::ChannelView view_;
  std::uint64_t first_;      ///< the first of the channel's slots that this worker gets
  std::uint64_t collected_;  ///< requests before this one have been sent
  std::uint64_t answered_;   ///< responses before this one have arrived
  std::unique_ptr<std::byte[]> requests_;  ///< out of packets, by slot
  std::unique_ptr<DataConnection> connection_;
};

}  // namespace offload::comch
