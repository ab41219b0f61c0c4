// Rules of `distributed` on which frontend gets a request and where connections come from.

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "common/spec/bind.h"
#include "common/spec/rules.h"
#include "common/spec/words.h"
#include "common/sys/address.h"

namespace tutti::spec {
namespace {

constexpr std::int64_t kWeightSumMax = 100'000;  // after division by the common divisor
constexpr std::size_t kHeaderNameMax = 128;
constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";  // a token's, beside letters and digits

std::string weights_problem(const Distributed& distributed, std::size_t endpoints) {
  const auto& weights = distributed.weights;
  if (distributed.balance != base::Balance::kWeighted) {
    return weights.empty() ? "" : "is for balance weighted only: set that, or remove the weights";
  }
  if (weights.size() != endpoints) {
    return fmt::format("must have one weight per endpoint: {} for {}", endpoints, weights.size());
  }
  std::int64_t divisor = 0;
  std::int64_t sum = 0;
  for (const std::int64_t weight : weights) {
    if (weight < 0 || weight > UINT32_MAX) {
      return fmt::format("holds {}; a weight is a whole number from 0", weight);
    }
    divisor = std::gcd(divisor, weight);
    sum += weight;
  }
  if (sum == 0) {
    return "must have a weight above 0";
  }
  return sum / divisor <= kWeightSumMax
             ? ""
             : fmt::format("adds up to {} in lowest terms; round them to {} at most", sum / divisor,
                           kWeightSumMax);
}

bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

std::string header_problem(const Distributed& distributed, std::size_t endpoints) {
  std::string problem = header_name_problem(*distributed.affinity_header);
  if (!problem.empty()) {
    return problem;
  }
  if (endpoints > 1 && distributed.balance != base::Balance::kAffinity) {
    return "with several endpoints needs balance affinity, or one session would go to all of them";
  }
  return {};
}

std::string source_problem(const std::string& text, std::vector<sys::IpAddress>& seen) {
  const auto address = sys::parse_ip(text);
  if (!address) {
    return "is not an IP address; write digits, as in 10.0.0.5 or fd00::5, without port or name";
  }
  if (*address == sys::IpAddress{address->v6, {}}) {
    return "stands for any address; name one that is an agent's own";
  }
  if (std::find(seen.begin(), seen.end(), *address) != seen.end()) {
    return "is listed twice";
  }
  seen.push_back(*address);
  return {};
}

}  // namespace

std::string header_name_problem(const std::string& name) {
  if (!is_token(name) || name.size() > kHeaderNameMax) {
    return "is not the name of a header: letters, digits and dashes, as in X-Session-ID";
  }
  for (const char* own : {"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Accept",
                          "Authorization", "Connection", "Expect"}) {
    if (strcasecmp(name.c_str(), own) == 0) {
      return fmt::format("cannot be {}, which requests have already", own);
    }
  }
  return {};
}

void check_frontends(const Tree& tree, const Config& config, Findings& findings) {
  const Distributed& distributed = config.distributed;
  const std::size_t endpoints = config.endpoint_config.endpoints.size();
  const auto note = [&](const std::string& field, const std::string& problem) {
    if (!problem.empty()) {
      findings.wrong_at(place_of(tree, field), field, problem);
    }
  };
  if (findings.is_clean("endpoint_config")) {
    note("distributed.weights", weights_problem(distributed, endpoints));
    if (distributed.affinity_header) {
      note("distributed.affinity_header", header_problem(distributed, endpoints));
    }
  }
  std::vector<sys::IpAddress> seen;
  for (std::size_t i = 0; i < distributed.source_addresses.size(); ++i) {
    const std::string& text = distributed.source_addresses[i];
    const std::string problem = source_problem(text, seen);
    note(fmt::format("distributed.source_addresses.{}", i),
         problem.empty() ? "" : fmt::format("'{}' {}", text, problem));
  }
}

}  // namespace tutti::spec
