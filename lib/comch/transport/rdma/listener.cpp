#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "comch/transport/rdma/control.hpp"
#include "core/error.hpp"
#include "net/every_address.hpp"

namespace offload::comch {
namespace {

/// Peers that connected and were not accepted yet.
constexpr std::size_t kMostArrived = 16;

class RdmaListener final : public Listener {
 public:
  explicit RdmaListener(const Address& address)
      : Listener(address),
        listeners_(net::listen_at_each(
            socket_addresses_of(address, true),
            [this](const net::SocketAddress& at) {
              return std::make_unique<rdma::CmListener>(
                  engine_, cm_address_of(at),
                  [this](rdma::ConnectRequest request) { take(std::move(request)); });
            },
            [](const auto& listener) { return listener->port(); })) {
    set_port(listeners_.front()->port());
  }

  std::unique_ptr<ControlConnection> accept() override {
    if (std::exchange(armed_, false)) engine_.disarm();
    while (arrived_.empty() && engine_.progress()) continue;
    if (arrived_.empty()) {
      engine_.arm();
      armed_ = true;
      while (arrived_.empty() && engine_.progress()) continue;
    }
    if (arrived_.empty()) return nullptr;
    engine_.notify();  // a caller that takes only some is called again for the rest
    auto connection = std::move(arrived_.front());
    arrived_.pop_front();
    return connection;
  }
  [[nodiscard]] int fd() const noexcept override { return engine_.fd(); }

 private:
  /// An adapter that is open for peers.
  struct Entry {
    std::shared_ptr<Adapter> adapter;
    std::unique_ptr<rdma::AsyncEvents> events;
    bool gone = false;  ///< removed or reset: it is opened anew for the next peer
  };

  /// rdma::CmListener logs what this throws, and rejects the peer.
  void take(rdma::ConnectRequest request) {
    if (arrived_.size() == kMostArrived) {
      throw core::Error(core::ErrorCode::full, "too many wait for the control thread");
    }
    const auto peer = net::SocketAddress::from(request.peer_address());
    if (!admits(peer)) throw core::Error(core::ErrorCode::not_permitted, "it is not admitted");
    const rdma::Route route = request.route();
    auto connection = std::make_unique<RdmaControlConnection>(
        adapter_of(route.device), path_of(route), request.peer_name(), peer);
    connection->accept(std::move(request));
    arrived_.push_back(std::move(connection));
  }
  std::shared_ptr<Adapter> adapter_of(const std::string& device) {
    Entry& entry = adapters_[device];
    if (!entry.adapter || entry.gone) {
      auto adapter = std::make_shared<Adapter>(device);
      entry.events = log_events(adapter->device, engine_, &entry.gone);
      entry.adapter = std::move(adapter);
      entry.gone = false;
    }
    return entry.adapter;
  }

  progress::Engine engine_;
  std::map<std::string, Entry> adapters_;  ///< by device
  std::deque<std::unique_ptr<ControlConnection>> arrived_;
  std::vector<std::unique_ptr<rdma::CmListener>> listeners_;  ///< one for each address
  bool armed_ = false;
};

}  // namespace

std::unique_ptr<Listener> listen_rdma(const Address& address) {
  return std::make_unique<RdmaListener>(address);
}

}  // namespace offload::comch
