#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comch/carrier.hpp"
#include "comch/server_end.hpp"

namespace offload::comch {

/// The server's half of a channel to a worker on another machine. In the channel's slots it stands
/// in for a worker: it sends each request as it is posted, and writes each response into its slot
/// for the consumer to find. Requests stay in their slots until then, so that the worker after this
/// one gets those that this one has not answered.
///
/// On the engine of the channel's producer and consumer.
class RemoteWorker final : CarriedEnd {
 public:
  /// `line`: to the worker's RemoteServer; `end`: what the producer works on. Throws Error.
  RemoteWorker(progress::Engine& engine, const ServerEnd& end, std::unique_ptr<Line> line);

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

  kernels::Channel channel_;
  const Cursors* cursors_;
  std::uint64_t first_;      ///< of the channel's messages, the first that goes to this worker
  std::uint64_t collected_;  ///< up to here they have been pushed
  std::uint64_t answered_;   ///< up to here their responses have come
  std::unique_ptr<std::byte[]> packed_;  ///< requests out of vectors, by slot
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace offload::comch
