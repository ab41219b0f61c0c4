// Replies of the two APIs that are not OpenAI's: SGLang's frames, whose text is all text so far,
// and the documents that name a video.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/reply_driver.h"

namespace tutti::target {
namespace {

using ::testing::HasSubstr;
using wire::Failure;
using wire::FinishReason;
using wire::Outcome;
using wire::Record;

std::string frame_json(std::string_view text, int tokens, std::string_view finish = "null") {
  return "{\"text\":\"" + std::string(text) + "\",\"output_ids\":[1],\"meta_info\":{\"id\":\"a\"," +
         "\"finish_reason\":" + std::string(finish) +
         ",\"prompt_tokens\":4,\"completion_tokens\":" + std::to_string(tokens) + "}}";
}
std::string frame(std::string_view text, int tokens, std::string_view finish = "null") {
  return event(frame_json(text, tokens, finish));
}
const char* const kStop = R"({"type":"stop","matched":2})";

Record sglang(std::vector<std::string> segments, EndKind end = EndKind::kComplete) {
  Script script = stream(std::move(segments));
  script.api = base::ApiType::kSglang;
  script.end = end;
  return play(script);
}

Record whole(base::ApiType api, std::string body) {
  Script script = stream({std::move(body)});
  script.api = api;
  script.want_stream = false;
  script.content_type = "application/json";
  return play(script);
}

TEST(ReplySglang, TakesTheNewEndOfEachFrame) {
  const Record r =
      sglang({frame("", 0), frame("He", 1), frame("Hey", 2), frame("Hey", 2, kStop), kDone});
  EXPECT_EQ(r.outcome, Outcome::kOk) << r.error_message;
  EXPECT_EQ(r.content_events, 2U);
  EXPECT_EQ(r.first_token_at, at_ms(2));
  EXPECT_EQ(r.last_token_at, at_ms(3));
  EXPECT_EQ(r.output.content_first, "He");
  EXPECT_EQ(r.output.content_rest, "y");
  EXPECT_EQ(r.finish_reason, FinishReason::kStop);
  EXPECT_EQ(r.prompt_tokens, 4);
  EXPECT_EQ(r.completion_tokens, 2);
}

TEST(ReplySglang, AStandingCountIsNoTokenButNoTextIsLost) {
  const Record r = sglang({frame("a", 1), frame("ab", 1), frame("abc", 2, kStop), kDone});
  EXPECT_EQ(r.content_events, 2U);
  EXPECT_EQ(r.output.content_first + r.output.content_rest, "abc");
}

TEST(ReplySglang, TheLastWordCountsWhenTextIsTakenBack) {
  const Record r = sglang(
      {frame("x\xEF\xBF\xBD", 1), frame("x\xC3\xA9y", 2), frame("x\xC3\xA9y", 2, kStop), kDone});
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.output.content_first + r.output.content_rest, "x\xC3\xA9y");
  EXPECT_EQ(sglang({frame("ab", 1), frame("a", 2, kStop), kDone}).output.content_first, "a");
}

TEST(ReplySglang, JudgesEndsLikeEveryStream) {
  EXPECT_EQ(sglang({frame("a", 1)}).failure, Failure::kTruncated);
  EXPECT_EQ(sglang({frame("a", 1)}, EndKind::kReset).failure, Failure::kReset);
  EXPECT_EQ(sglang({frame("a", 1), kDone}).outcome, Outcome::kOk);
  EXPECT_EQ(sglang({frame("a", 1), event("{}"), kDone}).malformed_events, 1U);
  EXPECT_EQ(sglang({event(R"({"text":5})"), kDone}).failure, Failure::kBadReply);
  const Record aborted =
      sglang({frame("a", 1, R"({"type":"abort","message":"no room","status_code":503})"), kDone});
  EXPECT_EQ(aborted.failure, Failure::kStreamError);
  EXPECT_EQ(aborted.http_status, 503);
  EXPECT_THAT(aborted.error_message, HasSubstr("no room"));
  EXPECT_EQ(sglang({event(R"({"error":{"message":"m"}})"), kDone}).failure, Failure::kStreamError);
}

TEST(ReplySglang, SaysTheSameForEverySplit) {
  const std::string all = joined({frame("h\xC3\xA9", 1), frame("h\xC3\xA9y", 2, kStop), kDone});
  const std::string expected = facts_of(sglang({all}));
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_EQ(facts_of(sglang({all.substr(0, i), all.substr(i)})), expected) << i;
  }
}

TEST(ReplySglang, ReadsADocument) {
  const Record r =
      whole(base::ApiType::kSglang, frame_json("Hey", 3, R"({"type":"length","length":3})"));
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.output.content_first, "Hey");
  EXPECT_EQ(r.finish_reason, FinishReason::kLength);
  EXPECT_EQ(r.completion_tokens, 3);
  EXPECT_EQ(whole(base::ApiType::kSglang, R"({"text":"x"})").outcome, Outcome::kOk);  // no meta
  EXPECT_EQ(whole(base::ApiType::kSglang, "{}").failure, Failure::kBadReply);
  EXPECT_EQ(whole(base::ApiType::kSglang, R"([{"text":"x"}])").failure, Failure::kBadReply);
}

TEST(ReplyVideo, NamesTheVideo) {
  const base::ApiType api = base::ApiType::kVideogen;
  const Record path = whole(api, R"({"video_id":"1","video_path":"/v/1.mp4"})");
  EXPECT_EQ(path.outcome, Outcome::kOk);
  EXPECT_EQ(path.output.content_first, "/v/1.mp4");
  EXPECT_FALSE(path.first_token_at.is_set());
  const Record bytes = whole(api, R"({"video_id":"1","video_bytes":"AAAA"})");
  EXPECT_EQ(bytes.outcome, Outcome::kOk);
  EXPECT_EQ(bytes.output.content_first, "");
  EXPECT_EQ(whole(api, R"({"video_id":"1"})").failure, Failure::kBadReply);
  EXPECT_EQ(whole(api, R"({"video_path":5})").failure, Failure::kBadReply);
  EXPECT_EQ(whole(api, R"({"error":"full"})").failure, Failure::kStreamError);
}

TEST(ReplyVideo, ARawVideoWithoutAFolderIsAFailureThatSaysSo) {
  const Record raw = whole(base::ApiType::kVideogen, std::string("\0\0\0\x18"
                                                                 "ftypisom\0\0",
                                                                 14));
  EXPECT_EQ(raw.failure, Failure::kBadReply);
  EXPECT_THAT(raw.error_message, HasSubstr("raw MP4 of 14 bytes"));
  EXPECT_THAT(raw.error_message, HasSubstr("set INFERENCE_ENDPOINT_VIDEOGEN_FALLBACK_DIR"));
  EXPECT_THAT(raw.error_message, HasSubstr("response_format video_path"));
}

TEST(ReplyVideo, ARawVideoGoesToTheFolderUnderItsQuerysId) {
  std::string name = (std::filesystem::temp_directory_path() / "tutti-videos-XXXXXX").string();
  const std::string base = mkdtemp(name.data());
  const std::string bytes(
      "\0\0\0\x18"
      "ftypisom\0\n more",
      20);
  const VideoFolder folder{base + "/new", base::Id{1, 2}};
  Reply reply(base::ApiType::kVideogen, &folder);
  Record record;
  record.phase = 1;
  record.seq = 7;
  reply.start(false, false);
  reply.on_header(200, "video/mp4");
  reply.on_body(bytes.substr(0, 6), at_ms(1));
  reply.on_body(bytes.substr(6), at_ms(2));
  reply.on_end(EndKind::kComplete, at_ms(3), record);
  EXPECT_EQ(record.outcome, Outcome::kOk) << record.error_message;
  const std::string path = folder.path + "/" + base::query_id(folder.run, 1, 7) + ".mp4";
  EXPECT_EQ(record.output.content_first, path);
  std::ifstream file(path, std::ios::binary);
  const std::string kept{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(kept, bytes);

  const VideoFolder bad{"/proc/nowhere", base::Id{1, 2}};
  Reply other(base::ApiType::kVideogen, &bad);
  other.start(false, false);
  other.on_header(200, "video/mp4");
  other.on_body(bytes, at_ms(1));
  other.on_end(EndKind::kComplete, at_ms(2), record);
  EXPECT_EQ(record.failure, Failure::kBadReply);
  EXPECT_THAT(record.error_message, HasSubstr("cannot be written to /proc/nowhere/"));
  std::filesystem::remove_all(base);
}

TEST(ReplyVideo, IsBounded) {
  Script script = stream(std::vector<std::string>(65, std::string(std::size_t{1} << 20, 'x')));
  script.api = base::ApiType::kVideogen;
  const Record r = play(script);
  EXPECT_EQ(r.failure, Failure::kBadReply);
  EXPECT_THAT(r.error_message, HasSubstr("larger than 64 MiB"));
}

}  // namespace
}  // namespace tutti::target
