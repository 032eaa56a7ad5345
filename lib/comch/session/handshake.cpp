#include "comch/session/handshake.hpp"

#include <string_view>

#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "protocol/bytes.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

/// What both have said before a proof, and what both know of the connection.
struct Transcript {
  protocol::Challenge challenge;
  std::uint16_t worker_version;
  protocol::Nonce worker_nonce;
  std::vector<std::byte> endpoints;
};

/// `role`: "server" or "worker", who makes it.
protocol::Mac make_mac(const Key& key, std::string_view role, const Transcript& transcript) {
  const std::string label = "dpu-gpu-offload " + std::string(role) + " 2";
  const auto said = protocol::Writer{}
                        .integer(transcript.challenge.version)
                        .integer(transcript.worker_version)
                        .fixed(transcript.challenge.instance)
                        .fixed(transcript.challenge.nonce)
                        .fixed(transcript.worker_nonce)
                        .take();
  return hmac(key, {std::as_bytes(std::span(label)), said, transcript.endpoints});
}

/// The next message, which has to be a `Message`.
template <class Message>
Message await(ControlConnection& connection, MessageId id) {
  const ControlMessage message = connection.await();
  if (message.id == MessageId::error) {
    throw Error(ErrorCode::connection_aborted, "a server that has not proven its key says: " +
                                                   protocol::parse_error(message.payload).text);
  }
  const auto decoded = Message::decode(message.payload);
  if (message.id != id || !decoded) {
    throw Error(ErrorCode::connection_aborted, "the peer does not begin with proofs of a key");
  }
  return *decoded;
}

}  // namespace

std::unique_ptr<ControlConnection> connect_as_worker(const Address& address) {
  auto connection = transport_of(address.scheme).connect(address);
  prove_as_worker(*connection, address);
  return connection;
}

void prove_as_worker(ControlConnection& connection, const Address& address) {
  if (!address.takes_key() || transport_of(address.scheme).has_tls) return;
  const Key& key = address.keys->keys().front();
  const auto challenge = await<protocol::Challenge>(connection, MessageId::challenge);
  protocol::Proof proof;
  randomize(proof.nonce);
  const Transcript transcript{challenge, proof.version, proof.nonce, connection.endpoints()};
  proof.mac = make_mac(key, "worker", transcript);
  connection.send(MessageId::proof, proof.encode());
  const auto answer = await<protocol::Proof>(connection, MessageId::proof);
  if (!equal_in_secret(answer.mac, make_mac(key, "server", transcript))) {
    const std::string text = "the server does not have this worker's key";
    connection.refuse(protocol::Refusal::bad_key, text);
    throw Error(ErrorCode::connection_aborted, text);
  }
}

protocol::Challenge send_challenge(ControlConnection& connection,
                                   const protocol::InstanceId& instance) {
  protocol::Challenge challenge;
  challenge.instance = instance;
  randomize(challenge.nonce);
  connection.send(MessageId::challenge, challenge.encode());
  return challenge;
}

bool take_proof(ControlConnection& connection, const Keyring& keys,
                const protocol::Challenge& challenge, const ControlMessage& answer) {
  const auto proof = protocol::Proof::decode(answer.payload);
  if (answer.id != MessageId::proof || !proof) return false;
  const Transcript transcript{challenge, proof->version, proof->nonce, connection.endpoints()};
  for (const Key& key : keys.keys()) {
    if (!equal_in_secret(proof->mac, make_mac(key, "worker", transcript))) continue;
    protocol::Proof own;
    own.nonce = challenge.nonce;
    own.mac = make_mac(key, "server", transcript);
    connection.send(MessageId::proof, own.encode());
    return true;
  }
  return false;
}

}  // namespace offload::comch
