#pragma once

#include <memory>

#include "comch/session/key.hpp"
#include "comch/transport/control_connection.hpp"

/// The first messages of each connection over a network; nothing else is accepted before them:
///
///   server                        worker
///   challenge(nonce) ───────────▶
///        ◀─────────── proof(nonce, mac)   made with the key, over both nonces
///   proof(nonce, mac) ──────────▶         the server's
///
/// A peer whose proof is wrong gets an error message (Refusal::bad_key) and is disconnected. What
/// follows is neither encrypted nor signed: the key decides who may attach, not who may listen in.
namespace offload::comch {

/// Connects to a server, over a network with the proofs, which take kHandshakeTime a step. Throws
/// Error: what Transport::connect and prove_as_worker() throw.
std::unique_ptr<ControlConnection> connect_as_worker(const Address& address);

/// The worker's whole part. Throws Error: not_permitted if the server has another key or says that
/// this worker has, and what ControlConnection throws.
void prove_as_worker(ControlConnection& connection, const Key& key);

/// The server's first step: its challenge, which it has to remember. Throws Error.
protocol::Nonce send_challenge(ControlConnection& connection);

/// Its second, when an answer came: false if that does not prove anything, else the server has sent
/// its own proof. Throws Error.
bool take_proof(ControlConnection& connection, const Key& key, const protocol::Nonce& challenge,
                const ControlMessage& answer);

}  // namespace offload::comch
