#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>

#include "tests/softcard/fixture.hpp"

/// Random operations between two processes, in both directions, with all data compared:
///   softcard_traffic OPERATIONS            two processes of this machine
///   softcard_traffic OPERATIONS ADDRESS 1  one of two processes; ADDRESS is its own
///   softcard_traffic OPERATIONS ADDRESS 2  the other one; ADDRESS is that of process 1
namespace offload::softcard::test {
namespace {

constexpr std::size_t kPairs = 4;
constexpr std::uint32_t kInFlight = 16;
constexpr std::uint32_t kReceives = 8;
constexpr std::uint32_t kSlot = 8192;
/// The slots of a queue pair, behind which there is one for atomic operations.
constexpr std::size_t kSlots = kInFlight;
constexpr std::size_t kArea = (kSlots + 1) * kSlot;
constexpr std::uint16_t kPort = 7100;
/// The time that the guest of a peer may take to boot (boot_limit of scripts/rdma-guest), and more.
constexpr std::chrono::seconds kMeeting(150);

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "traffic: %s\n", what.c_str());
  std::exit(1);
}

void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

/// The words that operation `sequence` writes or sends.
class Content {
 public:
  explicit Content(std::uint64_t sequence) : next_(sequence * 0xd134'2543'de82'ef95 + 1) {}
  void fill(std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof next_) {
      next_ = next_ * 0x5851'f42d'4c95'7f2d + 0x1405'7b7e'f767'814f;
      std::memcpy(bytes.data() + at, &next_, std::min(sizeof next_, bytes.size() - at));
    }
  }

 private:
  std::uint64_t next_;
};

/// The names and addresses that a peer must know.
struct Introduction {
  std::array<std::uint32_t, kPairs> numbers{};
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  ibv_gid gid{};
};

void write_all(int fd, const void* data, std::size_t size) {
  require(::write(fd, data, size) == static_cast<ssize_t>(size), "cannot write to the peer");
}
void read_all(int fd, void* data, std::size_t size) {
  require(::recv(fd, data, size, MSG_WAITALL) == static_cast<ssize_t>(size), "the peer is gone");
}

/// A queue pair and the operations of this process on it.
class Lane {
 public:
  Lane(ibv_pd* domain, std::size_t index, std::uint64_t operations, std::uint32_t seed)
      : pair_(domain, {.sends = 64, .receives = kReceives, .inline_data = 200}),
        index_(index),
        left_(operations),
        random_(seed + static_cast<std::uint32_t>(index)),
        sources_(domain, kSlots * kSlot),
        targets_(domain, kReceives * kSlot),
        shadow_(kArea) {
    for (std::uint64_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  [[nodiscard]] Pair& pair() { return pair_; }
  void meet(const Introduction& peer) {
    peer_ = peer;
    pair_.connect(peer.numbers.at(index_), {.timeout = 18, .retries = 7, .gid = peer.gid});
  }
  /// Posts and polls. Returns whether there was something.
  bool turn() {
    bool worked = false;
    while (left_ != 0 && in_flight_.size() < kInFlight) {
      post();
      --left_;
      worked = true;
    }
    ibv_wc completion{};
    while (ibv_poll_cq(pair_.sent(), 1, &completion) > 0) {
      check_sent(completion);
      worked = true;
    }
    while (ibv_poll_cq(pair_.came(), 1, &completion) > 0) {
      check_came(completion);
      worked = true;
    }
    return worked;
  }
  [[nodiscard]] bool is_done() const { return left_ == 0 && in_flight_.empty(); }
  [[nodiscard]] std::uint64_t came() const { return came_; }
  [[nodiscard]] std::uint64_t told() const { return told_; }

 private:
  enum class Kind : std::uint8_t { write, write_with_imm, read, send, send_with_imm, add, swap };
  struct Operation {
    std::uint64_t sequence;
    Kind kind;
    std::uint32_t length;
    std::uint64_t before;  ///< of an atomic operation
  };

  void post_receive(std::uint64_t slot) {
    require(pair_.post_receive(slot, {targets_.piece(slot * kSlot, kSlot)}) == 0,
            "cannot post a receive");
  }
  std::uint32_t random_length() {
    const auto most = random_() % 4 == 0 ? kSlot : 256U;
    return 1 + static_cast<std::uint32_t>(random_() % most);
  }
  std::span<std::byte> source(std::uint64_t sequence) {
    return sources_.bytes().subspan(sequence % kSlots * kSlot, kSlot);
  }
  std::span<std::byte> shadow(std::uint64_t sequence) {
    return std::span(shadow_).subspan(sequence % kSlots * kSlot, kSlot);
  }

  void post() {
    Operation operation{++sequence_, static_cast<Kind>(random_() % 7), random_length(), 0};
    ibv_send_wr request = work(IBV_WR_RDMA_WRITE, operation.sequence);
    const std::uint64_t slot = operation.sequence % kSlots;
    const std::uint64_t area = peer_.address + index_ * kArea;
    request.wr.rdma = {area + slot * kSlot, peer_.rkey};
    const auto bytes = source(operation.sequence);
    switch (operation.kind) {
      case Kind::write_with_imm:
      case Kind::write:
        Content(operation.sequence).fill(bytes.first(operation.length));
        std::copy_n(bytes.begin(), operation.length, shadow(operation.sequence).begin());
        if (operation.kind == Kind::write) break;
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htobe32(static_cast<std::uint32_t>(++told_));
        break;
      case Kind::read:
        request.opcode = IBV_WR_RDMA_READ;
        std::fill_n(bytes.begin(), operation.length, std::byte{});
        break;
      case Kind::send:
      case Kind::send_with_imm:
        Content(++told_).fill(bytes.first(operation.length));
        request.opcode = operation.kind == Kind::send ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
        request.imm_data = htobe32(static_cast<std::uint32_t>(told_));
        break;
      case Kind::add:
      case Kind::swap: post_atomic(operation, request, area); break;
    }
    const bool has_data = operation.kind != Kind::read && operation.kind < Kind::add;
    if (has_data && operation.length <= 200 && random_() % 2 == 0) {
      request.send_flags |= IBV_SEND_INLINE;
    }
    // In two pieces, some of them.
    const std::uint32_t first = operation.length > 8 && random_() % 4 == 0 ? 5 : operation.length;
    ibv_sge pieces[2] = {sources_.piece(slot * kSlot, first),
                         sources_.piece(slot * kSlot + first, operation.length - first)};
    const std::size_t count = first == operation.length ? 1 : 2;
    require(pair_.post(request, std::span(pieces, count)) == 0, "cannot post");
    in_flight_.push_back(operation);
  }

  void post_atomic(Operation& operation, ibv_send_wr& request, std::uint64_t area) {
    const std::size_t word = random_() % 16;
    operation.length = sizeof(std::uint64_t);
    operation.before = words_.at(word);
    request.wr.atomic = {area + kSlots * kSlot + 8 * word, 0, 0, peer_.rkey};
    if (operation.kind == Kind::add) {
      request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      request.wr.atomic.compare_add = random_();
      words_.at(word) += request.wr.atomic.compare_add;
    } else {
      const bool hits = random_() % 2 == 0;
      request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
      request.wr.atomic.compare_add = operation.before + (hits ? 0 : 1);
      request.wr.atomic.swap = random_();
      if (hits) words_.at(word) = request.wr.atomic.swap;
    }
  }

  void check_sent(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
      fail(std::string("an operation has failed: ") + ibv_wc_status_str(completion.status));
    }
    require(!in_flight_.empty() && completion.wr_id == in_flight_.front().sequence,
            "completions are out of order");
    const Operation operation = in_flight_.front();
    in_flight_.pop_front();
    const auto bytes = source(operation.sequence);
    if (operation.kind == Kind::read) {
      require(std::equal(bytes.begin(), bytes.begin() + operation.length,
                         shadow(operation.sequence).begin()),
              "a read has other data than was written");
    }
    if (operation.kind >= Kind::add) {
      require(std::memcmp(bytes.data(), &operation.before, sizeof operation.before) == 0,
              "an atomic operation returns another value");
    }
  }

  void check_came(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
      fail(std::string("a receive has failed: ") + ibv_wc_status_str(completion.status));
    }
    ++came_;
    if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) {
      require(be32toh(completion.imm_data) == static_cast<std::uint32_t>(came_),
              "an immediate is lost, or comes twice");
    }
    if (completion.opcode == IBV_WC_RECV) {
      const auto bytes = targets_.bytes().subspan(completion.wr_id * kSlot, completion.byte_len);
      std::vector<std::byte> expected(bytes.size());
      Content(came_).fill(expected);
      require(std::equal(bytes.begin(), bytes.end(), expected.begin()),
              "a message has other data than was sent");
    }
    post_receive(completion.wr_id);
  }

  Pair pair_;
  std::size_t index_;
  std::uint64_t left_;
  std::minstd_rand random_;
  Memory sources_;
  Memory targets_;
  std::vector<std::byte> shadow_;  ///< of the peer's area
  std::array<std::uint64_t, 16> words_{};
  Introduction peer_;
  std::deque<Operation> in_flight_;
  std::uint64_t sequence_ = 0;
  std::uint64_t told_ = 0;  ///< messages and immediates
  std::uint64_t came_ = 0;
};

void run(int peer_fd, std::uint64_t operations, std::uint32_t seed) {
  const auto device = open_device();
  const auto domain = held(ibv_alloc_pd(device.get()), ibv_dealloc_pd, "a domain");
  const Memory area(domain.get(), kPairs * kArea);
  std::deque<Lane> lanes;
  Introduction own;
  own.address = area.address();
  own.rkey = area.rkey();
  require(ibv_query_gid(device.get(), 1, 1, &own.gid) == 0, "there is no GID");
  for (std::size_t i = 0; i < kPairs; ++i) {
    own.numbers.at(i) =
        lanes.emplace_back(domain.get(), i, operations / kPairs, seed).pair().number();
  }
  write_all(peer_fd, &own, sizeof own);
  Introduction peer;
  read_all(peer_fd, &peer, sizeof peer);
  for (Lane& lane : lanes) lane.meet(peer);
  write_all(peer_fd, "r", 1);  // before the first message comes
  char ready = 0;
  read_all(peer_fd, &ready, 1);

  const auto begin = std::chrono::steady_clock::now();
  auto latest = begin;
  std::array<std::uint64_t, kPairs> told{};
  std::optional<std::array<std::uint64_t, kPairs>> expected;
  bool has_told = false;
  const auto is_done = [&] {
    bool done = true;
    for (std::size_t i = 0; i < kPairs; ++i) {
      done = done && lanes[i].is_done() && expected && lanes[i].came() == expected->at(i);
      told.at(i) = lanes[i].told();
    }
    return done;
  };
  while (!is_done()) {
    bool worked = false;
    bool all_sent = true;
    for (Lane& lane : lanes) {
      worked = lane.turn() || worked;
      all_sent = all_sent && lane.is_done();
    }
    if (all_sent && !has_told) {
      has_told = true;
      is_done();
      write_all(peer_fd, told.data(), sizeof told);
    }
    if (!expected) {
      std::array<std::uint64_t, kPairs> count{};
      if (::recv(peer_fd, count.data(), sizeof count, MSG_DONTWAIT) == sizeof count)
        expected = count;
    }
    const auto now = std::chrono::steady_clock::now();
    if (worked) latest = now;
    if (now - latest > std::chrono::seconds(60)) fail("operations are lost");
    if (!worked) std::this_thread::yield();
  }
  write_all(peer_fd, "d", 1);  // the peer may still read here
  read_all(peer_fd, &ready, 1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu operations, 0 wrong, 0 lost, %.0f a second\n",
              static_cast<unsigned long long>(operations), double(operations) / took.count());
}

int connect_to(const char* address, bool listens) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(kPort);
  require(::inet_pton(AF_INET, address, &place.sin_addr) == 1, "that is no address of IPv4");
  const auto* const native = reinterpret_cast<const sockaddr*>(&place);
  const auto deadline = std::chrono::steady_clock::now() + kMeeting;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listens) {
    require(::bind(fd, native, sizeof place) == 0 && ::listen(fd, 1) == 0, "cannot listen");
    pollfd listener{fd, POLLIN, 0};
    const std::chrono::milliseconds limit = kMeeting;
    require(::poll(&listener, 1, static_cast<int>(limit.count())) == 1, "nobody connects");
    return ::accept(fd, nullptr, nullptr);
  }
  while (::connect(fd, native, sizeof place) != 0) {
    if (std::chrono::steady_clock::now() > deadline) fail("nobody listens");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return fd;
}

int run_two(std::uint64_t operations) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "cannot make a socket");
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run(ends[1], operations, 1);
    std::fflush(stdout);
    ::_exit(0);
  }
  ::close(ends[1]);
  run(ends[0], operations, 100);
  int status = 0;
  require(::waitpid(child, &status, 0) == child && status == 0, "the other process has failed");
  return 0;
}

}  // namespace
}  // namespace offload::softcard::test

int main(int argc, char** argv) {
  using namespace offload::softcard::test;
  if (argc != 2 && argc != 4) fail("takes OPERATIONS [ADDRESS 1|2]");
  const std::uint64_t operations = std::strtoull(argv[1], nullptr, 10);
  if (argc == 2) return run_two(operations);
  const bool listens = std::string(argv[3]) == "1";
  run(connect_to(argv[2], listens), operations, listens ? 1 : 100);
  return 0;
}
