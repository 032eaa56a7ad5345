#include <fmt/core.h>

#include <algorithm>

#include "tests/simulation/trials.hpp"

/// Misbehaving clients, and many clients.
namespace offload::simulation {
namespace {

using protocol::Refusal;
using Peers = std::vector<std::unique_ptr<Peer>>;

std::string bad_frame(Scene& s) {
  return s.kernel.random.one_in(2) ? frame_of(4, std::string(s.load.longest + 1, 'x'))
                                   : frame_of(5, "not for a server");
}

Peers connect(Scene& s, std::size_t count) {
  Peers peers;
  for (; count != 0; --count) {
    peers.push_back(std::make_unique<Peer>(s.clients));
    if (!peers.back()->connected()) peers.pop_back();
  }
  return peers;
}

std::size_t open(const Peers& peers) {
  return static_cast<std::size_t>(
      std::ranges::count_if(peers, [](const auto& peer) { return !peer->gone(); }));
}

/// The client sends without end after its bad frame.
void floods_after_a_bad_frame(Scene& s) {
  Peers floods = connect(s, 2 * s.server.threads);
  const Time began = s.kernel.now;
  for (const auto& flood : floods) {
    flood->send(bad_frame(s));
    if (const auto socket = flood->socket()) socket->floods = true;
  }
  for (std::uint32_t i = 0; i < 2 * s.server.threads; ++i) {
    if (!s.answers(kSecond)) return s.fail("a client that floods has its thread to itself");
  }
  for (const auto& flood : floods) {
    if (!flood->ends(began + 2 * kSecond - s.kernel.now)) s.fail("a client that floods is kept");
  }
}

void goes_on_after_a_bad_frame(Scene& s) {
  Peer peer(s.clients);
  const std::uint64_t before = s.kernel.random.below(5);
  peer.ask(before, s.length());
  // Drawn before the frame, so that each compiler draws in the same order.
  const std::string more(s.kernel.random.below(200'000), 'y');
  peer.send(bad_frame(s) + more, 100 * kMillisecond);
  while (peer.owed() != 0) {
    if (!peer.is_answered(kSecond)) return s.fail("what came before a bad frame is not answered");
  }
  const auto frame = peer.receive(kSecond);
  if (!frame || frame->id != protocol::MessageId::error) s.fail("a bad frame is not told why");
  if (!peer.ends(2 * kSecond)) s.fail("after a bad frame the connection stays");
}

void sends_half_a_frame(Scene& s) {
  if (s.tight == Tight::idle_time) return;  // which is shorter
  Peer peer(s.clients);
  const std::string frame = frame_of(4, std::string(std::min(s.load.longest, 60U), 'x'));
  peer.send(frame.substr(0, 1 + s.kernel.random.below(frame.size() - 1)));
  if (peer.receive(4500 * kMillisecond)) s.fail("half a frame is refused before its time");
  const auto refusal = peer.receive(1500 * kMillisecond);
  if (!refusal || !refusal->refuses(Refusal::frame_timed_out)) {
    s.fail("half a frame may stay so for ever");
  }
}

// ---- Limits

/// A client that holds nothing is not disconnected, however many there are.
void many_are_quiet(Scene& s) {
  Peers quiet = connect(s, 70);
  for (const auto& peer : quiet) {
    peer->ask(1, s.length());
    if (!peer->is_answered(kSecond)) return s.fail("one of many quiet clients is not answered");
  }
  if (open(quiet) != quiet.size()) s.fail("a client that holds nothing is ended");
}

/// Returns whether the server has more output for one of them than its socket takes.
bool holds_output(const Peers& peers) {
  return std::ranges::any_of(peers, [](const auto& peer) {
    const auto socket = peer->socket() ? peer->socket()->peer.lock() : nullptr;
    return socket && socket->wants_room;
  });
}

/// Greedy clients request much, read nothing, and disconnect while a worker still owes them the
/// rest. A client that holds little at the same time is not disconnected for it.
void greedy_ones_come_and_go(Scene& s) {
  Fleet::Worker& worker = s.one_worker();
  Peer honest(s.clients);
  for (int i = 0; i < 10; ++i) {  // slow now and then, but it takes everything
    honest.ask(200, s.load.longest);
    s.kernel.sleep(20 * kMillisecond);
    while (honest.owed() != 0) {
      if (!honest.is_answered(5 * kSecond)) return s.fail("a client that was slow is ended");
    }
  }
  Peer begun(s.clients);
  const std::string frame = frame_of(4, std::string(s.load.longest, 'x'));
  begun.send(frame.substr(0, 100));
  for (int i = 0; i < 3; ++i) {
    Peers greedy = connect(s, 30);
    for (const auto& one : greedy) one->ask(600, s.load.longest);
    // They send until sockets are full, and the server holds the rest; sometimes all of it.
    const bool all = s.kernel.random.one_in(2);
    for (int k = 0; k < 40; ++k) {
      for (const auto& one : greedy) one->send("", 0);
      s.kernel.wait([&] { return !all && holds_output(greedy); }, s.kernel.now + 3 * kMillisecond);
      if (!all && holds_output(greedy)) break;
    }
    s.fleet.hang(worker, true);
    s.kernel.sleep(30 * kMillisecond);
    s.kernel.note("greedy clients are left", open(greedy));
    for (const auto& one : greedy) {
      if (one->socket()) one->reset();
    }
    greedy.clear();
    Peer next(s.clients);
    next.ask(1, s.length());
    s.kernel.sleep(60 * kMillisecond);
    if (begun.gone() || honest.gone()) {
      return s.fail("a client that holds little is ended for what greedy ones held");
    }
    s.fleet.hang(worker, false);
    if (!next.is_answered(2 * kSecond)) s.fail("after greedy clients one is not answered");
  }
  begun.send(frame.substr(100));
  const auto answer = begun.receive(kSecond);
  if (!answer || answer->id != protocol::MessageId::client_response) {
    s.fail("beside greedy clients a slow one is not answered");
  }
}

/// Unfinished frames together exceed the memory that the server may hold.
void many_hold_much(Scene& s) {
  Peers peers = connect(s, 130);
  const std::string part = frame_of(4, std::string(70000, 'x')).substr(0, 69'000);
  for (const auto& peer : peers) peer->send(part, 200 * kMillisecond);
  s.kernel.sleep(200 * kMillisecond);
  std::uint64_t held = 0;
  for (const auto& peer : peers) {
    if (const auto socket = peer->socket(); !peer->gone()) held += socket->sent - socket->under_way;
  }
  if (held > s.server.clients.memory * 21 / 20) {
    s.fail(fmt::format("clients hold {} bytes, {} are allowed", held, s.server.clients.memory));
  }
  if (!s.answers(2 * kSecond)) s.fail("beside clients that hold much requests are not answered");
}

void says_nothing_for_long(Scene& s) {
  Peer peer(s.clients);
  if (!peer.connected()) return;
  peer.ask(1, s.length());
  if (!peer.is_answered(kSecond)) s.fail("a client is not answered");
  if (peer.receive(2700 * kMillisecond)) s.fail("a silent client is ended before its time");
  const auto refusal = peer.receive(1500 * kMillisecond);
  if (!refusal || !refusal->refuses(Refusal::idle_timed_out)) s.fail("a silent client is kept");
}

/// The client reads nothing, or a little now and then.
void takes_nothing(Scene& s) {
  Peer peer(s.clients);
  const Time began = s.kernel.now;
  peer.ask(3000, s.load.longest);
  const bool little = s.kernel.random.one_in(2);
  while (s.kernel.now - began < 9 * kSecond && !peer.ended()) {
    s.kernel.sleep(500 * kMillisecond);
    if (little) peer.receive(0);
    peer.send("", 0);
    if (peer.gone()) return;
  }
  s.fail("a client that takes nothing is kept");
}

/// More clients than allowed connect: exactly the allowed number is accepted.
void too_many_come(Scene& s, std::size_t most) {
  Peers peers = connect(s, 2 * most);
  s.kernel.sleep(100 * kMillisecond);
  const std::size_t there = open(peers);
  if (there > most || there + 8 < most) {
    s.fail(fmt::format("{} clients are let in, {} may be", there, most));
  }
  peers.clear();
  s.kernel.sleep(200 * kMillisecond);
  if (!s.answers(kSecond)) s.fail("after too many clients nobody is let in");
}

/// Clients and strangers use all descriptors that they get; a worker can attach nevertheless.
void descriptors_are_few(Scene& s) {
  Peers clients = connect(s, 280);
  Peers strangers;
  for (int i = 0; i < 80; ++i) strangers.push_back(std::make_unique<Peer>(s.server.comch));
  s.kernel.sleep(100 * kMillisecond);
  Fleet::Worker& next = s.fleet.start(false);
  s.kernel.sleep(Fleet::kSettle);
  for (Fleet::Worker* const other : s.fleet.running()) {
    if (other != &next) s.fleet.kill(*other);
  }
  s.kernel.sleep(kSecond);
  for (const auto& client : clients) {
    if (client->gone()) continue;
    client->ask(1, s.length());
    if (!client->is_answered(kSecond)) s.fail("where descriptors are few no worker gets in");
    return;
  }
  s.fail("where descriptors are few no client is let in");
}

}  // namespace

const std::vector<Trial> kClientTrials{
    {"a client floods after a bad frame", floods_after_a_bad_frame},
    {"a client goes on after a bad frame", goes_on_after_a_bad_frame},
    {"a client sends half a frame", sends_half_a_frame},
    {"a worker lies", worker_lies},
    {"a worker miscounts", worker_miscounts},
};

void try_bound(Scene& s) {
  switch (s.tight) {
    case Tight::nothing: return;
    case Tight::memory:
      return s.kernel.random.one_in(2) ? many_are_quiet(s) : greedy_ones_come_and_go(s);
    case Tight::long_memory: return many_hold_much(s);
    case Tight::idle_time: return says_nothing_for_long(s);
    case Tight::output_time: return takes_nothing(s);
    case Tight::clients: return too_many_come(s, s.server.clients.connections);
    case Tight::of_an_address: return too_many_come(s, s.server.clients.per_address);
    case Tight::descriptors: return descriptors_are_few(s);
  }
}

}  // namespace offload::simulation
