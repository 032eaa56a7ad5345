#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/rdma/options.hpp"
#include "apps/rdma/wire.hpp"
#include "rdma/cm/cm_connection.hpp"

namespace offload::rdma_tool {

using Wires = std::vector<std::unique_ptr<Wire>>;

/// Connects wires to those of the peer, by files or by librdmacm, and keeps what that takes. The
/// wires outlive it.
///
/// By files: the requester writes its own and waits for the responder's, which connects to what it
/// reads and only then writes its own. So the responder is ready for whatever the requester sends.
class Meeting {
 public:
  /// Throws as Stage::wait does, and Error: bad_message for a file that is not the peer's.
  Meeting(Stage& stage, const Options& options, const Wires& wires);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() = default;

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
    Wire* wire = nullptr;
    std::optional<rdma::CmConnection> link;
    std::optional<core::Error> ended;
  };

  void meet_by_files();
  void write_file();
  void read_file();
  void listen();
  void connect();
  void connect(Way& way);
  void make_link(Way& way);
  void accept(rdma::ConnectRequest request);
  [[nodiscard]] rdma::CmAddress address() const { return {options_.cm_address, options_.cm_port}; }

  Stage& stage_;
  const Options& options_;
  const Wires& wires_;
  OwnFile file_;
  std::list<Way> ways_;
  std::optional<rdma::CmListener> listener_;
};

}  // namespace offload::rdma_tool
