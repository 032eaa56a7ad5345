#include "apps/rdma_tasks/rendezvous.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "core/log.hpp"

namespace offload::rdma_tool {
namespace {

using core::Error;
using core::ErrorCode;
namespace fs = std::filesystem;

/// Between two attempts to find a peer.
constexpr core::Duration kRetryInterval = std::chrono::milliseconds(20);

}  // namespace

Rendezvous::Rendezvous(Environment& environment, const Options& options, const Endpoints& endpoints)
    : environment_(environment),
      options_(options),
      endpoints_(endpoints),
      file_(options.local_descriptor) {
  if (options.cm_address.empty()) {
    exchange_files();
  } else if (options.role == Role::responder) {
    listen();
  } else {
    for (const auto& endpoint : endpoints) connect(*endpoint);
  }
}

Rendezvous::OwnFile::~OwnFile() {
  std::error_code ignored;
  if (!path.empty()) fs::remove(path, ignored);
}

void Rendezvous::exchange_files() {
  std::error_code ignored;
  if (options_.role == Role::requester) {
    fs::remove(options_.remote_descriptor, ignored);  // of an earlier run
    write_file();
    read_file();
  } else {
    fs::remove(file_.path, ignored);
    read_file();
    write_file();
  }
}

/// Writes a draft and renames it, so that the peer never reads a part.
void Rendezvous::write_file() {
  const std::string draft = file_.path + ".new";
  {
    std::ofstream file(draft, std::ios::binary);
    for (const auto& endpoint : endpoints_) {
      const auto bytes = endpoint->connection().descriptor().encode();
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    file.close();
    if (!file) core::throw_errno("cannot write '" + draft + "'");
  }
  fs::rename(draft, file_.path);
}

void Rendezvous::read_file() {
  const std::string& path = options_.remote_descriptor;
  for (const auto end = core::Clock::now() + options_.timeout; !fs::exists(path);) {
    if (core::Clock::now() > end) {
      throw Error(ErrorCode::timed_out, "'" + path + "' was not written in time: there is no peer");
    }
    environment_.pause(kRetryInterval);
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text(rdma::kDescriptorBytes * endpoints_.size() + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (static_cast<std::size_t>(file.gcount()) != text.size() - 1) {
    throw Error(ErrorCode::bad_message, "'" + path + "' does not describe " +
                                            std::to_string(endpoints_.size()) + " connections");
  }
  auto rest = std::as_bytes(std::span(text));
  for (const auto& endpoint : endpoints_) {
    const auto bytes = rest.first(rdma::kDescriptorBytes);
    endpoint->connection().connect_to(rdma::ConnectionDescriptor::decode(bytes));
    rest = rest.subspan(bytes.size());
  }
}

void Rendezvous::make_cm(Connector& connector) {
  connector.ended.reset();
  const auto ended = [this, &connector](rdma::CmConnection&, const Error& why) {
    if (connector.endpoint->connection().connected()) environment_.on_peer_disconnected();
    connector.ended = why;
  };
  connector.cm.emplace(environment_.engine(), connector.endpoint->connection(),
                       rdma::CmConnection::Callbacks{[](rdma::CmConnection&) {}, ended});
}

void Rendezvous::listen() {
  listener_.emplace(environment_.engine(), address(),
                    [this](rdma::ConnectRequest request) { accept(std::move(request)); });
  core::log_info("waiting at {} port {} for offload-rdma {} --role requester", options_.cm_address,
                 options_.cm_port, name_of(options_.operation));
  environment_.wait(
      [this] { return connectors_.size() == endpoints_.size() && connectors_.back().connected(); },
      "a peer");
}

void Rendezvous::accept(rdma::ConnectRequest request) {
  if (connectors_.size() == endpoints_.size()) {
    throw Error(ErrorCode::full, "another peer is already connected");
  }
  if (request.device_name() != environment_.device().name()) {
    throw Error(ErrorCode::invalid_value, "it connected through " + request.device_name());
  }
  Connector& connector = connectors_.emplace_back();
  connector.endpoint = endpoints_[connectors_.size() - 1].get();
  make_cm(connector);
  try {
    connector.cm->accept(std::move(request), options_.timeout);
  } catch (...) {
    connectors_.pop_back();
    throw;
  }
}

/// Retries until the time-out, as the responder may start later.
void Rendezvous::connect(Endpoint& endpoint) {
  Connector& connector = connectors_.emplace_back();
  connector.endpoint = &endpoint;
  for (const auto end = core::Clock::now() + options_.timeout;;) {
    make_cm(connector);
    connector.cm->connect(address(), options_.timeout);
    environment_.wait([&] { return connector.ended || connector.connected(); },
                      "an answer from the peer");
    if (!connector.ended) return;
    if (connector.ended->code() != ErrorCode::not_connected || core::Clock::now() > end) {
      throw Error(
          connector.ended->code(),
          fmt::format("{} port {}: {}; expected there: offload-rdma {} --role responder --cm {}",
                      options_.cm_address, options_.cm_port, connector.ended->what(),
                      name_of(options_.operation), options_.cm_address));
    }
    environment_.pause(kRetryInterval);
  }
}

}  // namespace offload::rdma_tool
