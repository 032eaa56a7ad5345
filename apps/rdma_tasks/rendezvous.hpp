#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/rdma_tasks/endpoint.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "rdma_tasks/cm/cm_connection.hpp"

namespace offload::rdma_tool {

using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

/// Connects the endpoints to those of the peer, by descriptor files or by librdmacm, and holds the
/// CM connections. The endpoints outlive it.
///
/// With files, the requester writes its own and waits for the responder's. The responder connects
/// by the requester's file before it writes its own, and so is ready for all that the requester
/// sends.
class Rendezvous {
 public:
  /// Throws as Environment::wait does, and Error: bad_message for a file that the peer did not
  /// write.
  Rendezvous(Environment& environment, const Options& options, const Endpoints& endpoints);
  Rendezvous& operator=(Rendezvous&&) = delete;

 private:
  /// This end's file, removed after the run.
  struct OwnFile {
    explicit OwnFile(std::string name) : path(std::move(name)) {}
    OwnFile& operator=(OwnFile&&) = delete;
    ~OwnFile();
    std::string path;  ///< empty for none
  };
  /// The CM connection of an endpoint.
  struct Connector {
    Endpoint* endpoint = nullptr;
    std::optional<rdma::CmConnection> cm;
    std::optional<core::Error> ended;

    [[nodiscard]] bool connected() const noexcept {
      return cm->state() == rdma::CmConnection::State::connected;
    }
  };

  void exchange_files();
  void write_file();
  void read_file();
  void listen();
  void accept(rdma::ConnectRequest request);
  void connect(Endpoint& endpoint);
  void make_cm(Connector& connector);
  [[nodiscard]] rdma::CmAddress address() const { return {options_.cm_address, options_.cm_port}; }

  Environment& environment_;
  const Options& options_;
  const Endpoints& endpoints_;
  OwnFile file_;
  std::list<Connector> connectors_;
  std::optional<rdma::CmListener> listener_;
};

}  // namespace offload::rdma_tool
