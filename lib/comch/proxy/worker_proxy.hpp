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
  /// `line`: to the worker's ServerProxy; `end`: what the producer works on. Throws Error.
  WorkerProxy(progress::Engine& engine, const channel::ServerEnd& end,
              std::unique_ptr<DataEndpoint> line);

  /// Why the line has ended; null while it has not.
  [[nodiscard]] const std::string* failure() const noexcept {
    return carrier_->failed() ? &carrier_->reason() : nullptr;
  }

 private:
  bool collect() override;
  void on_sent(std::size_t) override {}
  std::byte* room(std::uint64_t sequence) override;
  [[nodiscard]] bool is_due(const protocol::DataHeader& header) const override;
  bool take(const protocol::DataHeader& header, std::span<const std::byte> payload) override;
  void on_taken() override {}

  kernels::ChannelView channel_;
  const channel::Cursors* cursors_;
  std::uint64_t first_;      ///< of the channel's messages, the first that goes to this worker
  std::uint64_t collected_;  ///< up to here they have been pushed
  std::uint64_t answered_;   ///< up to here their responses have come
  std::unique_ptr<std::byte[]> packed_;  ///< requests out of packets, by slot
  std::unique_ptr<DataConnection> carrier_;
};

}  // namespace offload::comch
