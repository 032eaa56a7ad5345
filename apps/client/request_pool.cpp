#include "apps/client/request_pool.hpp"

#include <algorithm>
#include <random>

#include "protocol/frame.hpp"

namespace offload::client {
namespace {

/// Enough requests to detect mixed-up responses at once, few enough that small ones stay in the
/// cache.
constexpr std::size_t kCount = 256;
constexpr std::size_t kMemory = std::size_t{64} << 20;
/// With a single request, a response to the wrong request could not be detected.
constexpr std::size_t kMinCount = 2;

void fill(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % sizeof word == 0) word = random();
    bytes[i] = static_cast<std::byte>(word & 0xff);
    word >>= 8;
  }
}

}  // namespace

RequestPool::RequestPool(std::size_t request_length, std::size_t response_length)
    : request_frame_size_(protocol::kFrameHeaderSize + request_length),
      response_length_(response_length),
      capacity_(static_cast<std::uint32_t>(
          std::clamp(kMemory / (request_frame_size_ + response_length_), kMinCount, kCount))) {
  frames_.reserve(capacity_ * request_frame_size_);
  responses_.reserve(capacity_ * response_length_);
}

void RequestPool::add(std::span<const std::byte> request, std::span<const std::byte> response) {
  const auto frame = protocol::make_frame(protocol::MessageId::client_request, request);
  frames_.insert(frames_.end(), frame.begin(), frame.end());
  responses_.insert(responses_.end(), response.begin(), response.end());
  ++count_;
}

RequestPool RequestPool::same(std::span<const std::byte> text,
                              std::span<const std::byte> response) {
  RequestPool pool(text.size(), response.size());
  while (pool.count_ < pool.capacity_) pool.add(text, response);
  return pool;
}

RequestPool RequestPool::random(std::size_t size, Service service) {
  std::mt19937_64 random;  // NOLINT(cert-msc51-cpp): the same seed every time, on purpose
  std::vector<std::byte> request(size);
  fill(request, random);
  auto response = expected_response(service, request);
  RequestPool pool(size, response.size());
  for (;;) {
    pool.add(request, response);
    if (pool.count_ == pool.capacity_) return pool;
    fill(request, random);
    response = expected_response(service, request);
  }
}

}  // namespace offload::client
