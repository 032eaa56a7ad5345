#pragma once

#include "kernels/platform.hpp"

/// Reductions over a value of each lane of a service's group. Every lane must call these together,
/// and each gets the result. Values have 4 or 8 bytes. Sums of floating-point numbers differ in
/// their last bits with the size of the group.
namespace offload::kernels {

template <class Group, class Value>
OFFLOAD_HOST_DEVICE Value reduce_sum(const Group& group, Value value) {
  return group.reduce(value, [](Value a, Value b) { return a + b; });
}

template <class Group, class Value>
OFFLOAD_HOST_DEVICE Value reduce_min(const Group& group, Value value) {
  return group.reduce(value, [](Value a, Value b) { return b < a ? b : a; });
}

/// The bits that the value of one lane at least has.
template <class Group, class Value>
OFFLOAD_HOST_DEVICE Value reduce_or(const Group& group, Value value) {
  return group.reduce(value, [](Value a, Value b) { return a | b; });
}

}  // namespace offload::kernels
