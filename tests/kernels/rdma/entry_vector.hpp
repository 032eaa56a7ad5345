#pragma once

#include <cstdint>
#include <cstring>
#include <istream>
#include <iterator>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/rdma/wqe.hpp"

/// A request and the entry that libmlx5 makes from it, as a line of text.
namespace offload::kernels::rdma::test {

struct EntryVector {
  std::uint64_t position = 0;  ///< of the entry's block; its lower 16 bits count
  std::uint32_t queue = 0;
  SendWork work;
  std::vector<LocalBuffer> buffers;
  std::vector<std::uint8_t> inline_data;
  std::vector<std::uint8_t> entry;

  /// Returns `work`, with its pointers to the data here.
  [[nodiscard]] SendWork request() const {
    SendWork request = work;
    request.buffers = buffers.data();
    request.buffer_count = static_cast<std::uint32_t>(buffers.size());
    request.inline_data = inline_data.data();
    request.inline_length = static_cast<std::uint32_t>(inline_data.size());
    return request;
  }
};

inline std::string hex_of(const std::vector<std::uint8_t>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = bytes.empty() ? "-" : "";
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

inline std::vector<std::uint8_t> bytes_of(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// Writes: position queue opcode flags immediate raddr rkey compare_add swap, inline data, the
/// number of buffers with address, length and lkey of each, and the entry; numbers in hexadecimal.
inline std::ostream& operator<<(std::ostream& out, const EntryVector& vector) {
  const SendWork& work = vector.work;
  out << std::hex << vector.position << ' ' << vector.queue << ' '
      << static_cast<unsigned>(work.opcode) << ' ' << unsigned{work.flags} << ' ' << work.immediate
      << ' ' << work.remote.address << ' ' << work.remote.rkey << ' ' << work.compare_add << ' '
      << work.swap << ' ' << hex_of(vector.inline_data) << ' ' << vector.buffers.size();
  for (const LocalBuffer& buffer : vector.buffers) {
    out << ' ' << buffer.address << ' ' << buffer.length << ' ' << buffer.lkey;
  }
  return out << ' ' << hex_of(vector.entry) << '\n';
}

inline std::istream& operator>>(std::istream& in, EntryVector& vector) {
  unsigned opcode = 0;
  unsigned flags = 0;
  std::string data;
  std::size_t count = 0;
  vector = {};
  SendWork& work = vector.work;
  in >> std::hex >> vector.position >> vector.queue >> opcode >> flags >> work.immediate >>
      work.remote.address >> work.remote.rkey >> work.compare_add >> work.swap >> data >> count;
  if (!in || count > kMostSegments) return in;
  work.opcode = static_cast<Opcode>(opcode);
  work.flags = static_cast<std::uint8_t>(flags);
  vector.inline_data = bytes_of(data);
  vector.buffers.resize(count);
  for (LocalBuffer& buffer : vector.buffers) in >> buffer.address >> buffer.length >> buffer.lkey;
  in >> data;
  vector.entry = bytes_of(data);
  return in;
}

/// Returns a random request for which libmlx5 has an equal one, with at most `most_inline` inline
/// bytes.
inline EntryVector any_request(std::mt19937_64& random, std::uint32_t most_inline) {
  constexpr Opcode kAll[] = {
      Opcode::rdma_write, Opcode::rdma_write_with_imm, Opcode::send,     Opcode::send_with_imm,
      Opcode::rdma_read,  Opcode::compare_swap,        Opcode::fetch_add};
  EntryVector vector;
  SendWork& work = vector.work;
  work.opcode = kAll[random() % std::size(kAll)];
  for (const std::uint8_t flag : {kSignaled, kSolicited, kFence}) {
    if (random() % 2 == 0) work.flags |= flag;
  }
  const bool with_imm =
      work.opcode == Opcode::send_with_imm || work.opcode == Opcode::rdma_write_with_imm;
  if (with_imm) work.immediate = static_cast<std::uint32_t>(random());
  if (has_remote(work.opcode)) work.remote = {random(), static_cast<std::uint32_t>(random())};
  if (is_atomic(work.opcode)) work.compare_add = random();
  if (work.opcode == Opcode::compare_swap) work.swap = random();
  const bool reads = work.opcode == Opcode::rdma_read || is_atomic(work.opcode);
  if (!reads && random() % 2 == 0) {
    vector.inline_data.resize(1 + random() % most_inline);
    for (auto& byte : vector.inline_data) byte = static_cast<std::uint8_t>(random());
    return vector;
  }
  vector.buffers.resize(is_atomic(work.opcode) ? 1 : random() % 6);
  for (LocalBuffer& buffer : vector.buffers) {
    const auto length = static_cast<std::uint32_t>(random() >> 34);
    buffer = {random(),
              is_atomic(work.opcode) ? 8
              : random() % 4 == 0    ? 0
                                     : length,
              static_cast<std::uint32_t>(random())};
  }
  return vector;
}

}  // namespace offload::kernels::rdma::test
