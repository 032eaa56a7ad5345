#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/vector_access.hpp"

/// The CPU's fast paths into and out of the self-validating form.
namespace offload::comch {

/// For a payload out of vectors. Not a power of two: slots would share cache sets.
inline constexpr std::size_t kPackedRoom = kernels::kMaxPacked + kernels::kSlack;

/// How many slots ahead of its work a side fetches the lines that the other had last: as measured,
/// a tenth more messages, and with 8 a GPU's writes suffer.
inline constexpr std::uint64_t kFetchAhead = 4;

/// Fetches the lines of a short message: to read them (0) or to write them (1).
template <int for_writing>
void fetch_ahead(const kernels::Part& part) noexcept {
  constexpr std::size_t kVectorsPerLine = 64 / sizeof(kernels::Vector);
  __builtin_prefetch(part.vectors, for_writing);
  __builtin_prefetch(part.vectors + kVectorsPerLine, for_writing);
}

/// Writes a message of `length` <= kMaxPacked bytes; the header, which publishes it, last.
inline void write_packed(kernels::Vector* vectors, std::uint32_t turn, const std::byte* payload,
                         std::uint32_t length, std::uint32_t status = 0) noexcept {
  using kernels::kVectorData;
  kernels::Vector* vector = vectors + 1;
  std::uint32_t offset = 0;
#if !defined(OFFLOAD_PORTABLE_VECTORS)
  // 16 bytes are read where 12 are meant, so up to the last that are all payload.
  const __m128i data = _mm_set_epi32(0, -1, -1, -1);
  const __m128i turn_bits = _mm_set_epi32(static_cast<int>(turn), 0, 0, 0);
  for (; offset + sizeof(kernels::Vector) <= length; offset += kVectorData, ++vector) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(payload + offset));
    kernels::store_vector_bits(vector, _mm_or_si128(_mm_and_si128(bytes, data), turn_bits));
  }
#endif
  for (; offset < length; offset += kVectorData, ++vector) {
    kernels::Vector tail{{}, turn};
    std::memcpy(tail.data, payload + offset, std::min(kVectorData, length - offset));
    kernels::store_vector(vector, tail);
  }
  kernels::store_vector(vectors, {{length, status, 0}, turn});
}

/// Reads the `length` <= kMaxPacked bytes of the message `turn` to `to`, which has room for
/// kSlack bytes more. False if not all of it is there yet.
inline bool read_packed(const kernels::Vector* vectors, std::uint32_t turn, std::byte* to,
                        std::uint32_t length) noexcept {
  const kernels::Vector* const end = vectors + kernels::vectors_for(length);
#if !defined(OFFLOAD_PORTABLE_VECTORS)
  const __m128i expected = _mm_set_epi32(static_cast<int>(turn), 0, 0, 0);
  __m128i differences = _mm_setzero_si128();
  for (const auto* vector = vectors + 1; vector != end; ++vector, to += kernels::kVectorData) {
    const __m128i bits = kernels::load_vector_bits(vector);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bits);  // the next 12 overwrite the turn
    differences = _mm_or_si128(differences, _mm_xor_si128(bits, expected));
  }
  return _mm_cvtsi128_si32(_mm_srli_si128(differences, kernels::kVectorData)) == 0;
#else
  for (const auto* at = vectors + 1; at != end; ++at, to += kernels::kVectorData) {
    const kernels::Vector vector = kernels::load_vector(at);
    if (vector.turn != turn) return false;
    std::memcpy(to, vector.data, kernels::kVectorData);
  }
  return true;
#endif
}

}  // namespace offload::comch
