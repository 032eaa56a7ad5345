#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comch/transport/data_connection.hpp"
#include "tests/support/bytes.hpp"

namespace offload::comch::test {

/// Records what a data connection calls, for the server's end of a channel.
class RecordingHandler final : public DataHandler {
 public:
  explicit RecordingHandler(const kernels::ChannelView& channel) : channel_(channel) {}

  bool post_sends() override { return false; }
  void on_sent(std::size_t count) override { sent += count; }
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(channel_.response(sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header,
                   std::span<const std::byte> content) override {
    taken.push_back(support::copy_of(content));
    counts.push_back(header.count);
    return takes;
  }
  void on_receives_done() override { ++batches; }

  bool takes = true;  ///< what on_received() returns
  std::size_t sent = 0;
  std::size_t batches = 0;
  std::vector<support::Bytes> taken;
  std::vector<std::uint32_t> counts;  ///< of their messages

 private:
  kernels::ChannelView channel_;
};

}  // namespace offload::comch::test
