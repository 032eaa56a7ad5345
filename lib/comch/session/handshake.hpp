#pragma once

#include "comch/session/control_socket.hpp"
#include "comch/session/key.hpp"

/// What is said first on each connection over TCP, before anything else is listened to:
///
///   server                        worker
///   challenge(nonce) ───────────▶
///        ◀─────────── proof(nonce, mac)   made with the key, over both nonces
///   proof(nonce, mac) ──────────▶         the server's
///
/// Who fails is told so (Refusal::bad_key) and disconnected. What follows is neither encrypted nor
/// signed: the key says who may attach, not who may listen on the wire.
namespace offload::comch {

/// The worker's part, whole. Throws Error: not_permitted if the server has another key or says that
/// this worker has, and what ControlSocket throws.
void prove_as_worker(ControlSocket& socket, const Key& key);

/// The server's first step: its challenge, which it has to remember. Throws Error.
protocol::Nonce send_challenge(ControlSocket& socket);

/// Its second, when an answer came: false if that does not prove anything, else the server has sent
/// its own proof. Throws Error.
bool take_proof(ControlSocket& socket, const Key& key, const protocol::Nonce& challenge,
                const ControlMessage& answer);

}  // namespace offload::comch
