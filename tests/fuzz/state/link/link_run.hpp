#pragma once

#include "core/log.hpp"
#include "tests/fuzz/state/descriptors.hpp"
#include "tests/fuzz/state/link/server_session_bench.hpp"
#include "tests/fuzz/state/link/worker_session_bench.hpp"

/// The control link after the proof of the key: the server's session with workers that the script
/// plays, or the worker's with a server that it plays. One thread.
///
/// The input: a byte (1: it is the worker's session), then of a worker a byte of settings (2: it
/// writes its slots itself; 4: it serves two channels only), then steps. A step is a byte, its low
/// four bits the kind, the next two the connection (of a worker: 0 the control connection, then
/// those of its channels), 0x40: no turn of the session's engine follows.
///
///   0  connect (the server's)         6  nothing but the turn
///   1  send a message                 7  time passes: quarters of a second; a tick
///   2  send a message: bytes kept     8  the program calls the session: what
///   3  send bytes: count, bytes       9  end sending
///   4  close                         10  send a message with descriptors
///   5  read                          11  send a channel with descriptors (to a worker)
///                                    12  do the next right thing
///                                    13  do the last one again; 14: skip one
///
/// Messages and descriptors have further operands: make_message(), pick_descriptors().
///
/// Checks: both ends send only messages that they may send, in order; the program hears of events
/// in order, and once; a session that was not lost continues correctly, one that was has reported
/// the reason; at the end the next worker attaches, and no descriptor is left.
namespace offload::fuzz {

inline void run_link(const std::uint8_t* data, std::size_t size, const std::string& text) {
  static comch::Address address = [&] {
    comch::Address made = comch::Address::parse(text);
    made.insecure = true;
    return made;
  }();
  (void)Descriptors::instance();
  (void)FakeNetwork::instance().listener_fd();
  Script script(data, size);
  const bool is_worker = (script.byte() & 1U) != 0;
  comch::Address own = address;
  if (is_worker) {
    if (own.local()) own.path += "-of-the-script";
    WorkerSessionBench::prepare(own);
  }
  const NoDescriptorStays no_descriptor_stays;
  VirtualTime time;
  if (is_worker) {
    WorkerSessionBench(script, own, time).run();
  } else {
    ServerSessionBench(script, own, time).run();
  }
}

}  // namespace offload::fuzz
