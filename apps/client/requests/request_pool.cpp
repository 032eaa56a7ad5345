#include "apps/client/requests/request_pool.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.hpp"
#include "protocol/frame.hpp"

namespace offload::client {
namespace {

/// Enough requests to detect mixed-up responses at once, few enough that small ones stay in the
/// cache.
constexpr std::size_t kMostOfClass = 256;
/// With a single request, a response to the wrong request could not be detected.
constexpr std::size_t kLeastOfClass = 2;
constexpr std::size_t kUsualMemory = std::size_t{64} << 20;
constexpr std::size_t kMostMemory = std::size_t{1} << 30;

void fill_random(std::span<std::byte> bytes, std::mt19937_64& random) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % sizeof word == 0) word = random();
    bytes[i] = static_cast<std::byte>(word & 0xff);
    word >>= 8;
  }
}

void fill(std::span<std::byte> bytes, const Payload& payload, std::mt19937_64& random) {
  switch (payload.kind) {
    case Payload::Kind::random: return fill_random(bytes, random);
    case Payload::Kind::constant: return void(std::ranges::fill(bytes, payload.value));
    case Payload::Kind::file: break;
  }
  const auto& content = payload.content;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = content[i % content.size()];
}

/// Returns the number of bytes of the pool's memory for a request of `size` bytes.
std::size_t cost_of(std::size_t size) {
  return protocol::kFrameHeaderSize + 2 * size;
}

/// The number of requests of each class.
std::size_t count_of_classes(const SizeMix& sizes) {
  std::size_t cost = 0;
  for (const SizeShare& size : sizes) cost += cost_of(size.bytes);
  if (cost > kMostMemory / kLeastOfClass) {
    throw core::Error(
        core::ErrorCode::no_memory,
        fmt::format(
            "one request of each of {} sizes needs {} MiB of memory; the client allows 1 GiB",
            sizes.size(), cost >> 20));
  }
  return std::clamp(kUsualMemory / cost, kLeastOfClass, kMostOfClass);
}

}  // namespace

void RequestPool::begin_class(std::uint32_t count, std::size_t frame_size,
                              std::size_t response_size, double share_end) {
  classes_.push_back({static_cast<std::uint32_t>(entries_.size()), count, share_end});
  frames_.emplace_back().reserve(count * frame_size);
  responses_.emplace_back().reserve(count * response_size);
  shortest_frame_ = std::min(shortest_frame_, frame_size);
  longest_frame_ = std::max(longest_frame_, frame_size);
  longest_response_ = std::max(longest_response_, response_size);
}

/// To the class that was begun last.
void RequestPool::add(std::span<const std::byte> request, std::span<const std::byte> response) {
  const auto frame = protocol::make_frame(protocol::MessageId::client_request, request);
  auto& frames = frames_.back();
  auto& responses = responses_.back();
  entries_.push_back({frames.data() + frames.size(), responses.data() + responses.size(),
                      static_cast<std::uint32_t>(frame.size()),
                      static_cast<std::uint32_t>(response.size())});
  frames.insert(frames.end(), frame.begin(), frame.end());
  responses.insert(responses.end(), response.begin(), response.end());
}

RequestPool RequestPool::same(std::span<const std::byte> text,
                              std::span<const std::byte> response) {
  const std::size_t frame_size = protocol::kFrameHeaderSize + text.size();
  const std::size_t count =
      std::clamp(kUsualMemory / (frame_size + response.size()), kLeastOfClass, kMostOfClass);
  RequestPool pool;
  pool.begin_class(static_cast<std::uint32_t>(count), frame_size, response.size(), 1);
  for (std::size_t i = 0; i < count; ++i) pool.add(text, response);
  return pool;
}

RequestPool RequestPool::of_sizes(const SizeMix& sizes, const Payload& payload, Service service) {
  const std::size_t count = count_of_classes(sizes);
  const double weights =
      std::accumulate(sizes.begin(), sizes.end(), 0.0,
                      [](double sum, const SizeShare& share) { return sum + share.weight; });
  std::mt19937_64 random;  // NOLINT(cert-msc51-cpp): the same seed every time, on purpose
  RequestPool pool;
  double share = 0;
  for (const SizeShare& size : sizes) {
    share += size.weight / weights;
    std::vector<std::byte> request(size.bytes);
    for (std::size_t i = 0; i < count; ++i) {
      fill(request, payload, random);
      const auto response = expected_response(service, request);
      if (i == 0) {
        pool.begin_class(static_cast<std::uint32_t>(count),
                         protocol::kFrameHeaderSize + request.size(), response.size(), share);
      }
      pool.add(request, response);
    }
  }
  return pool;
}

std::uint32_t RequestPool::class_at(double draw) const noexcept {
  const auto found =
      std::upper_bound(classes_.begin(), classes_.end() - 1, draw,
                       [](double value, const Class& each) { return value < each.share_end; });
  return static_cast<std::uint32_t>(found - classes_.begin());
}

std::uint32_t RequestPool::request_length(std::uint32_t number) const noexcept {
  return entries_[number].frame_size - static_cast<std::uint32_t>(protocol::kFrameHeaderSize);
}

}  // namespace offload::client
