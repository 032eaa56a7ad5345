#pragma once

#include <gtest/gtest.h>

#include "tests/comch/conformance/ends.hpp"
#include "tests/comch/conformance/transport.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::comch::conformance {

/// Tests of all transports: a server, and workers that attach and detach.
class Sessions : public testing::TestWithParam<TestedTransport> {
 protected:
  Sessions() : server_(std::in_place, GetParam().address(folder_.path())) {}

  [[nodiscard]] bool has_keys() const { return server_->address().takes_key(); }
  [[nodiscard]] Address address_with(std::shared_ptr<Keyring> keys) const {
    Address address = server_->address();
    address.keys = std::move(keys);
    return address;
  }

  /// Posts as many of these messages as there is room for; they are flushed together.
  std::size_t post(std::uint32_t channel, std::span<const support::Bytes> messages) {
    return server_->with([&](ServerSide& side) {
      std::size_t count = 0;
      auto& requester = side.ends[channel]->server.requester;
      while (count != messages.size() &&
             requester.post(messages[count], channel::test::Server::somebody()).ok()) {
        ++count;
      }
      return count;
    });
  }
  /// Returns the responses to `count` requests, in order; fewer if they do not come in time.
  std::vector<support::Bytes> responses(std::uint32_t channel, std::size_t count) {
    EXPECT_TRUE(server_->eventually(
        [&](ServerSide& side) { return side.ends[channel]->responses.size() >= count; }));
    return server_->with([&](ServerSide& side) {
      auto& all = side.ends[channel]->responses;
      std::vector<support::Bytes> taken(all.begin(), all.end());
      all.clear();
      return taken;
    });
  }
  /// Checks that each request is answered correctly, once and in order, on every channel.
  void expect_served(std::size_t messages_of_a_channel, std::size_t length, std::uint32_t seed);
  /// Checks the same for more requests than fit at once, which are posted as they fit.
  void expect_all_served(const std::vector<support::Bytes>& requests);

  support::LogCapture log_;
  support::TempDir folder_;
  std::optional<ServerSide> server_;
};

/// Violations that a worker must not succeed with if it shares no memory with the server.
class Lies : public Sessions {};

}  // namespace offload::comch::conformance
