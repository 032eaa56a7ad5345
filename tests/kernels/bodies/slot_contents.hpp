#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/channel_layout.hpp"
#include "tests/kernels/reference.hpp"

/// Contents of slots that are batches, built as docs/reference/wire-protocol.md describes them, but
/// not by the code under test.
namespace offload::kernels::test {

inline std::vector<Octets> messages_of(const std::vector<std::uint32_t>& lengths) {
  std::vector<Octets> messages;
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    messages.push_back(random_octets(lengths[i]));
    // Neighbours of one length differ.
    if (lengths[i] != 0) messages.back().front() = static_cast<std::uint8_t>(i);
  }
  return messages;
}

/// The table of these lengths, with `payloads` behind it.
inline Octets batch_of(const std::vector<std::uint32_t>& lengths, const Octets& payloads) {
  Octets content;
  for (const std::uint32_t length : lengths) {
    content.push_back(static_cast<std::uint8_t>(length));
    content.push_back(static_cast<std::uint8_t>(length >> 8));
  }
  content.insert(content.end(), payloads.begin(), payloads.end());
  return content;
}

/// The content of a batch of requests.
inline Octets batch_of(const std::vector<Octets>& messages) {
  std::vector<std::uint32_t> lengths;
  Octets payloads;
  for (const Octets& message : messages) {
    lengths.push_back(static_cast<std::uint32_t>(message.size()));
    payloads.insert(payloads.end(), message.begin(), message.end());
  }
  return batch_of(lengths, payloads);
}

/// The content of the batch of responses: what a client gets from service `name` for each.
inline Octets frames_of(std::string_view name, const std::vector<Octets>& messages) {
  Octets frames;
  for (const Octets& message : messages) {
    const Octets payload = expected_response(name, message);
    const auto length = static_cast<std::uint32_t>(payload.size());
    for (const std::uint32_t word : {12 + length, 5U, length}) {
      for (const int shift : {24, 16, 8, 0}) {
        frames.push_back(static_cast<std::uint8_t>(word >> shift));
      }
    }
    frames.insert(frames.end(), payload.begin(), payload.end());
  }
  return frames;
}

/// Lengths of batches of `count` messages, of up to 1024 bytes, that fit a slot both ways.
inline std::vector<std::vector<std::uint32_t>> lengths_of_all_kinds(std::uint32_t count) {
  const std::uint32_t fair = std::min(1024U, kMaxBatchContent / count - 14);
  std::vector<std::vector<std::uint32_t>> all(6);
  for (std::uint32_t i = 0; i < count; ++i) {
    all[0].push_back(0);
    all[1].push_back(1 + 2 * (i % 8));  // odd: no frame is aligned as the one before
    all[2].push_back(47 + i % 3);       // about the longest digest's
    all[3].push_back(std::min(fair, i * 37 % 68));
    all[4].push_back(fair);                           // a slot that is nearly full
    all[5].push_back(i == count / 2 ? 1024 : i % 5);  // one lane has more to do than the others
  }
  return all;
}

/// A malformed batch.
struct Lie {
  const char* what;
  Octets content;
  std::uint32_t count;
};

/// Returns malformed batches, each in packets and plain, where it can be both. `max_length`: the
/// channel's, under 1000.
inline std::vector<Lie> lies(std::uint32_t max_length) {
  std::vector<Lie> all;
  for (const std::uint32_t bytes : {60U, 200U}) {
    const std::vector<std::uint32_t> right(4, bytes);
    const auto with = [&](std::uint32_t first) {
      auto lengths = right;
      lengths[0] = first;
      return batch_of(lengths, random_octets(std::size_t{4} * bytes));
    };
    all.push_back({"a length one short", with(bytes - 1), 4});
    all.push_back({"a length one over", with(bytes + 1), 4});
    all.push_back({"a length far over", with(0xffff), 4});
    all.push_back({"a table longer than it is", with(bytes), 5});
    all.push_back({"a table shorter than it is", with(bytes), 3});
    // 16 bits of the sum are right.
    all.push_back({"a sum that overflows",
                   batch_of({0x8000, 0x8000, bytes, bytes}, random_octets(std::size_t{2} * bytes)),
                   4});
    all.push_back({"more messages than a batch may have",
                   batch_of(std::vector<std::uint32_t>(65, bytes / 60),
                            random_octets(std::size_t{65} * (bytes / 60))),
                   65});
  }
  all.push_back({"nothing but lengths", batch_of(std::vector<std::uint32_t>(64, 0xffff), {}), 64});
  all.push_back({"half a table", Octets(127), 64});
  all.push_back({"half a length", Octets(1), 1});
  all.push_back({"a table beyond the packets", Octets(100), 51});
  all.push_back({"a message over the limit",
                 batch_of({3, max_length + 1, 3}, random_octets(max_length + 7)), 3});
  all.push_back(
      {"the last over the limit", batch_of({3, max_length + 1}, random_octets(max_length + 4)), 2});
  return all;
}

}  // namespace offload::kernels::test
