#pragma once

#include <memory>
#include <vector>

#include "tests/kernels/packets/wire.hpp"
#include "tests/kernels/rdma/model_card.hpp"

namespace offload::kernels::packets::test {

/// The peer on the wire of a card's queue, owned by a thread of the host: for tests that a CUDA
/// compiler reads too.
class FarEnd {
 public:
  explicit FarEnd(rdma::test::ModelCard& card);
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;
  ~FarEnd();

  [[nodiscard]] const rdma::test::ModelPair& pair() const;
  /// A packet to be sent.
  void add(Bytes packet);
  /// Sends the next one, if it can.
  bool send_next();
  /// Takes what has come.
  bool take();
  [[nodiscard]] const std::vector<Bytes>& came() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offload::kernels::packets::test
