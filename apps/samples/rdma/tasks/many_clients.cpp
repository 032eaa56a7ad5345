/// A sample: one server sends to client processes that come by themselves, by librdmacm.
#include <list>

#include "apps/samples/rdma/tasks/end.hpp"
#include "core/exit_status.hpp"
#include "core/units.hpp"
#include "rdma_tasks/cm/cm_connection.hpp"

namespace {

using namespace offload;

constexpr const char* kName = "sample-rdma-tasks-many-clients";
constexpr std::size_t kClients = 3;
constexpr std::size_t kRoom = 64;  // bytes of a message

std::string address_of(const rdma::DeviceContext& device) {
  return rdma::to_string(rdma::choose_gid(device.gids(), {}).gid);
}

/// A process that knows the port alone, and sends back what it gets.
void client(int socket) {
  samples::End end(socket);
  auto sends = end.tasks<rdma::SendTask>();
  auto receives = end.tasks<rdma::ReceiveTask>();
  const auto port = core::parse_number<std::uint16_t>(samples::text_of(end.receive())).value();
  end.start();
  rdma::ReceiveTask& receive = samples::taken(receives);
  const auto room = end.room(0, kRoom);
  receive.destination = room.get();
  end.submit(receive);
  rdma::CmConnection cm(end.engine, end.connection, {[](auto&) {}, [](auto&, const auto&) {}});
  cm.connect({address_of(end.device), port}, samples::kPatience);
  end.finish(receive);
  rdma::SendTask& send = samples::taken(sends);
  send.source = room.get();
  end.run(send);
  end.wait_for_peer();
}

/// A client as the server has it.
struct Peer {
  Peer(samples::End& end, std::size_t number)
      : connection({end.device, end.domain, end.registrar, end.completions}, {}),
        cm(end.engine, connection, {[](auto&) {}, [](auto&, const auto&) {}}),
        sends(connection, 1, {[](auto&, void*) {}, [](auto&, void*) {}}),
        receives(connection, 1, {[](auto&, void*) {}, [](auto&, void*) {}}),
        message(end.text(2 * kRoom * number, "for client " + std::to_string(number))),
        answer(end.room(2 * kRoom * number + kRoom, kRoom)) {
    connection.connect(end.engine);
  }

  rdma::Connection connection;
  rdma::CmConnection cm;
  progress::TaskPool<rdma::SendTask> sends;
  progress::TaskPool<rdma::ReceiveTask> receives;
  memory::BufferRef message;
  memory::BufferRef answer;
};

int serve(const std::list<samples::SecondProcess>& clients) {
  samples::End end(-1);
  std::list<Peer> peers;
  const rdma::CmListener listener(end.engine, {address_of(end.device), 0}, [&](auto request) {
    Peer& peer = peers.emplace_back(end, peers.size());
    peer.connection.set_connection_callback([&peer](rdma::Connection& connection, bool connected) {
      if (!connected) return;
      rdma::SendTask& send = samples::taken(peer.sends);
      send.source = peer.message.get();
      static_cast<void>(connection.submit(send));
    });
    peer.connection.start();
    rdma::ReceiveTask& receive = samples::taken(peer.receives);
    receive.destination = peer.answer.get();
    static_cast<void>(peer.connection.submit(receive));
    peer.cm.accept(std::move(request), samples::kPatience);
  });
  const std::string port = ' ' + std::to_string(listener.port());
  for (const auto& client : clients) {
    core::check_errno(::send(client.socket(), port.data(), port.size(), MSG_NOSIGNAL), "send");
  }
  const auto answered = [](const Peer& peer) {
    return samples::text_of(peer.answer->data()) == samples::text_of(peer.message->data());
  };
  end.engine.run_until(
      [&] { return peers.size() >= kClients && std::ranges::all_of(peers, answered); },
      samples::kPatience);
  for (const auto& client : clients) ::send(client.socket(), " ", 1, MSG_NOSIGNAL);
  for (Peer& peer : peers) peer.connection.stop_within(samples::kPatience);
  for (const auto& client : clients) client.wait();
  fmt::print("{} of {} client processes answered\n", std::ranges::count_if(peers, answered),
             kClients);
  return std::ranges::count_if(peers, answered) == kClients ? 0 : 1;
}

int run() {
  if (const auto found = device::list_rdma_devices(); found.devices.empty()) {
    fmt::print("no RDMA device: {}\n", found.why_none);
    return samples::kNoDevice;
  }
  std::list<samples::SecondProcess> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.emplace_back(kName, client);
  return serve(clients);
}

}  // namespace

int main() {
  return core::exit_status_of(kName, run);
}
