#include "comch/session/handshake.hpp"

#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

/// The next message, which has to be a `Message`.
template <class Message>
Message await(ControlConnection& connection, MessageId id) {
  const ControlMessage message = connection.await();
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

std::unique_ptr<ControlConnection> connect_as_worker(const Address& address) {
  auto connection = transport_of(address.scheme).connect(address);
  if (!address.local()) prove_as_worker(*connection, address.key);
  return connection;
}

void prove_as_worker(ControlConnection& connection, const Key& key) {
  const auto challenge = await<protocol::Challenge>(connection, MessageId::challenge);
  protocol::Proof proof;
  randomize(proof.nonce);
  proof.mac = make_mac(key, Role::worker, challenge.nonce, proof.nonce);
  connection.send(MessageId::proof, proof.encode());
  const auto answer = await<protocol::Proof>(connection, MessageId::proof);
  if (!equal_in_secret(answer.mac, make_mac(key, Role::server, proof.nonce, challenge.nonce))) {
    const std::string text = "the server does not have this worker's key";
    connection.refuse(protocol::Refusal::bad_key, text);
    throw Error(ErrorCode::not_permitted, text);
  }
}

protocol::Nonce send_challenge(ControlConnection& connection) {
  protocol::Challenge challenge;
  randomize(challenge.nonce);
  connection.send(MessageId::challenge, challenge.encode());
  return challenge.nonce;
}

bool take_proof(ControlConnection& connection, const Key& key, const protocol::Nonce& challenge,
                const ControlMessage& answer) {
  const auto proof = protocol::Proof::decode(answer.payload);
  if (answer.id != MessageId::proof || !proof) return false;
  if (!equal_in_secret(proof->mac, make_mac(key, Role::worker, challenge, proof->nonce))) {
    return false;
  }
  protocol::Proof own;
  own.nonce = challenge;
  own.mac = make_mac(key, Role::server, proof->nonce, challenge);
  connection.send(MessageId::proof, own.encode());
  return true;
}

}  // namespace offload::comch
