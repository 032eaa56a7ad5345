#pragma once

#include <string>

#include "apps/doctor/finding.hpp"
#include "apps/doctor/tree.hpp"

/// A GPU and a network card that must work together.
namespace offload::doctor {

struct Pair {
  std::string gpu;        ///< its PCI address; empty: on another machine, as for a DPU
  std::string device;     ///< the card's RDMA device: "mlx5_0"
  std::string card;       ///< the PCI address of its function, of an SF that of the parent
  std::string interface;  ///< the network interface of its first port; empty: unknown
};

/// Finds what a user names: the GPU by its PCI address, "-" for none on this machine; the card by
/// its RDMA device, network interface or PCI address. Throws Error (not_found) with a list of all.
Pair find_pair(const Tree& tree, const std::string& gpu, const std::string& nic);

/// Checks all that the two need, on this side of the network.
Findings check_pair(const Tree& tree, const Pair& pair);

// ---- Its parts

// From the GPU to the card and back (pair_checks.cpp).
Findings check_pair_path(const Tree& tree, const Pair& pair);
Findings check_pair_acs(const Tree& tree, const Pair& pair);
Findings check_write_combining(const Tree& tree, const Pair& pair);
Findings check_relaxed_ordering(const Tree& tree, const Pair& pair);

// From the card to its peers (fabric_checks.cpp).
Findings check_adaptive_routing(const Tree& tree, const Pair& pair);
Findings check_traffic_class(const Tree& tree, const Pair& pair);
/// Checks the mode, SFs, representors and bridges of a BlueField; no findings for other cards.
Findings check_bluefield(const Tree& tree, const Pair& pair);

}  // namespace offload::doctor
