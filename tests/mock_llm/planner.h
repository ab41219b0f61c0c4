#pragma once

// Decides, from a request's bytes alone, what its answer will be: length, waits, usage, fault.
// Holds the arrival-order generator and the model names; pure but for them. One thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "tests/mock_llm/chat_request.h"
#include "tests/mock_llm/http_request.h"
#include "tests/mock_llm/options.h"
#include "tests/mock_llm/reply.h"

namespace tutti::mock_llm {

// An answer that is an error before it began.
struct BadRequest {
  int status = 400;
  std::string message;
};

class Planner {
 public:
  explicit Planner(const MockOptions& options);

  // A POST to one of the completion routes. Each call counts as one request, good or bad.
  tl::expected<Exchange, BadRequest> plan(const RequestHead& head, std::string_view body,
                                          std::uint32_t now_unix_s);

  // JSON-escaped; the first `named_models` came from the options, the rest from requests.
  const std::vector<std::string>& models() const { return escaped_; }
  std::size_t named_models() const { return options_.models.size(); }

 private:
  tl::expected<std::uint16_t, BadRequest> model_index(std::string_view name);
  tl::expected<Fault, BadRequest> choose_fault(const RequestHead& head, const ChatRequest& request,
                                               std::uint64_t number, double chance) const;
  void set_length(Exchange& exchange, const ChatRequest& request, RequestDraws& draws) const;

  const MockOptions& options_;
  base::Mt19937 arrivals_;
  ChatReader reader_;
  std::vector<std::string> names_;    // as written
  std::vector<std::string> escaped_;  // the same, ready for JSON
  std::uint64_t requests_ = 0;
};

}  // namespace tutti::mock_llm
