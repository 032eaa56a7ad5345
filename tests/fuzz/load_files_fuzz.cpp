#include <sstream>
#include <string>

#include "apps/client/requests/payload.hpp"
#include "apps/client/requests/recording.hpp"
#include "apps/client/requests/request_kind.hpp"
#include "apps/client/requests/schedule.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "core/error.hpp"
#include "tests/fuzz/input.hpp"

/// A text as everything that offload-client reads about times, sizes and bytes.
namespace offload::fuzz {
namespace {

void require_mix(const client::SizeMix& mix) {
  require(!mix.empty() && mix.size() <= client::kMostSizes, "a mix has a bounded number of sizes");
  for (std::size_t i = 0; i < mix.size(); ++i) {
    require(mix[i].bytes <= client::kLongestMessage, "no size is over the protocol's");
    require(mix[i].weight > 0, "each size has a share");
    require(i == 0 || mix[i - 1].bytes != mix[i].bytes, "each size is there once");
  }
}

void require_schedule(const client::Schedule& schedule) {
  require(!schedule.requests.empty(), "a schedule has requests");
  for (std::size_t i = 0; i < schedule.requests.size(); ++i) {
    const auto& request = schedule.requests[i];
    require(request.size_class < schedule.sizes.size(), "each request has a size");
    require(request.offset >= core::Duration{}, "no request is before the start");
    require(i == 0 || schedule.requests[i - 1].offset <= request.offset, "requests are in order");
  }
}

void run(Input input) {
  const auto bytes = input.rest();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto mix = client::parse_mix(text)) require_mix(*mix);
  if (const auto mix = client::parse_uniform_sizes(text)) require_mix(*mix);
  (void)client::Payload::parse(text);
  (void)client::RequestKind::parse(text);
  (void)client::Verification::parse(text);
  try {
    const auto recording = client::Recording::parse({bytes.begin(), bytes.end()}, "requests");
    require(!recording.pairs.empty(), "a recording has requests");
  } catch (const client::InvalidInput&) {  // refused
  }
  try {
    std::istringstream stream(text);
    require_mix(client::parse_sizes(stream, "sizes"));
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message, "a wrong file of sizes is refused");
  }
  try {
    std::istringstream stream(text);
    require_schedule(client::Schedule::parse(stream, "schedule"));
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message, "a wrong schedule is refused");
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
