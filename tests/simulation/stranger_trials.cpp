#include <array>
#include <span>

#include "protocol/control.hpp"
#include "tests/simulation/trials.hpp"

/// Peers on the workers' port that are no workers, or misbehaving ones.
namespace offload::simulation {
namespace {

using protocol::MessageId;

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string control(MessageId id, const std::vector<std::byte>& payload = {}) {
  return text(protocol::make_frame(id, payload));
}

protocol::Hello hello_of(std::uint32_t capabilities) {
  protocol::Hello hello;
  hello.capabilities = capabilities;
  hello.max_channels = 1024;
  hello.max_message_length = 16U << 20U;
  hello.backend = "a stranger's";
  hello.services = {"reverse", "echo", "crc32c"};
  return hello;
}

std::string rubbish(Random& random, std::size_t most) {
  std::string bytes(1 + random.below(most), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

bool is_local(const Scene& s) {
  return s.server.comch.starts_with("unix:");
}

/// Expects the end of the connection between `after` and `before` from `since`.
void expect_end(Scene& s, Peer& peer, Time since, Time after, Time before, const char* who) {
  const bool ends = peer.ends(since + before - s.kernel.now);
  if (!ends) s.fail(std::string(who) + " keeps its connection");
  if (s.kernel.now - since < after) s.fail(std::string(who) + " is sent away too early");
}

void says_nothing(Scene& s) {
  const Time since = s.kernel.now;
  Peer peer(s.server.comch);
  expect_end(s, peer, since, 4800 * kMillisecond, 6500 * kMillisecond,
             "a stranger that says nothing");
}

void says_rubbish(Scene& s) {
  for (int i = 0; i < 3; ++i) {
    const Time since = s.kernel.now;
    Peer peer(s.server.comch);
    peer.send(rubbish(s.kernel.random, 1000));
    expect_end(s, peer, since, 0, 6500 * kMillisecond, "a stranger that says rubbish");
  }
}

void greets_and_never_attaches(Scene& s) {
  const Time since = s.kernel.now;
  Peer peer(s.server.comch);
  peer.send(control(MessageId::hello, hello_of(protocol::kStandsBy).encode()));
  for (std::uint64_t i = 1; s.kernel.now - since < 63 * kSecond; ++i) {
    if (!peer.send(control(MessageId::keep_alive, protocol::KeepAlive{i}.encode()))) break;
    if (peer.ends(900 * kMillisecond)) break;
  }
  if (!peer.ended()) s.fail("who greets and never attaches is kept");
  if (s.kernel.now - since < 59 * kSecond) s.fail("who takes long to attach is sent away");
}

/// A stand-by worker on this machine is stopped once it is attached.
void attaches_and_falls_silent(Scene& s) {
  if (!is_local(s)) return says_nothing(s);
  Peer peer(s.server.comch);
  peer.send(control(MessageId::hello, hello_of(protocol::kStandsBy).encode()));
  for (std::uint32_t i = 0; i <= s.server.threads; ++i) peer.receive(kSecond);  // the offer
  for (std::uint32_t i = 0; i < s.server.threads; ++i) {
    peer.send(control(MessageId::exchange_consumer_id_request,
                      protocol::ExchangeConsumerId{i, i}.encode()));
  }
  expect_end(s, peer, s.kernel.now, 4500 * kMillisecond, 7500 * kMillisecond,
             "a worker that is silent");
}

/// A peer sends messages that are not allowed, in a random order, before the greeting or after it.
void says_what_has_no_place(Scene& s) {
  Random& random = s.kernel.random;
  for (int i = 0; i < 4; ++i) {
    const Time since = s.kernel.now;
    Peer peer(s.server.comch);
    protocol::Hello hello = hello_of(protocol::kStandsBy);
    switch (random.below(8)) {
      case 0: hello.version = 1; break;
      case 1: hello.services.clear(); break;
      case 2: hello.max_channels = 0; break;
      case 3: hello.max_message_length = 1; break;
      default: break;
    }
    std::vector<std::byte> greeting = hello.encode();
    if (random.one_in(4)) greeting.resize(random.below(greeting.size()));
    if (!random.one_in(4)) peer.send(control(MessageId::hello, greeting));
    for (std::uint64_t k = random.below(4); k != 0 && !peer.ended(); --k) {
      const auto ids = std::to_array({0U, 1U, 2U, 3U, 16U, 17U, 18U, 19U, 22U, 24U, 25U, 26U, 99U});
      auto id = static_cast<std::uint32_t>(ids[random.below(ids.size())]);
      // An allowed worker may ask for the server's end, so this message is left out.
      std::string payload = rubbish(random, 40);
      if (random.one_in(3)) payload = text(protocol::ExchangeConsumerId{0, 0}.encode());
      peer.send(frame_of(id, payload));
    }
    peer.send(frame_of(99, ""));  // none of these is the last word of a worker that stays
    if (random.one_in(2)) continue;
    expect_end(s, peer, since, 0, 6500 * kMillisecond, "who says what has no place");
  }
}

}  // namespace

void bother(const std::string& address) {
  Peer peer(address);
  for (std::uint64_t k = kernel->random.below(3); k != 0 && !peer.ended(); --k) {
    peer.send(kernel->random.one_in(2)
                  ? rubbish(kernel->random, 300)
                  : control(MessageId::hello, hello_of(protocol::kStandsBy).encode()));
  }
  peer.ends(static_cast<Time>(kernel->random.below(kSecond)));
}

namespace {

void has_no_token(Scene& s) {
  if (is_local(s)) return says_what_has_no_place(s);
  Peer peer(s.server.comch);
  protocol::AttachChannel request{};
  for (auto& byte : request.token) byte = static_cast<std::byte>(s.kernel.random.next());
  peer.send(control(MessageId::attach_channel, request.encode()));
  const auto frame = peer.receive(kSecond);
  if (!frame || !frame->refuses(protocol::Refusal::bad_hello)) {
    s.fail("a channel is attached without a token");
  }
}

/// More connections than may be pending come; a worker can attach nevertheless.
void come_in_numbers(Scene& s) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 90; ++i) {
    peers.push_back(std::make_unique<Peer>(s.server.comch));
    if (!peers.back()->connected()) peers.pop_back();
  }
  s.kernel.sleep(100 * kMillisecond);
  std::size_t kept = 0;
  for (const auto& peer : peers) kept += peer->gone() ? 0U : 1U;
  if (kept > 70) s.fail("more strangers than may be are let in");
  Fleet::Worker& next = s.fleet.start(false);
  s.kernel.sleep(Fleet::kSettle);
  for (Fleet::Worker* const other : s.fleet.running()) {
    if (other != &next) s.fleet.kill(*other);
  }
  if (!s.answers(kSecond)) s.fail("strangers keep a worker out");
}

}  // namespace

const std::vector<Trial> kStrangerTrials{
    {"a stranger says nothing", says_nothing},
    {"a stranger says rubbish", says_rubbish},
    {"a stranger greets and never attaches", greets_and_never_attaches},
    {"a stand-by falls silent", attaches_and_falls_silent},
    {"a stranger says what has no place", says_what_has_no_place},
    {"a stranger has no token", has_no_token},
    {"strangers come in numbers", come_in_numbers},
};

}  // namespace offload::simulation
