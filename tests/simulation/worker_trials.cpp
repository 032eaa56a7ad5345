#include <algorithm>
#include <csignal>

#include "tests/simulation/kernel/files.hpp"
#include "tests/simulation/trials.hpp"

/// The effects on requests when workers exit, hang and attach.
namespace offload::simulation {
namespace {

using protocol::Refusal;

/// Returns whether the next `count` frames are refusals for this reason.
bool all_refused(Peer& peer, std::uint64_t count, Refusal reason, Time limit) {
  const Time deadline = kernel->now + limit;
  for (; count != 0; --count) {
    const auto frame = peer.receive(deadline - kernel->now);
    if (!frame || !frame->refuses(reason)) return false;
    peer.forget_oldest();
  }
  return true;
}

bool all_answered(Peer& peer, Time limit) {
  const Time deadline = kernel->now + limit;
  while (peer.owed() != 0) {
    if (!peer.is_answered(deadline - kernel->now)) return false;
  }
  return true;
}

/// Sends requests that stay with the server until they are refused: all of them are in flight.
void ask_in_flight(Scene& s, Peer& peer, std::uint64_t count) {
  peer.ask(count, s.length());
  s.kernel.sleep(100 * kMillisecond);
}

void no_worker_comes(Scene& s) {
  s.fleet.kill(s.one_worker());
  s.kernel.sleep(100 * kMillisecond);
  Peer peer(s.clients);
  peer.ask(3, s.length());
  if (peer.receive(1600 * kMillisecond)) s.fail("requests are refused before --worker-timeout");
  if (!all_refused(peer, 3, Refusal::worker_unavailable, 900 * kMillisecond)) {
    s.fail("without a worker requests are not refused after --worker-timeout");
  }
  peer.ask(2, s.length());
  if (!all_refused(peer, 2, Refusal::worker_unavailable, kSecond)) {
    s.fail("without a worker requests that come later are not refused");
  }
  s.one_more(false);
  if (!s.answers(kSecond)) s.fail("a worker has come, and requests are not answered");
}

void worker_comes_in_time(Scene& s) {
  s.fleet.kill(s.one_worker());
  Peer peer(s.clients);
  ask_in_flight(s, peer, 3);
  s.kernel.sleep(static_cast<Time>(s.kernel.random.below(800 * kMillisecond)));
  s.fleet.start(false);
  if (!all_answered(peer, kSecond)) s.fail("a worker came in time, and requests are not answered");
  for (int i = 0; i < 10; ++i) {
    s.kernel.sleep(300 * kMillisecond);
    if (!s.answers(kSecond)) return s.fail("a worker came in time, and later requests are refused");
  }
}

/// Its process is stopped, or its back end hangs, while it owes answers.
void worker_is_stuck(Scene& s) {
  Fleet::Worker& stuck = s.one_worker();
  Fleet::Worker& other = s.one_more(true);
  const bool process = s.kernel.random.one_in(2);
  process ? s.fleet.freeze(stuck) : s.fleet.hang(stuck, true);
  Peer peer(s.clients);
  const std::uint64_t length = s.length();  // drawn before the count, by each compiler
  peer.ask(1 + s.kernel.random.below(20), length);
  if (!all_answered(peer, 3800 * kMillisecond)) {  // a second of it one by one
    s.fail("what a stuck worker owes is not answered by the other one");
  }
  process ? s.fleet.thaw(stuck) : s.fleet.hang(stuck, false);
  s.kernel.sleep(Fleet::kSettle);
  if (!s.answers(kSecond)) s.fail("after a stuck worker goes on requests are not answered");
  if (s.kernel.random.one_in(2)) {
    s.fleet.kill(other);
    if (!s.answers(kSecond)) s.fail("a worker that was stuck does not serve again");
  }
}

void request_times_out(Scene& s) {
  Fleet::Worker& worker = s.one_worker();
  s.reload(2 * kSecond, s.kernel.random.one_in(2) ? "1" : "no number");
  s.reload(2 * kSecond, "1");
  if (s.kernel.random.one_in(2)) s.reload(kSecond, "no number");  // which changes nothing
  s.fleet.request_timeout = kSecond;
  s.fleet.hang(worker, true);
  Peer peer(s.clients);
  // A full channel takes no more; requests that wait in front of it are not refused.
  const std::uint64_t length = s.length();  // drawn before the count, by each compiler
  peer.ask(s.kernel.random.below(std::min(s.server.max_concurrent_messages, 4U)) + 1, length);
  const auto count = peer.owed();
  if (peer.receive(900 * kMillisecond)) s.fail("requests are refused before --request-timeout");
  if (!all_refused(peer, count, Refusal::request_timed_out, 600 * kMillisecond)) {
    s.fail("requests are not refused after --request-timeout");
  }
  s.fleet.hang(worker, false);
  ask_in_flight(s, peer, 2);
  if (!all_answered(peer, kSecond)) s.fail("after a time-out requests are not answered");
  s.reload(2 * kSecond, "30");
  s.fleet.request_timeout = 30 * kSecond;
}

/// Workers die as soon as one of their threads finds this in a channel, alone or in a batch.
const std::string kFatal(40, '\xfa');

void begin_to_die(Scene& s) {
  s.kernel.watches_requests = true;
  s.kernel.before_resume = [&s](const Fiber& fiber) {
    constexpr std::string_view kPart("\xfa\xfa\xfa\xfa\xfa\xfa\xfa\xfa");  // between two flags
    const bool dies = fiber.name.starts_with("worker-") &&
                      std::ranges::any_of(fiber.process->requests, [&](const auto& memory) {
                        return std::string_view(memory.data(), memory.size()).find(kPart) !=
                               std::string_view::npos;
                      });
    if (dies) s.fleet.kill(*fiber.process);
    return !dies;
  };
}

/// Only its client is refused, and another connection of its address waits. A client of another
/// address has all its answers.
void a_request_kills_workers(Scene& s) {
  // The memory is searched again and again, so it must not be long.
  if (s.server.max_concurrent_messages * s.server.max_message_length > 32 * 1024) return;
  if (!s.server.comch.starts_with("unix:")) return;
  Fleet::Worker& former = s.one_worker();
  begin_to_die(s);
  s.fleet.kill(former);  // its mappings are not known
  for (int i = 0; i < 4; ++i) s.one_more(i != 0);
  bool over = false;
  Process& hostile = s.kernel.start("culprit", [&s, &over] {
    Peer sibling(s.clients);
    Peer culprit(s.clients);
    culprit.send(frame_of(4, kFatal));
    const auto frame = culprit.receive(5 * kSecond);
    if (!frame || !frame->refuses(Refusal::worker_failed) || !culprit.ends(kSecond)) {
      s.fail("a request that kills workers is not refused");
    }
    sibling.send(frame_of(4, kFatal));
    if (sibling.receive(kSecond) || sibling.ended()) s.fail("an address does not wait");
    over = true;
  });
  hostile.host = INADDR_LOOPBACK + 1;
  Peer innocent(s.clients);
  while (!over && s.kernel.failures.empty()) {
    innocent.ask(3, s.length());
    if (!all_answered(innocent, kSecond)) s.fail("a request that kills workers harms others");
  }
  if (s.fleet.running().size() != 1) s.fail("a request does not kill three workers");
  s.kernel.before_resume = nullptr;  // before the sibling's request is taken after all
  if (!s.answers(kSecond)) s.fail("after a request that kills workers the last does not serve");
}

/// Each worker is lost with requests: one is alone with the third worker. Only its client is
/// refused.
void workers_are_lost_with_requests(Scene& s) {
  std::vector<Fleet::Worker*> workers{&s.one_worker()};
  for (int i = 0; i < 3; ++i) workers.push_back(&s.one_more(true));
  for (Fleet::Worker* const worker : workers) s.fleet.hang(*worker, true);
  Peer peer(s.clients);
  Peer other(s.clients);
  ask_in_flight(s, peer,
                s.kernel.random.below(std::min(s.server.max_concurrent_messages, 20U)) + 1);
  // Requests of two threads would take turns, with more than three workers.
  if (s.server.threads == 1) other.ask(1, 0);
  s.kernel.sleep(100 * kMillisecond);
  for (std::size_t i = 0; i < 3; ++i) {
    if (peer.receive(0) || other.receive(0)) {
      s.fail("requests are refused before one was alone with a lost worker");
    }
    s.fleet.kill(*workers[i]);
    s.kernel.sleep(60 * kMillisecond);  // less than other threads wait
  }
  s.kernel.sleep(300 * kMillisecond);
  Peer& culprit = other.gone() ? other : peer;
  Peer& innocent = other.gone() ? peer : other;
  if (!all_refused(culprit, 1, Refusal::worker_failed, 300 * kMillisecond) ||
      !culprit.ends(kSecond)) {
    s.fail("a request with which three workers were lost goes to the fourth");
  }
  Peer newcomer(s.clients);
  const auto frame = newcomer.receive(kSecond);  // it may get a part of it only
  if ((frame && !frame->refuses(Refusal::worker_failed)) || !newcomer.ends(kSecond)) {
    s.fail("the address of a request with which three workers were lost does not wait");
  }
  s.fleet.hang(*workers[3], false);
  // Both have the same address, which waits.
  if (!all_answered(innocent, Fleet::kAddressWaits)) {
    s.fail("another client loses requests with a culprit");
  }
  s.await_address();
  if (!s.answers(kSecond)) s.fail("after three lost workers the fourth does not serve");
  if (s.kernel.failures.empty()) a_request_kills_workers(s);
}

/// More requests are given up than one write gathers, some of clients that disconnect meanwhile.
void many_are_given_up(Scene& s) {
  Fleet::Worker& worker = s.one_worker();
  s.fleet.hang(worker, true);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(std::make_unique<Peer>(s.clients));
  for (const auto& peer : peers) {
    // Drawn before the count, by each compiler.
    const std::uint64_t length = s.kernel.random.below(8);
    peer->ask(200 + s.kernel.random.below(2000), length);
  }
  s.kernel.sleep(50 * kMillisecond);
  s.fleet.kill(worker);
  for (const auto& peer : peers) {
    const bool goes = s.kernel.random.one_in(2);
    if (!goes) continue;
    if (s.kernel.random.one_in(2)) {
      peer->receive(3 * kSecond);
      s.kernel.sleep(static_cast<Time>(s.kernel.random.below(300'000)));
    }
    peer->reset();
  }
  for (const auto& peer : peers) {
    if (peer->ended()) continue;
    // One may have received its first refusal before another disconnected.
    while (peer->owed() != 0) {
      const auto frame = peer->receive(4 * kSecond);
      if (!frame || !frame->refuses(Refusal::worker_unavailable)) {
        return s.fail("not all that a lost worker owed are refused");
      }
      peer->forget_oldest();
    }
  }
  // They connect and disconnect while all requests are refused.
  for (int i = 0; i < 6; ++i) {
    Peer peer(s.clients);
    // Drawn before the count, by each compiler.
    const std::uint64_t length = s.kernel.random.below(8);
    peer.ask(300 + s.kernel.random.below(2500), length);
    peer.await_sent(kSecond);
    if (s.kernel.random.one_in(2)) {
      s.kernel.sleep(static_cast<Time>(s.kernel.random.below(20'000)));
    }
    if (peer.socket()) peer.reset();
  }
  s.one_more(false);
  if (!s.answers(kSecond)) s.fail("after many refusals requests are not answered");
}

void worker_leaves_with_requests(Scene& s) {
  Fleet::Worker& worker = s.one_worker();
  s.fleet.hang(worker, true);
  Peer peer(s.clients);
  ask_in_flight(s, peer, 1 + s.kernel.random.below(20));
  // If the channel has no room, the rest waits for the next worker.
  const bool all_in = peer.owed() <= s.server.max_concurrent_messages;
  s.fleet.tell_to_leave(worker);
  s.kernel.sleep(300 * kMillisecond);
  s.fleet.hang(worker, false);
  if (all_in && !all_answered(peer, kSecond)) {
    s.fail("a worker that leaves does not answer what it has");
  }
  if (!s.await([&] { return s.kernel.ended(*worker.process); }, 2 * kSecond)) {
    s.fail("a worker that owes nothing is not let go");
  }
  if (s.kernel.ended(*s.process)) s.fail("the server ends with a worker");
  s.one_more(false);
  if (!s.answers(kSecond)) s.fail("after a worker has left the next one does not serve");
}

/// No request is lost, and the server exits at the end.
void worker_is_replaced(Scene& s) {
  Fleet::Worker& before = s.one_worker();
  Peer peer(s.clients);
  ask_in_flight(s, peer, 3);
  Fleet::Worker& next = s.fleet.start(false, true);
  s.kernel.sleep(static_cast<Time>(s.kernel.random.below(kSecond)));
  peer.ask(3, s.length());
  if (!all_answered(peer, kSecond)) s.fail("while a worker is replaced requests are not answered");
  s.fleet.note_replaced(before);
  if (!s.await([&] { return s.kernel.ended(*before.process); }, 3 * kSecond)) {
    s.fail("a worker that was replaced does not end");
  }
  if (!s.answers(kSecond)) s.fail("who has replaced a worker does not serve");
  Fleet::Worker& beside = s.one_more(false);
  s.kill_server();
  s.start_server();
  if (!s.await_service()) return;
  s.kernel.sleep(Fleet::kSettle);
  if (s.kernel.ended(*beside.process) || s.kernel.ended(*next.process)) {
    s.fail("who has replaced one worker replaces another");
  }
}

/// The channels move from one worker to the other and back: each continues where it was.
void channels_move_there_and_back(Scene& s) {
  Fleet::Worker* first = &s.one_worker();
  for (int i = 0; i < 3; ++i) {
    if (!s.answers(kSecond, 1 + s.kernel.random.below(30))) s.fail("one worker does not answer");
    Fleet::Worker& second = s.one_more(false);  // it takes half of the channels, if there are two
    for (int k = 0; k < 4; ++k) {
      if (!s.answers(kSecond, 1 + s.kernel.random.below(30))) s.fail("two workers do not answer");
    }
    Fleet::Worker* const goes = s.kernel.random.one_in(2) ? first : &second;
    if (goes == first) first = &second;
    s.kernel.random.one_in(2) ? s.fleet.kill(*goes) : s.fleet.tell_to_leave(*goes);
    for (int k = 0; k < 4; ++k) {
      if (!s.answers(kSecond, 1 + s.kernel.random.below(30))) s.fail("who stays does not answer");
    }
  }
}

/// The worker's machine is gone: nothing arrives from it, not even an end of the connection.
void machine_is_gone(Scene& s) {
  if (s.server.comch.starts_with("unix:")) return worker_is_stuck(s);
  Fleet::Worker& gone = s.one_worker();
  s.one_more(true);
  for (const auto& [fd, file] : gone.process->fds) {
    const auto socket = std::dynamic_pointer_cast<Socket>(file);
    if (!socket) continue;
    socket->cut = true;
    if (const auto other = socket->peer.lock()) other->cut = true;
  }
  s.fleet.note_replaced(gone);
  if (!s.answers(2800 * kMillisecond)) s.fail("what a worker owed whose machine is gone is lost");
  s.kernel.sleep(25 * kSecond);
  if (s.kernel.orphans != 0) s.fail("connections to a machine that is gone are held for long");
}

}  // namespace

const std::vector<Trial> kWorkerTrials{
    {"no worker comes", no_worker_comes},
    {"a worker comes in time", worker_comes_in_time},
    {"a worker is stuck", worker_is_stuck},
    {"a request times out", request_times_out},
    {"workers are lost with requests", workers_are_lost_with_requests},
    {"many are given up", many_are_given_up},
    {"a worker leaves with requests", worker_leaves_with_requests},
    {"a worker is replaced", worker_is_replaced},
    {"channels move there and back", channels_move_there_and_back},
    {"a machine is gone", machine_is_gone},
};

}  // namespace offload::simulation
