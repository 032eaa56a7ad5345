#include <csignal>

#include "tests/simulation/trials.hpp"

/// The effects on clients and workers when the server exits and starts again.
namespace offload::simulation {
namespace {

void comes_again(Scene& s) {
  s.start_server();
  if (!s.await_service()) return;
  if (!s.answers(kSecond)) s.fail("the next server does not answer");
}

void server_is_killed(Scene& s) {
  s.one_worker();
  Peer peer(s.clients);
  peer.ask(3, s.length());
  s.kill_server();
  if (!peer.ends(kSecond)) s.fail("a killed server's client keeps its connection");
  s.kernel.sleep(static_cast<Time>(s.kernel.random.below(3 * kSecond)));
  comes_again(s);
}

/// Clients that are connected, that have just connected, and that have sent requests.
void server_is_told_to_end(Scene& s) {
  Fleet::Worker& worker = s.one_worker();
  Peer silent(s.clients);
  Peer asking(s.clients);
  const bool owed = s.kernel.random.one_in(2);
  if (owed) s.fleet.hang(worker, true);
  const std::uint64_t length = s.length();  // drawn before the count, by each compiler
  asking.ask(1 + s.kernel.random.below(std::min(s.server.max_concurrent_messages, 8U)), length);
  s.kernel.sleep(100 * kMillisecond);
  // A new client may be in the backlog, or on its way to its thread, which is busy with others.
  const bool busy = s.kernel.random.one_in(2);
  if (busy) freeze_threads(*s.process, "io-", true);
  Peer newcomer(s.clients);
  s.kernel.sleep(static_cast<Time>(s.kernel.random.below(200'000)));
  s.kernel.at(s.kernel.now + kMillisecond, [&s] { freeze_threads(*s.process, "io-", false); });
  const Time told = s.kernel.now;
  s.down_since = told;
  s.kernel.signal(*s.process, SIGTERM);
  if (owed) {
    s.kernel.sleep(300 * kMillisecond);
    s.fleet.hang(worker, false);
  }
  while (asking.owed() != 0) {
    if (!asking.is_answered(2 * kSecond)) {
      s.fail("a server that ends does not answer what it has read");
      break;
    }
  }
  if (!silent.ends(kSecond) || !asking.ends(kSecond) || !newcomer.ends(kSecond)) {
    s.fail("a server that ends keeps a connection");
  }
  if (!s.await([&] { return s.kernel.ended(*s.process); }, told + 2 * kSecond - s.kernel.now)) {
    s.fail("a server that owes nothing takes long to end");
  }
  s.await([&] { return s.kernel.ended(*s.process); }, 10 * kSecond);
  s.kernel.sleep(static_cast<Time>(s.kernel.random.below(2 * kSecond)));
  if (s.kernel.ended(*worker.process)) s.fail("a worker ends with its server");
  comes_again(s);
}

}  // namespace

const std::vector<Trial> kServerTrials{
    {"the server is killed", server_is_killed},
    {"the server is told to end", server_is_told_to_end},
};

}  // namespace offload::simulation
