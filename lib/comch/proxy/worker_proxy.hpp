#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "channel/server_end.hpp"
#include "comch/transport/data_connection.hpp"

namespace offload::comch {

/// The server's half of a channel to a worker on another machine. In the channel's slots it stands
/// in for a worker: it sends each request as it is posted, and writes each response into its slot
/// for the consumer to find. Requests stay in their slots until then, so that the worker after this
/// one gets those that this one has not answered.
///
/// On the engine of the channel's producer and consumer.
class WorkerProxy final : DataHandler {
 public:
  /// `endpoint`: to the worker's ServerProxy; `end`: what the producer works on. Throws Error.
  WorkerProxy(progress::Engine& engine, const channel::ServerEnd& end,
              std::unique_ptr<DataEndpoint> endpoint);

  /// Why the line has ended; null while it has not.
  [[nodiscard]] const std::string* failure() const noexcept {
    return connection_->failed() ? &connection_->reason() : nullptr;
  }

 private:
  bool post_sends() override;
  void on_sent(std::size_t) override {}
  std::byte* receive_buffer(std::uint64_t sequence) override;
  bool on_received(const protocol::DataHeader& header, std::span<const std::byte> payload) override;
  void on_receives_done() override {}

  kernels::ChannelView channel_;
  const channel::Cursors* cursors_;
  std::uint64_t first_;      ///< of the channel's messages, the first that goes to this worker
  std::uint64_t collected_;  ///< up to here they have been pushed
  std::uint64_t answered_;   ///< up to here their responses have come
  std::unique_ptr<std::byte[]> packed_;  ///< requests out of packets, by slot
  std::unique_ptr<DataConnection> connection_;
};

}  // namespace offload::comch
