#include "apps/rdma_tasks/bring_up/verbs_loopback.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "apps/rdma_tasks/pattern.hpp"

namespace offload::rdma_tool {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::size_t kLongest = std::size_t{64} << 10;
constexpr std::array<std::size_t, 3> kLengths = {8, 4096, kLongest};
constexpr std::size_t kDataBytes = 4096;
constexpr std::size_t kWordStride = 64;
/// The flag lies behind the data.
constexpr std::size_t kFlagAt = kLongest;
constexpr std::size_t kRoom = kLongest + kWordStride;
constexpr std::uint32_t kListedWrites = 16;
constexpr std::uint64_t kRounds = 100;

rdma::QueuePairOptions pair_options() {
  rdma::QueuePairOptions options;
  options.max_send_wr = kListedWrites;
  options.max_recv_wr = 1;
  options.max_sge = 1;
  return options;
}

PatternKey key_of(std::uint64_t iteration) noexcept {
  return {1, 0, true, iteration};
}

/// With acquire, so that a thread that sees the value sees what the device placed before it.
std::uint64_t load(const std::uint64_t* word) noexcept {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

}  // namespace

VerbsLoopback::VerbsLoopback(Environment& environment)
    : environment_(environment),
      region_({"loopback", memory::kLocalAccess | environment.peer_access()},
              {memory::allocate_range(2 * kRoom)}),
      completions_(environment.device(), 2 * (kListedWrites + 1)),
      one_(environment.objects().domain, completions_, completions_, pair_options()),
      other_(environment.objects().domain, completions_, completions_, pair_options()) {
  region_.add_registrar(environment.registrar());
  region_.start();
  const rdma::PathOptions& path = environment.path();
  std::array<rdma::Pairing, 2> pairings{rdma::Pairing(environment.device(), path),
                                        rdma::Pairing(environment.device(), path)};
  for (rdma::QueuePair* const pair : {&one_, &other_}) {
    pair->initialize(path.port_num, environment.peer_access(), 0, path.pkey_index);
  }
  pairings[0].connect(one_, pairings[1].describe(other_));
  pairings[1].connect(other_, pairings[0].describe(one_));
}

std::string VerbsLoopback::described() const {
  return fmt::format("queue pairs {} and {} (RC) on {} are connected", one_.qp_num(),
                     other_.qp_num(), environment_.device().name());
}

std::string VerbsLoopback::write() {
  for (const std::size_t length : kLengths) {
    fill(source(0, length), key_of(length));
    post(std::array{Work{IBV_WR_RDMA_WRITE, 0, length}});
    wait_sent("the completion of a write");
    check(length, length, "a write");
  }
  return fmt::format("writes of 8 to {} bytes are right", kLongest);
}

std::string VerbsLoopback::send() {
  for (const std::size_t length : kLengths) {
    fill(source(0, length), key_of(length + 1));
    const std::uint64_t before = received_;
    post_receive(kLongest);
    post(std::array{Work{IBV_WR_SEND, 0, length}});
    environment_.wait([&] { return look(), received_ != before; }, "a message");
    if (received_bytes_ != length) {
      throw Error(ErrorCode::unexpected, fmt::format("a message of {} bytes arrived as {} bytes",
                                                     length, received_bytes_));
    }
    check(length, length + 1, "a message");
    wait_sent("the completion of a send");
  }
  return fmt::format("messages of 8 to {} bytes are right", kLongest);
}

std::string VerbsLoopback::observe_order() {
  std::array<Work, kListedWrites> works{};
  for (std::uint32_t i = 0; i < kListedWrites; ++i) {
    works[i] = {IBV_WR_RDMA_WRITE, i * kWordStride, sizeof(std::uint64_t)};
  }
  std::uint64_t disordered = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    for (const Work& work : works) {
      const auto word = source(work.at, sizeof round);
      std::copy_n(reinterpret_cast<const std::byte*>(&round), sizeof round, word.data());
    }
    post(works);
    bool in_order = true;
    // From the last word to the first: an earlier write must be there if a later one was.
    const auto observe = [&] {
      bool later = false;
      for (std::uint32_t i = kListedWrites; i-- > 0;) {
        const bool there = load(target_word(works[i].at)) == round;
        if (later && !there) in_order = false;
        later = later || there;
      }
      look();
      return sent_ == posted_;
    };
    environment_.wait(observe, "the completion of a list of writes");
    if (!in_order) ++disordered;
  }
  return disordered == 0
             ? fmt::format("plain writes were seen in order in all {} lists; no data path needs it",
                           kRounds)
             : fmt::format(
                   "plain writes were seen out of order in {} of {} lists; no data path "
                   "needs the order",
                   disordered, kRounds);
}

std::string VerbsLoopback::flag_by_atomic() {
  *target_word(kFlagAt) = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    fill(source(0, kDataBytes), key_of(round));
    post(std::array{Work{IBV_WR_RDMA_WRITE, 0, kDataBytes},
                    Work{IBV_WR_ATOMIC_CMP_AND_SWP, kFlagAt, 8, round - 1, round}});
    environment_.wait([&] { return look(), load(target_word(kFlagAt)) == round; },
                      "a flag that a compare-and-swap sets");
    check(kDataBytes, round, "the flag of an atomic operation");
    wait_sent("the completion of a compare-and-swap");
    std::uint64_t before = 0;
    std::copy_n(source(kFlagAt, sizeof before).data(), sizeof before,
                reinterpret_cast<std::byte*>(&before));
    if (before != round - 1) {
      throw Error(ErrorCode::unexpected,
                  fmt::format("a compare-and-swap returned {} instead of {}", before, round - 1));
    }
  }
  return fmt::format("{} times: a flag by compare-and-swap arrived after its data", kRounds);
}

std::string VerbsLoopback::flag_by_immediate() {
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    fill(source(0, kDataBytes), key_of(kRounds + round));
    const std::uint64_t before = received_;
    post_receive(0);
    post(std::array{Work{IBV_WR_RDMA_WRITE, 0, kDataBytes / 2},
                    Work{IBV_WR_RDMA_WRITE_WITH_IMM, kDataBytes / 2, kDataBytes / 2}});
    environment_.wait([&] { return look(), received_ != before; },
                      "the completion of a write with immediate");
    check(kDataBytes, kRounds + round, "the completion of an immediate");
    wait_sent("the completion of a write with immediate");
  }
  return fmt::format("{} times: the completion of an immediate arrived after its data", kRounds);
}

void VerbsLoopback::post(std::span<const Work> works) {
  const memory::MemoryKey& key = *region_.key(environment_.registrar(), 0);
  std::array<ibv_sge, kListedWrites> pieces{};
  std::array<ibv_send_wr, kListedWrites> requests{};
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Work& work = works[i];
    const auto to = reinterpret_cast<std::uint64_t>(target(work.at, work.length).data());
    pieces[i] = {reinterpret_cast<std::uint64_t>(source(work.at, work.length).data()),
                 static_cast<std::uint32_t>(work.length), key.local};
    ibv_send_wr& request = requests[i];
    request.sg_list = &pieces[i];
    request.num_sge = 1;
    request.opcode = work.opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      request.wr.atomic = {to, work.compare, work.swap, key.remote};
    } else {
      request.wr.rdma = {to, key.remote};
    }
    if (i + 1 < works.size()) request.next = &requests[i + 1];
  }
  ibv_send_wr* bad = nullptr;
  const core::Status status = one_.post_send(requests[0], bad);
  if (!status.ok()) {
    throw Error(status.error(),
                one_.described() + " cannot post: " + std::string(core::describe(status.error())));
  }
  posted_ += works.size();
}

void VerbsLoopback::post_receive(std::size_t length) {
  const memory::MemoryKey& key = *region_.key(environment_.registrar(), 0);
  ibv_sge piece{reinterpret_cast<std::uint64_t>(target(0, length).data()),
                static_cast<std::uint32_t>(length), key.local};
  ibv_recv_wr request{};
  request.sg_list = &piece;
  request.num_sge = length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  const core::Status status = other_.post_receive(request, bad);
  if (!status.ok()) {
    throw Error(status.error(), other_.described() + " cannot post a receive: " +
                                    std::string(core::describe(status.error())));
  }
}

/// Takes the completions that are there.
void VerbsLoopback::look() {
  std::array<ibv_wc, kListedWrites> taken{};
  for (const ibv_wc& completion : completions_.poll(taken)) {
    if (completion.status != IBV_WC_SUCCESS) {
      throw Error(ErrorCode::io_failed, rdma::explain(completion.status, completion.vendor_err),
                  rdma::cause_of(completion.status, completion.vendor_err));
    }
    if ((completion.opcode & IBV_WC_RECV) != 0) {
      ++received_;
      received_bytes_ = completion.byte_len;
    } else {
      ++sent_;
    }
  }
  if (completions_.failed()) throw Error(ErrorCode::driver, "the completion queue has failed");
}

void VerbsLoopback::wait_sent(const char* what) {
  environment_.wait([&] { return look(), sent_ == posted_; }, what);
}

void VerbsLoopback::check(std::size_t length, std::uint64_t iteration, const char* after) const {
  const auto mismatch = find_mismatch(target(0, length), key_of(iteration));
  if (!mismatch) return;
  throw Error(ErrorCode::unexpected,
              fmt::format("after {}, byte {} of {} is 0x{:02x} instead of 0x{:02x}", after,
                          mismatch->offset, length, mismatch->got, mismatch->expected));
}

std::span<std::byte> VerbsLoopback::source(std::size_t at, std::size_t length) const noexcept {
  return {region_.ranges()[0].address + at, length};
}

std::span<std::byte> VerbsLoopback::target(std::size_t at, std::size_t length) const noexcept {
  return {region_.ranges()[0].address + kRoom + at, length};
}

std::uint64_t* VerbsLoopback::target_word(std::size_t at) const noexcept {
  return reinterpret_cast<std::uint64_t*>(target(at, sizeof(std::uint64_t)).data());
}

}  // namespace offload::rdma_tool
