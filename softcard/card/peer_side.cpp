#include <algorithm>
#include <cstring>
#include <utility>

#include "softcard/card/card.hpp"

/// The responder: it carries requests of others out, on the memory and the receives of the queue
/// pair that they name.
namespace offload::rdma::model {
namespace {

using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::is_atomic;
using kernels::rdma::Opcode;

bool allows(const RemoteRights& rights, Opcode opcode) {
  if (is_atomic(opcode)) return rights.atomic;
  return opcode == Opcode::rdma_read ? rights.read : rights.write;
}

}  // namespace

Answer Card::respond(QueuePair& peer, QueuePair* from, const Request& request,
                     std::vector<std::byte>& result) {
  const bool is_ready = peer.state == State::receiving || peer.state == State::sending ||
                        peer.state == State::drained;
  if (!is_ready || peer.peer != request.from) return Answer::none;
  const bool counts = peer.is_owned && !peer.is_unreliable;
  if (counts && is_duplicate(peer, request.psn)) return answer_duplicate(peer, request, result);
  if (counts && request.psn != peer.expected_psn) return Answer::none;
  const Answer answer = is_send(request.opcode) ? deliver(peer, request)
                                                : respond_to_memory(peer, from, request, result);
  if (peer.is_unreliable && answer == Answer::no_access) return answer;  // it is dropped
  if (answer == Answer::no_access) enter_error(peer, PairEvent::access_error);
  if (answer == Answer::invalid_request) enter_error(peer, PairEvent::request_error);
  if (answer == Answer::failed) enter_error(peer, PairEvent::fatal);
  return answer;
}

/// Returns whether the newest request, which was carried out, has this sequence number.
bool Card::is_duplicate(const QueuePair& peer, std::uint32_t psn) {
  return psn == ((peer.expected_psn - 1) & kPsnMask);
}

/// Answers a request that comes again as it was answered before, and changes no memory.
Answer Card::answer_duplicate(QueuePair& peer, const Request& request,
                              std::vector<std::byte>& result) {
  const Arrival& arrival = peer.arrival;
  if (arrival.last_answer != Answer::done) return arrival.last_answer;
  if (request.opcode == Opcode::rdma_read) {
    return respond_to_memory(peer, nullptr, request, result);
  }
  if (!is_atomic(request.opcode)) return Answer::done;
  if (arrival.last_result.empty()) return Answer::none;  // the newest one was not atomic
  result = arrival.last_result;
  return Answer::done;
}

Answer Card::respond_to_memory(QueuePair& peer, QueuePair* from, const Request& request,
                               std::vector<std::byte>& result) {
  const Region* const region = regions_.find(request.remote.rkey, peer.domain);
  const auto whole = Regions::part(region, request.remote.address, request.total);
  const bool allowed = region != nullptr && allows(region->rights, request.opcode) &&
                       allows(peer.rights, request.opcode);
  if (request.total != 0 && (whole.size() != request.total || !allowed)) return Answer::no_access;
  const auto part = whole.empty() ? whole : whole.subspan(request.offset, request.length);
  if (is_atomic(request.opcode)) {
    if (request.remote.address % sizeof(std::uint64_t) != 0) return Answer::invalid_request;
    auto* const word = reinterpret_cast<std::uint64_t*>(part.data());
    std::uint64_t before = request.compare_add;
    fetch(part);
    // Sequentially consistent: the peer polls such words to see what was written before them.
    if (request.opcode == Opcode::fetch_add) {
      before = __atomic_fetch_add(word, request.compare_add, __ATOMIC_SEQ_CST);
    } else {
      __atomic_compare_exchange_n(word, &before, request.swap, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
    }
    store(part);
    result.resize(sizeof before);
    std::memcpy(result.data(), &before, sizeof before);
    return Answer::done;
  }
  if (request.opcode == Opcode::rdma_read) {
    fetch(part);
    result.assign(part.begin(), part.end());
    return Answer::done;
  }
  if (!unordered_ || from == nullptr) {
    copy(request.bytes, part);
  } else if (!std::exchange(from->is_placing, true)) {
    place_later(*from, request.bytes, part);
  }
  if (request.opcode != Opcode::rdma_write_with_imm || !request.is_last) return Answer::done;
  if (from != nullptr && !from->unplaced.empty()) return Answer::not_yet;
  return deliver(peer, request);
}

/// A write comes in two parts of whole words, and other writes may come between them.
void Card::place_later(QueuePair& from, std::span<const std::byte> bytes, std::span<std::byte> to) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto add = [&from](std::span<const std::byte> part, std::span<std::byte> place) {
    from.unplaced.push_back({{part.begin(), part.end()}, place});
  };
  const std::size_t words = bytes.size() / kWord;
  const std::size_t cut = words < 2 ? 0 : kWord * (1 + (*unordered_)() % (words - 1));
  if (cut != 0) add(bytes.first(cut), to.first(cut));
  add(bytes.subspan(cut), to.subspan(cut));
}

/// Uses the peer's oldest receive: for a message, or for an immediate. The first part of a message
/// takes it, whichever that is, and the last one completes it.
Answer Card::deliver(QueuePair& peer, const Request& request) {
  if (!peer.filling) {
    if (peer.receives == nullptr || look_for_receives(*peer.receives) == 0) {
      note_fault(peer);
      return Answer::no_receive;
    }
    peer.filling = peer.receives->take();
  }
  const Receive& receive = *peer.filling;
  Completion completion{};
  completion.counter = receive.counter;
  completion.queue = peer.number;
  completion.shared_receives = peer.shared;
  completion.immediate = request.immediate;
  completion.byte_count = static_cast<std::uint32_t>(request.total);
  completion.kind = CqeKind::received_write_with_imm;
  Answer answer = Answer::done;
  if (is_send(request.opcode)) {
    completion.kind =
        request.opcode == Opcode::send ? CqeKind::received_send : CqeKind::received_send_with_imm;
    completion.syndrome = fill(peer, receive, request);
    if (completion.syndrome != Syndrome::none) {
      completion.kind = CqeKind::receive_error;
      answer =
          completion.syndrome == Syndrome::local_length ? Answer::invalid_request : Answer::failed;
    }
  }
  if (answer == Answer::done && !request.is_last) return answer;
  peer.filling.reset();
  complete(peer, *peer.came, completion, request.solicited);
  if (peer.shared != 0 && peer.receives->reached_limit() && events_ != nullptr) {
    events_->limit_reached(peer.shared);
  }
  return answer;
}

Card::Syndrome Card::fill(QueuePair& peer, const Receive& receive, const Request& request) {
  if (request.bytes.empty()) return Syndrome::none;
  if (request.total > receive.length()) return Syndrome::local_length;
  return scatter(peer, receive.all(), request.offset, request.bytes);
}

/// In error, all receives of a queue pair's own complete so. Returns whether one did.
bool Card::flush_receives(QueuePair& pair) {
  if (!pair.is_owned || pair.state != State::error || pair.own == nullptr) return false;
  bool worked = false;
  while (look_for_receives(*pair.own) != 0 && !pair.came->in_error()) {
    Completion completion{};
    completion.kind = CqeKind::receive_error;
    completion.syndrome = Syndrome::flushed;
    completion.counter = pair.own->take().counter;
    completion.queue = pair.number;
    complete(pair, *pair.came, completion, false);
    worked = true;
  }
  return worked;
}

}  // namespace offload::rdma::model
