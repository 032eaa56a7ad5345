#include "kernels/module/payload.hpp"
#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::block_within;
using offload::kernels::Request;
using offload::kernels::swap_bytes;

/// Answers with the request's SHA-256 (FIPS 180-4), 32 bytes. Each step takes the one before: a
/// message is one lane's work, and a batch has as many messages under way as it has lanes.
struct Sha256 {
  static constexpr const char* kName = "sha256";
  static constexpr std::uint32_t kLanes = 1;

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t) { return 32; }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    Digest digest{};
    // The lanes of a warp do the same in the time of one. The other warps of a block would only
    // take that away from it.
    if (group.lane() < 32) digest = digest_of(request);
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i) {
      digest.words[i] = swap_bytes(group.from_first(digest.words[i]));
    }
    response.fill(group, [&](std::uint32_t offset) {
      Block block{};
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) block.words[i] = digest.word(offset / 4 + i);
      return block;
    });
  }

 private:
  static constexpr std::uint32_t kChunk = 64;

  struct Digest {
    std::uint32_t words[8];

    /// Zero beyond the last. By comparing, as an index that is no constant would take the words out
    /// of a GPU's registers.
    [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t word(std::uint32_t index) const {
      std::uint32_t found = 0;
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < 8; ++i) found = i == index ? words[i] : found;
      return found;
    }
  };

  OFFLOAD_HOST_DEVICE static Digest digest_of(const Request& request) {
    Digest digest{{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                   0x1f83d9ab, 0x5be0cd19}};
    const std::uint32_t length = request.length();
    // The message is followed by a bit that is 1, zeros, and 8 bytes with the message's bits.
    const std::uint32_t chunks = (length + 8) / kChunk + 1;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      std::uint32_t words[16];
      const std::uint32_t begin = chunk * kChunk;
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) {
        const Block block = block_within(request, begin + 16 * i);
        OFFLOAD_UNROLL
        for (std::uint32_t j = 0; j < 4; ++j) words[4 * i + j] = swap_bytes(block.words[j]);
      }
      if (length - begin < kChunk) {  // not so before the message's last bytes, nor behind them
        const std::uint32_t end = length - begin;
        OFFLOAD_UNROLL
        for (std::uint32_t i = 0; i < 16; ++i) {
          if (i == end / 4) words[i] |= 0x8000'0000U >> (8 * (end % 4));
        }
      }
      if (chunk + 1 == chunks) {
        words[14] = length >> 29;
        words[15] = length << 3;
      }
      add_chunk(digest, words);
    }
    return digest;
  }

  OFFLOAD_HOST_DEVICE static void add_chunk(Digest& digest, std::uint32_t (&words)[16]) {
    constexpr std::uint32_t kConstants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    std::uint32_t s[8];  // a to h of the standard
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i) s[i] = digest.words[i];
    OFFLOAD_UNROLL
    for (std::uint32_t t = 0; t < 64; ++t) {
      std::uint32_t& word = words[t % 16];
      if (t >= 16) {
        const std::uint32_t before_15 = words[(t + 1) % 16];
        const std::uint32_t before_2 = words[(t + 14) % 16];
        word += (rotated(before_15, 7) ^ rotated(before_15, 18) ^ (before_15 >> 3)) +
                words[(t + 9) % 16] +
                (rotated(before_2, 17) ^ rotated(before_2, 19) ^ (before_2 >> 10));
      }
      const std::uint32_t first = s[7] +
                                  (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                                  ((s[4] & s[5]) ^ (~s[4] & s[6])) + kConstants[t] + word;
      const std::uint32_t second = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                                   ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      for (std::uint32_t i = 7; i > 0; --i) s[i] = s[i - 1];
      s[4] += first;
      s[0] = first + second;
    }
    OFFLOAD_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i) digest.words[i] += s[i];
  }

  OFFLOAD_HOST_DEVICE static std::uint32_t rotated(std::uint32_t word, std::uint32_t bits) {
    return word >> bits | word << (32 - bits);
  }
};

OFFLOAD_SERVICE_MODULE(Sha256);
