#include "comch/session/handshake.hpp"

#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

/// The next message, which has to be a `Message`.
template <class Message>
Message await(ControlSocket& socket, MessageId id) {
  const ControlMessage message = socket.await();
  if (message.id == MessageId::error) {
    throw Error(ErrorCode::not_permitted, protocol::parse_error(message.payload).text);
  }
  const auto decoded = Message::decode(message.payload);
  if (message.id != id || !decoded) {
    throw Error(ErrorCode::bad_message, "the peer does not begin with proofs of a key");
  }
  return *decoded;
}

}  // namespace

void prove_as_worker(ControlSocket& socket, const Key& key) {
  const auto challenge = await<protocol::Challenge>(socket, MessageId::challenge);
  protocol::Proof proof;
  randomize(proof.nonce);
  proof.mac = make_mac(key, Role::worker, challenge.nonce, proof.nonce);
  socket.send(MessageId::proof, proof.encode());
  const auto answer = await<protocol::Proof>(socket, MessageId::proof);
  if (!equal_in_secret(answer.mac, make_mac(key, Role::server, proof.nonce, challenge.nonce))) {
    const std::string text = "the server does not have this worker's key";
    socket.refuse(protocol::Refusal::bad_key, text);
    throw Error(ErrorCode::not_permitted, text);
  }
}

protocol::Nonce send_challenge(ControlSocket& socket) {
  protocol::Challenge challenge;
  randomize(challenge.nonce);
  socket.send(MessageId::challenge, challenge.encode());
  return challenge.nonce;
}

bool take_proof(ControlSocket& socket, const Key& key, const protocol::Nonce& challenge,
                const ControlMessage& answer) {
  const auto proof = protocol::Proof::decode(answer.payload);
  if (answer.id != MessageId::proof || !proof) return false;
  if (!equal_in_secret(proof->mac, make_mac(key, Role::worker, challenge, proof->nonce))) {
    return false;
  }
  protocol::Proof own;
  own.nonce = challenge;
  own.mac = make_mac(key, Role::server, proof->nonce, challenge);
  socket.send(MessageId::proof, own.encode());
  return true;
}

}  // namespace offload::comch
