#include "apps/rdma/rendezvous.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace offload::rdma_tool {
namespace {

using core::Error;
using core::ErrorCode;
namespace fs = std::filesystem;

/// Between two looks for a peer that is not there yet.
constexpr core::Duration kLookInterval = std::chrono::milliseconds(20);

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
    connect();
  }
}

Rendezvous::OwnFile::~OwnFile() {
  std::error_code ignored;
  if (!path.empty()) fs::remove(path, ignored);
}

void Rendezvous::exchange_files() {
  std::error_code ignored;
  if (options_.role == Role::requester) {
    fs::remove(options_.remote_descriptor, ignored);  // the answer to a former run
    write_file();
    read_file();
  } else {
    fs::remove(file_.path, ignored);
    read_file();
    write_file();
  }
}

/// Under another name first, so that nobody reads a part.
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
      throw Error(ErrorCode::timed_out, "'" + path + "' did not come in time: no peer");
    }
    environment_.pause(kLookInterval);
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

void Rendezvous::make_link(Way& way) {
  way.ended.reset();
  way.link.emplace(
      environment_.engine(), way.endpoint->connection(),
      rdma::CmConnection::Callbacks{[](rdma::CmConnection&) {},
                                    [this, &way](rdma::CmConnection&, const Error& why) {
                                      if (way.endpoint->connection().connected()) {
                                        environment_.peer_has_gone();
                                      }
                                      way.ended = why;
                                    }});
}

void Rendezvous::listen() {
  listener_.emplace(environment_.engine(), address(),
                    [this](rdma::ConnectRequest request) { accept(std::move(request)); });
  const auto connected = [this] {
    return ways_.size() == endpoints_.size() &&
           ways_.back().link->state() == rdma::CmConnection::State::connected;
  };
  environment_.wait(connected, "a peer");
}

void Rendezvous::accept(rdma::ConnectRequest request) {
  if (ways_.size() == endpoints_.size()) throw Error(ErrorCode::full, "one peer is there already");
  if (request.device_name() != environment_.device().name()) {
    throw Error(ErrorCode::invalid_value, "it came by " + request.device_name());
  }
  Way& way = ways_.emplace_back();
  way.endpoint = endpoints_[ways_.size() - 1].get();
  make_link(way);
  try {
    way.link->accept(std::move(request), options_.timeout);
  } catch (...) {
    ways_.pop_back();
    throw;
  }
}

void Rendezvous::connect() {
  for (const auto& endpoint : endpoints_) {
    Way& way = ways_.emplace_back();
    way.endpoint = endpoint.get();
    connect(way);
  }
}

/// Again and again, while there is time: the responder may start later.
void Rendezvous::connect(Way& way) {
  for (const auto end = core::Clock::now() + options_.timeout;;) {
    make_link(way);
    way.link->connect(address(), options_.timeout);
    environment_.wait(
        [&] { return way.ended || way.link->state() == rdma::CmConnection::State::connected; },
        "an answer of the peer");
    if (!way.ended) return;
    if (way.ended->code() != ErrorCode::not_connected || core::Clock::now() > end) {
      throw Error(*way.ended);
    }
    environment_.pause(kLookInterval);
  }
}

}  // namespace offload::rdma_tool
