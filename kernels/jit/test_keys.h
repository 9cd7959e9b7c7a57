// For tests: the keys that the modelled engine warms, written out.
#pragma once

#include <string>
#include <vector>

#include "kernels/jit/jit.h"

namespace warmgate::jit::testing {

inline Key compute_key(int block_size) {
  return parse_key("ComputePrefillMetadata{BLOCK_SIZE=" + std::to_string(block_size) + "}");
}

inline Key chunk_key(const std::string& start, const std::string& stop, int ratio,
                     const std::string& alignment, const std::string& dcp = "0,1,1") {
  const auto first = dcp.find(','), second = dcp.rfind(',');
  return parse_key("BuildPrefillChunkMetadata{query_slice_start=" + start +
                   ",query_slice_stop=" + stop + ",DCP_RANK=" + dcp.substr(0, first) +
                   ",DCP_WORLD=" + dcp.substr(first + 1, second - first - 1) +
                   ",DCP_INTERLEAVE=" + dcp.substr(second + 1) +
                   ",BLOCK_SIZE=1024,COMPRESS_RATIO=" + std::to_string(ratio) +
                   ",alignment=" + alignment + "}");
}

inline Key combine_key(int ratio, int top_k, int padded, const std::string& alignment,
                       int window = 128) {
  return parse_key("CombineTopkSwaIndices{COMPRESS_RATIO=" + std::to_string(ratio) +
                   ",TOP_K=" + std::to_string(top_k) + ",PADDED_TOP_K=" + std::to_string(padded) +
                   ",WINDOW_SIZE=" + std::to_string(window) + ",alignment=" + alignment + "}");
}

/// 36 keys; with ratios {0, 4, 128}, 12 of them divide by zero.
inline std::vector<Key> chunk_keys(const std::vector<int>& ratios) {
  std::vector<Key> keys;
  for (const char* start : {"div16", "one"}) {
    for (const char* stop : {"one", "any", "div16"}) {
      for (const int ratio : ratios) {
        for (const char* alignment : {"T", "F"})
          keys.push_back(chunk_key(start, stop, ratio, alignment));
      }
    }
  }
  return keys;
}

inline std::vector<Key> combine_keys() {
  std::vector<Key> keys;
  for (const char* alignment : {"TTTT", "TFFT", "FFFF"}) {
    keys.push_back(combine_key(1, 0, 512, alignment));
    keys.push_back(combine_key(4, 512, 512, alignment));
    keys.push_back(combine_key(4, 1024, 1024, alignment));
    keys.push_back(combine_key(128, 8192, 8192, alignment));
  }
  return keys;
}

inline std::vector<Key> compute_keys() {
  std::vector<Key> keys;
  for (int block = 1; block <= 1024; block *= 2) keys.push_back(compute_key(block));
  return keys;
}

/// All 59 that a start warms.
inline std::vector<Key> all_keys(const std::vector<int>& ratios) {
  std::vector<Key> keys = compute_keys();
  for (const Key& key : chunk_keys(ratios)) keys.push_back(key);
  for (const Key& key : combine_keys()) keys.push_back(key);
  return keys;
}

}  // namespace warmgate::jit::testing
