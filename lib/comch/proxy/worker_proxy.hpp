#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "channel/requester.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// A worker on another machine, as the server's channel sees it: in place of the worker it takes
/// what each request slot carries and sends it, and writes each response that comes into its slot
/// for the requester to find, which checks it. Requests stay in their slots until then, so that the
/// requester can move those that this one has not answered to the next worker. While the requester
/// is with another worker, it only waits.
///
/// On the requester's engine and thread.
class WorkerProxy final : DataHandler {
 public:
  /// `channel`: where the requester is, or will move to. `endpoint`: to the worker's ServerProxy.
  /// Throws Error.
  WorkerProxy(const channel::Requester& requester, const channel::Endpoint& channel,
              std::unique_ptr<DataEndpoint> endpoint);

  /// Why the connection has ended; null while it has not.
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
  std::uint64_t first_;      ///< of the channel's slots, the first that goes to this worker
  std::uint64_t collected_;  ///< up to here requests have been sent
  std::uint64_t answered_;   ///< up to here responses have come
  std::unique_ptr<std::byte[]> requests_;  ///< out of packets, by slot
  std::unique_ptr<DataConnection> connection_;
};

}  // namespace offload::comch
