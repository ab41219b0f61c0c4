#pragma once

// ConversationSet: a multi-turn ("agentic") data set. One row of the file is one message; rows of
// one conversation follow each other. Each user or tool row is a sample: a request that holds the
// recorded messages before it and the row itself, never what a model answered during the run.
// Loading finds all problems, each with file:line; memory holds each message once, and a sample's
// history is put together when its body is rendered. Immutable after load, but for mark_systems().

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/base/time.h"
#include "common/base/vocabulary.h"
#include "common/data/dataset.h"
#include "common/data/request_body.h"

namespace tutti::data {

inline constexpr std::size_t kClientTurnsMax = 4096;  // of one conversation

struct Conversation {
  std::string id;
  std::string system;                      // empty: none
  std::vector<Row> rows;                   // in turn order: turn i + 1
  std::vector<base::SampleIndex> samples;  // its user and tool rows, in turn order
};

struct ClientTurn {
  std::uint32_t conversation = 0;
  std::uint32_t row = 0;   // of the conversation
  base::Duration delay{};  // delay_seconds; 0: none recorded
};

class ConversationSet {
 public:
  // `format`, `path` and `samples` (the first N rows) of the request count, nothing else does.
  static tl::expected<ConversationSet, base::Problems> load(const DatasetRequest& request);

  const std::vector<Conversation>& conversations() const { return conversations_; }
  // In the order of the file.
  const std::vector<ClientTurn>& samples() const { return samples_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // "file:12", where the sample's row stands.
  std::string where(base::SampleIndex sample) const;

  // Conversations without a system prompt, by name, as a problem each; what a salt needs.
  base::Problems without_system() const;
  // Gives every conversation the system prompt `marked(id, system)`, and every body a splice point
  // at its start.
  void mark_systems(
      const std::function<std::string(const std::string& id, const std::string& system)>& marked);

  // The sample as a row of messages and request fields, for render_body(). `mark` goes where the
  // body's splice point is: the row as it is sent then.
  Row row(base::SampleIndex sample, const std::string& mark = {}) const;
  // Empty, or why the sample's own fields cannot be sent with these params.
  std::string why_not_sendable(base::SampleIndex sample, const BodyParams& params) const;
  // `params` with splice_system as it must be.
  void render(base::SampleIndex sample, BodyParams params, RenderedBody& out) const;

 private:
  friend class ConversationLoader;
  ConversationSet() = default;

  std::string path_;
  std::string format_;
  std::vector<Conversation> conversations_;
  std::vector<ClientTurn> samples_;
  std::vector<std::string> notes_;
  bool marked_ = false;
};

}  // namespace tutti::data
