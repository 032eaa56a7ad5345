#include <algorithm>
#include <cstring>

#include "softcard/card/card.hpp"

/// Requests to queue pairs of other cards, and theirs to the ones here.
namespace offload::rdma::model {
namespace {

using kernels::rdma::is_atomic;
using kernels::rdma::LocalBuffer;
using kernels::rdma::Opcode;

/// No request has more bytes.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;

/// Returns whether a request of a card can have this operation.
bool is_request(Opcode opcode) {
  switch (opcode) {
    case Opcode::rdma_write:
    case Opcode::rdma_write_with_imm:
    case Opcode::send:
    case Opcode::send_with_imm:
    case Opcode::rdma_read:
    case Opcode::compare_swap:
    case Opcode::fetch_add: return true;
    default: return false;
  }
}

bool reads(Opcode opcode) {
  return opcode == Opcode::rdma_read || is_atomic(opcode);
}

std::uint64_t length_of_part(std::uint64_t total, std::uint32_t part) {
  return std::min(kPartBytes, total - part * kPartBytes);
}

std::uint32_t parts_of(std::uint64_t total) {
  return std::max(static_cast<std::uint32_t>((total + kPartBytes - 1) / kPartBytes), 1U);
}

std::vector<std::byte> datagram_of(const DatagramHeader& header, std::span<const std::byte> bytes) {
  std::vector<std::byte> datagram(sizeof header + bytes.size());
  std::memcpy(datagram.data(), &header, sizeof header);
  std::copy(bytes.begin(), bytes.end(), datagram.begin() + sizeof header);
  return datagram;
}

}  // namespace

/// Does as ask_peer() if the peer is on another card.
Card::Result Card::ask_remote(QueuePair& pair, const Entry& entry, const Request& request,
                              Syndrome& syndrome) {
  if (!pair.exchange) {
    Exchange& made = pair.exchange.emplace();
    made.request = request;
    made.bytes = message_;
    if (reads(request.opcode)) made.bytes.resize(request.total);
    made.parts.resize(parts_of(request.total), Exchange::Part::unsent);
    made.progress_at = Clock::now();
  }
  Exchange& exchange = *pair.exchange;
  const auto failed = [&](Syndrome why) {
    syndrome = why;
    return Result::failed;
  };
  switch (exchange.answer) {
    case Answer::no_receive: {
      exchange.answer = Answer::done;
      for (auto& part : exchange.parts) {
        if (part == Exchange::Part::sent) part = Exchange::Part::unsent;
      }
      const Result result = without_receive(pair, exchange.rnr_timer, syndrome);
      exchange.progress_at = std::max(Clock::now(), pair.not_before);
      return result;
    }
    case Answer::invalid_request: return failed(Syndrome::remote_invalid_request);
    case Answer::no_access: return failed(Syndrome::remote_access);
    case Answer::failed: return failed(Syndrome::remote_operation);
    default: break;
  }
  if (exchange.answered != exchange.parts.size()) {
    send_parts(pair, exchange);
    if (pair.is_unreliable) {
      pair.next_psn = (pair.next_psn + 1) & kPsnMask;
      return Result::done;
    }
    if (pair.patience && Clock::now() - exchange.progress_at > *pair.patience) {
      return failed(Syndrome::transport_retries);
    }
    return Result::waits;
  }
  pair.next_psn = (pair.next_psn + 1) & kPsnMask;
  if (!reads(request.opcode)) return Result::done;
  const Syndrome why = scatter(pair, {entry.buffers, entry.work.buffer_count}, 0, exchange.bytes);
  return why == Syndrome::none ? Result::done : failed(why);
}

/// Sends as many parts as are allowed, again those that were not answered for long.
void Card::send_parts(QueuePair& pair, Exchange& exchange) {
  constexpr Clock::duration kShortest = std::chrono::milliseconds(2);
  constexpr Clock::duration kLongest = std::chrono::milliseconds(50);
  const auto now = Clock::now();
  const auto again = std::clamp(pair.patience.value_or(kLongest) / 16, kShortest, kLongest);
  const bool is_late = now - exchange.sent_at > again;
  std::uint32_t under_way = 0;
  const auto count = static_cast<std::uint32_t>(exchange.parts.size());
  for (std::uint32_t i = exchange.first; i < count; ++i) {
    auto& part = exchange.parts[i];
    if (part == Exchange::Part::answered) {
      if (i == exchange.first) ++exchange.first;
      continue;
    }
    if (!pair.is_unreliable && ++under_way > kWindow) break;
    if (part == Exchange::Part::sent && !is_late) continue;
    part = Exchange::Part::sent;
    exchange.sent_at = now;
    send_part(pair, exchange, i);
  }
}

void Card::send_part(const QueuePair& pair, const Exchange& exchange, std::uint32_t part) {
  const Request& request = exchange.request;
  DatagramHeader header;
  header.to = request.to;
  header.from = request.from;
  header.psn = request.psn;
  header.part = part;
  header.parts = static_cast<std::uint32_t>(exchange.parts.size());
  header.opcode = static_cast<std::uint8_t>(request.opcode);
  header.solicited = request.solicited ? 1 : 0;
  header.immediate = request.immediate;
  header.rkey = request.remote.rkey;
  header.remote = request.remote.address;
  header.compare_add = request.compare_add;
  header.swap = request.swap;
  header.total = request.total;
  header.offset = part * kPartBytes;
  header.length = length_of_part(request.total, part);
  std::span<const std::byte> bytes;
  if (!reads(request.opcode)) {
    bytes = std::span(exchange.bytes).subspan(header.offset, header.length);
  }
  wire_->send(*pair.remote, datagram_of(header, bytes));
}

void Card::receive(std::uint32_t address, std::span<const std::byte> datagram) {
  DatagramHeader header;
  if (wire_ == nullptr || datagram.size() < sizeof header) return;
  std::memcpy(&header, datagram.data(), sizeof header);
  const auto found = pairs_.find(header.to);
  if (header.magic != DatagramHeader::kMagic || found == pairs_.end()) return;
  QueuePair& pair = found->second;
  if (pair.remote != address || pair.peer != header.from) return;
  const auto bytes = datagram.subspan(sizeof header);
  if (header.is_answer != 0) {
    take_answer(pair, header, bytes);
  } else {
    take_request(pair, header, bytes);
  }
}

void Card::take_answer(QueuePair& pair, const DatagramHeader& header,
                       std::span<const std::byte> bytes) {
  if (!pair.exchange || pair.exchange->request.psn != header.psn) return;
  Exchange& exchange = *pair.exchange;
  if (header.part >= exchange.parts.size()) return;
  auto& part = exchange.parts[header.part];
  if (part == Exchange::Part::answered) return;
  const auto answer = static_cast<Answer>(header.answer);
  // The part was sent more than once, and another answer to it has come.
  if (answer == Answer::no_receive && part != Exchange::Part::sent) return;
  if (answer != Answer::done) {
    part = Exchange::Part::unsent;
    exchange.answer = answer;
    exchange.rnr_timer = header.rnr_timer;
    return;
  }
  if (reads(exchange.request.opcode)) {
    const std::uint64_t length = length_of_part(exchange.request.total, header.part);
    if (bytes.size() != length) return;
    std::copy(bytes.begin(), bytes.end(),
              exchange.bytes.begin() + static_cast<std::ptrdiff_t>(header.part * kPartBytes));
  }
  part = Exchange::Part::answered;
  ++exchange.answered;
  exchange.progress_at = Clock::now();
}

void Card::take_request(QueuePair& pair, const DatagramHeader& header,
                        std::span<const std::byte> bytes) {
  Request request;
  request.to = header.to;
  request.from = header.from;
  request.psn = header.psn;
  request.opcode = static_cast<Opcode>(header.opcode);
  request.solicited = header.solicited != 0;
  request.immediate = header.immediate;
  request.remote = {header.remote, header.rkey};
  request.compare_add = header.compare_add;
  request.swap = header.swap;
  request.total = header.total;
  request.offset = header.offset;
  request.length = header.length;
  request.bytes = bytes;
  const bool has_bytes = !reads(request.opcode);
  if (!is_request(request.opcode)) return;
  if (is_atomic(request.opcode) && request.total != sizeof(std::uint64_t)) return;
  if (request.total > kMostBytes || header.parts != parts_of(request.total) ||
      header.part >= header.parts || request.offset != header.part * kPartBytes ||
      request.length != length_of_part(request.total, header.part) ||
      bytes.size() != (has_bytes ? request.length : 0)) {
    return;
  }
  std::vector<std::byte> result;
  const Answer answer = respond_to_part(pair, header, request, result);
  if (pair.is_unreliable || answer == Answer::none) return;
  DatagramHeader reply;
  reply.is_answer = 1;
  reply.to = header.from;
  reply.from = header.to;
  reply.psn = header.psn;
  reply.part = header.part;
  reply.answer = static_cast<std::uint8_t>(answer);
  reply.rnr_timer = pair.rnr_timer;
  wire_->send(*pair.remote, datagram_of(reply, result));
}

/// Carries a part out once, however often it comes.
Answer Card::respond_to_part(QueuePair& pair, const DatagramHeader& header, Request& request,
                             std::vector<std::byte>& result) {
  Arrival& arrival = pair.arrival;
  if (pair.is_unreliable && header.psn != pair.expected_psn) {
    pair.expected_psn = header.psn;  // what was lost stays lost
    arrival = {};
    pair.filling.reset();
  }
  if (!pair.is_unreliable && is_duplicate(pair, header.psn)) {  // its answer was lost
    return answer_duplicate(pair, request, result);
  }
  if (header.psn != pair.expected_psn) return Answer::none;
  if (arrival.parts.size() != header.parts) arrival.parts.assign(header.parts, false);
  if (arrival.parts[header.part]) {
    return request.opcode == Opcode::rdma_read ? respond_to_memory(pair, nullptr, request, result)
                                               : Answer::done;
  }
  request.is_last = arrival.arrived + 1 == header.parts;
  const Answer answer = respond(pair, nullptr, request, result);
  const bool ends = answer != Answer::none && answer != Answer::no_receive;
  if (answer == Answer::done) {
    arrival.parts[header.part] = true;
    ++arrival.arrived;
  }
  if (ends && (request.is_last || answer != Answer::done)) {
    arrival = {};
    arrival.last_answer = answer;
    arrival.last_result = result;
    pair.expected_psn = (pair.expected_psn + 1) & kPsnMask;
  }
  return answer;
}

}  // namespace offload::rdma::model
