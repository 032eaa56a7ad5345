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
/// The room for responses that is allocated at once.
constexpr std::size_t kResponseBlock = std::size_t{64} << 10;

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

void RequestPool::begin_class(std::uint32_t count, std::size_t frame_size, double share_end) {
  classes_.push_back({static_cast<std::uint32_t>(entries_.size()), count, share_end});
  frames_.emplace_back().reserve(count * frame_size);
}

/// To the class that was begun last, which has room for it.
void RequestPool::add(std::span<const std::byte> request, const Expected& response) {
  add_entry(protocol::make_frame(protocol::MessageId::client_request, request), keep(response));
}

/// Adds request `number` once more, to the class that was begun last.
void RequestPool::repeat(std::uint32_t number) {
  add_entry(frames(number, 1), entries_[number].response);
}

/// `frame` may be in the pool, as the class has room for it and so its memory stays in place.
void RequestPool::add_entry(std::span<const std::byte> frame, Expected response) {
  auto& memory = frames_.back();
  const std::size_t begin = memory.size();
  memory.resize(begin + frame.size());
  std::ranges::copy(frame, memory.begin() + static_cast<std::ptrdiff_t>(begin));
  entries_.push_back({memory.data() + begin, response, static_cast<std::uint32_t>(frame.size())});
  shortest_frame_ = std::min(shortest_frame_, frame.size());
  longest_frame_ = std::max(longest_frame_, frame.size());
  const bool is_any = response.length == Expected::kAnyLength;
  longest_response_ =
      std::max<std::size_t>(longest_response_, is_any ? kLongestMessage : response.length);
}

/// Returns `response` with a copy of its bytes that stays; that of the last response if it is the
/// same.
Expected RequestPool::keep(const Expected& response) {
  if (response.bytes == nullptr) return response;
  const std::span bytes(response.bytes, response.length);
  if (!entries_.empty()) {
    const Expected& last = entries_.back().response;
    if (std::ranges::equal(bytes, std::span(last.bytes, last.length))) return last;
  }
  response_bytes_ += bytes.size();
  if (response_bytes_ > kMostMemory) {
    throw core::Error(core::ErrorCode::no_memory,
                      "the expected responses need more than 1 GiB of memory; send fewer or "
                      "shorter requests");
  }
  if (responses_.empty() ||
      responses_.back().capacity() - responses_.back().size() < bytes.size()) {
    responses_.emplace_back().reserve(std::max(bytes.size(), kResponseBlock));
  }
  auto& memory = responses_.back();
  const auto* const place = memory.data() + memory.size();
  memory.insert(memory.end(), bytes.begin(), bytes.end());
  return std::span(place, bytes.size());
}

RequestPool RequestPool::same(std::span<const std::byte> text, const Expected& response) {
  const std::size_t frame_size = protocol::kFrameHeaderSize + text.size();
  const std::size_t count = std::clamp(kUsualMemory / frame_size, kLeastOfClass, kMostOfClass);
  RequestPool pool;
  pool.begin_class(static_cast<std::uint32_t>(count), frame_size, 1);
  for (std::size_t i = 0; i < count; ++i) pool.add(text, response);
  return pool;
}

RequestPool RequestPool::of_sizes(const SizeMix& sizes, const Payload& payload, Answers answers) {
  const std::size_t count = count_of_classes(sizes);
  const std::size_t different = std::min(count, answers.most_of_class(sizes.size()));
  const double weights =
      std::accumulate(sizes.begin(), sizes.end(), 0.0,
                      [](double sum, const SizeShare& share) { return sum + share.weight; });
  std::mt19937_64 random;  // NOLINT(cert-msc51-cpp): the same seed every time, on purpose
  RequestPool pool;
  double share = 0;
  for (const SizeShare& size : sizes) {
    share += size.weight / weights;
    std::vector<std::byte> request(size.bytes);
    const auto first = static_cast<std::uint32_t>(pool.entries_.size());
    pool.begin_class(static_cast<std::uint32_t>(count), protocol::kFrameHeaderSize + request.size(),
                     share);
    for (std::size_t i = 0; i < count; ++i) {
      if (i >= different) {
        pool.repeat(first + static_cast<std::uint32_t>(i % different));
        continue;
      }
      fill(request, payload, random);
      pool.add(request, answers.to(request));
    }
  }
  return pool;
}

RequestPool RequestPool::recorded(const Recording& recording, Answers answers) {
  const auto& pairs = recording.pairs;
  const auto size_of = [](const Recording::Pair& pair) {
    return protocol::kFrameHeaderSize + pair.request.size();
  };
  std::size_t bytes = 0;
  for (const auto& pair : pairs) bytes += size_of(pair);
  const bool is_one_size = std::ranges::all_of(
      pairs, [&](const auto& pair) { return size_of(pair) == size_of(pairs.front()); });
  // A batch is not longer than a class, so a class of a few requests has them several times.
  const std::size_t rounds =
      is_one_size
          ? std::clamp<std::size_t>(std::min(kMostOfClass / pairs.size(), kUsualMemory / bytes), 1,
                                    kMostOfClass)
          : 1;
  const auto count = static_cast<std::uint32_t>(pairs.size());
  RequestPool pool;
  pool.begin_class(is_one_size ? static_cast<std::uint32_t>(count * rounds) : 1, 0, 1);
  pool.frames_.back().reserve(bytes * rounds);
  for (const auto& pair : pairs) {
    const Expected& expected =
        answers.are_recorded() ? Expected(pair.response) : answers.to(pair.request);
    pool.add(pair.request, expected);
  }
  for (std::uint32_t i = 0; i < count * (rounds - 1); ++i) pool.repeat(i);
  if (is_one_size) return pool;
  pool.classes_.clear();
  for (std::uint32_t i = 0; i < count; ++i) pool.classes_.push_back({i, 1, (i + 1.0) / count});
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
