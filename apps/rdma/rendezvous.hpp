#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/rdma/endpoint.hpp"
#include "apps/rdma/options.hpp"
#include "rdma/cm/cm_connection.hpp"

namespace offload::rdma_tool {

using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

/// Connects endpoints to those of the peer, by files or by librdmacm, and keeps what that takes.
/// The endpoints outlive it.
///
/// By files: the requester writes its own and waits for the responder's, which connects to what it
/// reads and only then writes its own. So the responder is ready for whatever the requester sends.
class Rendezvous {
 public:
  /// Throws as Environment::wait does, and Error: bad_message for a file that is not the peer's.
  Rendezvous(Environment& environment, const Options& options, const Endpoints& endpoints);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() = default;

 private:
  /// This end's file, which is gone after the run.
  struct OwnFile {
    explicit OwnFile(std::string name) : path(std::move(name)) {}
    OwnFile(const OwnFile&) = delete;
    OwnFile& operator=(const OwnFile&) = delete;
    ~OwnFile();
    std::string path;  ///< empty: there is none
  };
  struct Way {
    Endpoint* endpoint = nullptr;
    std::optional<rdma::CmConnection> link;
    std::optional<core::Error> ended;
  };

  void exchange_files();
  void write_file();
  void read_file();
  void listen();
  void connect();
  void connect(Way& way);
  void make_link(Way& way);
  void accept(rdma::ConnectRequest request);
  [[nodiscard]] rdma::CmAddress address() const { return {options_.cm_address, options_.cm_port}; }

  Environment& environment_;
  const Options& options_;
  const Endpoints& endpoints_;
  OwnFile file_;
  std::list<Way> ways_;
  std::optional<rdma::CmListener> listener_;
};

}  // namespace offload::rdma_tool
