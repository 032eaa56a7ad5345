#pragma once

#include <memory>

#include "comch/session/keyring.hpp"
#include "comch/transport/control_connection.hpp"

/// The first messages of each connection over a network where the transport does not prove the key
/// itself, as TLS does; nothing else is accepted before them:
///
///   server                                  worker
///   challenge(version, instance, nonce) ──▶
///        ◀────── proof(version, nonce, mac)   the worker's
///   proof(version, nonce, mac) ───────────▶   the server's
///
/// A MAC is made with the key, over the role of who makes it and all that the two have said and
/// know of the connection: versions, instance, nonces and endpoints. So it is worth nothing on
/// another connection, to another server, or to who relays between two connections. What follows is
/// neither encrypted nor authenticated.
///
/// A peer whose proof is wrong gets an error message (Refusal::bad_key) and is disconnected.
namespace offload::comch {

/// Connects to a server; over a network its key is proven, in kHandshakeTime a step. Throws Error:
/// what Transport::connect and prove_as_worker() throw.
std::unique_ptr<ControlConnection> connect_as_worker(const Address& address);

/// The worker's whole part, where there is one: with the first of the address's keys. Throws Error:
/// connection_aborted if the server proves nothing, whatever it says in place of that, since
/// anybody could say it; and what ControlConnection throws.
void prove_as_worker(ControlConnection& connection, const Address& address);

/// The server's first step: its challenge, which it has to remember. Throws Error.
protocol::Challenge send_challenge(ControlConnection& connection,
                                   const protocol::InstanceId& instance);

/// Its second, when an answer came: false if that does not prove one of the keys, else the server
/// has sent its own proof. Throws Error.
bool take_proof(ControlConnection& connection, const Keyring& keys,
                const protocol::Challenge& challenge, const ControlMessage& answer);

}  // namespace offload::comch
