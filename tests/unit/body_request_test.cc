#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/data/request_body.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Row row(std::string_view json, std::uint32_t line = 1) {
  return Row{text::read_json(json).value(), line};
}

BodyParams model_m(bool stream = false) {
  BodyParams params;
  params.model = "m";
  params.stream = stream;
  return params;
}

std::string body(std::string_view json, const BodyParams& params) {
  RenderedBody out;
  render_body(row(json), params, out);
  return out.bytes;
}

TEST(RequestBody, B1StreamingDefaults) {
  EXPECT_EQ(body(R"({"prompt":"Hi"})", model_m(true)),
            R"({"model":"m","messages":[{"role":"user","content":"Hi"}],)"
            R"("max_completion_tokens":1024,"stream":true})");
}

TEST(RequestBody, B2OfflineWithSystemAndSampling) {
  BodyParams params = model_m();
  params.temperature = 0.7;
  params.top_k = 50;
  EXPECT_EQ(body(R"({"prompt":"Hi","system":"S"})", params),
            R"({"model":"m","messages":[{"role":"system","content":"S"},{"role":"user",)"
            R"("content":"Hi"}],"temperature":0.7,"max_completion_tokens":1024,"top_k":50})");
}

TEST(RequestBody, B3ATemperatureOfZeroKeepsItsPoint) {
  BodyParams params = model_m();
  params.temperature = 0;
  EXPECT_THAT(body(R"({"prompt":"Hi"})", params), HasSubstr(R"(,"temperature":0.0,)"));
}

TEST(RequestBody, B4PartsAreSentAsTheyAre) {
  EXPECT_THAT(
      body(R"({"prompt":[ {"type":"text", "text":"Hi","x":null},)"
           R"({"type":"image_url","image_url":{"url":"data:image/PNG;base64,AA=="}}]})",
           model_m()),
      HasSubstr(R"({"role":"user","content":[{"type":"text","text":"Hi","x":null},)"
                R"({"type":"image_url","image_url":{"url":"data:image/PNG;base64,AA=="}}]})"));
}

TEST(RequestBody, B5StreamFalseAndTools) {
  BodyParams params = model_m();
  params.write_stream_false = true;
  EXPECT_EQ(body(R"({"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function"}]})",
                 params),
            R"({"model":"m","messages":[{"role":"user","content":"Hi"}],)"
            R"("max_completion_tokens":1024,"stream":false,"tools":[{"type":"function"}]})");
}

TEST(RequestBody, B6ChatTemplateKwargs) {
  BodyParams params = model_m();
  params.chat_template_kwargs = text::read_json(R"({"enable_thinking":false,"z":null})").value();
  EXPECT_THAT(body(R"({"prompt":"Hi"})", params),
              HasSubstr(R"(,"chat_template_kwargs":{"enable_thinking":false,"z":null}})"));
}

TEST(RequestBody, PutsEveryKeyInItsPlace) {
  BodyParams params = model_m(true);
  params.include_usage = true;
  params.max_tokens = 7;
  params.temperature = 1;
  params.seed = text::JsonValue::of_int(5);
  params.top_p = 0.9;
  params.top_k = -1;
  params.repetition_penalty = 1.1;
  params.presence_penalty = 0.5;
  params.frequency_penalty = -0.5;
  params.chat_template_kwargs = text::read_json(R"({"a":1})").value();
  EXPECT_EQ(
      body(R"({"tool_choice":"auto","tools":[],"chat_template":"t","user":"u","logit_bias":{},)"
           R"("stop":["x"],"n":2,"name":"bob","prompt":"h\u00e9\n","ignored":1})",
           params),
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"h\xC3\xA9\\n\",\"name\":"
      "\"bob\"}],\"temperature\":1.0,\"max_completion_tokens\":7,\"stream\":true,"
      "\"stream_options\":{\"include_usage\":true},\"seed\":5,\"top_p\":0.9,\"top_k\":-1,"
      "\"repetition_penalty\":1.1,\"n\":2,\"stop\":[\"x\"],\"presence_penalty\":0.5,"
      "\"frequency_penalty\":-0.5,\"logit_bias\":{},\"user\":\"u\",\"chat_template\":\"t\","
      "\"chat_template_kwargs\":{\"a\":1},\"tools\":[],\"tool_choice\":\"auto\"}");
}

TEST(RequestBody, NeverSendsNullsAndAsksForUsageOnlyInStreams) {
  BodyParams params = model_m();
  params.include_usage = true;
  EXPECT_EQ(
      body(R"({"prompt":"Hi","system":null,"stop":null,"messages":null})", params),
      R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":1024})");
  EXPECT_THAT(body(R"({"prompt":"Hi"})", model_m(true)), Not(HasSubstr("stream_options")));
}

TEST(RequestBody, MessagesWinAndKeepKnownKeysInOrder) {
  EXPECT_THAT(
      body(R"({"prompt":"p","system":"s","messages":[{"content":"c","x":1,"role":"assistant",)"
           R"("tool_calls":[{"b":null,"a":1}],"reasoning_content":"r"},)"
           R"({"tool_call_id":"9","role":"tool","content":null,"name":"f"}]})",
           model_m()),
      HasSubstr(R"("messages":[{"role":"assistant","content":"c","tool_calls":[{"b":null,"a":1}],)"
                R"("reasoning_content":"r"},{"role":"tool","name":"f","tool_call_id":"9"}])"));
}

TEST(RequestBody, CompletionsTakeTokensOrText) {
  BodyParams params = model_m();
  params.api = base::ApiType::kOpenAiCompletions;
  EXPECT_EQ(body(R"({"input_tokens":[1,2]})", params),
            R"({"model":"m","prompt":[1,2],"max_tokens":1024,"min_tokens":1,)"
            R"("skip_special_tokens":true,"stream":false})");
  params.stream = true;
  params.include_usage = true;
  params.temperature = 0.5;
  params.top_p = 1;
  params.frequency_penalty = 0.25;
  params.seed = text::JsonValue::of_int(4);  // not part of this API
  EXPECT_EQ(body(R"({"prompt":"Hi","n":2,"stop":"x"})", params),
            R"({"model":"m","prompt":"Hi","temperature":0.5,"max_tokens":1024,"min_tokens":1,)"
            R"("skip_special_tokens":true,"stream":true,"stream_options":{"include_usage":true},)"
            R"("top_p":1.0,"n":2,"stop":"x","frequency_penalty":0.25})");
}

TEST(RequestBody, SglangTakesTokensAndDefaults) {
  BodyParams params = model_m(true);
  params.api = base::ApiType::kSglang;
  EXPECT_EQ(body(R"({"input_tokens":[1,2]})", params),
            R"({"input_ids":[1,2],"sampling_params":{"max_new_tokens":1024,"temperature":1.0,)"
            R"("top_p":1.0},"stream":true})");
  EXPECT_EQ(note_of_unsent(params), "");
  params.stream = false;
  params.include_usage = true;
  params.top_k = -1;  // all tokens: not sent
  params.temperature = 0;
  params.top_p = 0.5;
  params.max_tokens = 3;
  EXPECT_EQ(body(R"({"input_tokens":[7]})", params),
            R"({"input_ids":[7],"sampling_params":{"max_new_tokens":3,"temperature":0.0,)"
            R"("top_p":0.5},"stream":false})");
  params.top_k = 20;
  params.seed = text::JsonValue::of_int(4);
  EXPECT_THAT(body(R"({"input_tokens":[7]})", params),
              HasSubstr(R"("temperature":0.0,"top_k":20,"top_p":0.5)"));
  EXPECT_EQ(note_of_unsent(params), "this api_type has no place for model_params seed: not sent");
}

TEST(RequestBody, AVideoIsItsRowWithDefaults) {
  BodyParams params = model_m();
  params.api = base::ApiType::kVideogen;
  params.temperature = 0.5;  // not part of this API
  EXPECT_EQ(body(R"({"prompt":"p"})", params),
            R"({"prompt":"p","size":"720x1280","seconds":5.0,"fps":16,"num_inference_steps":20,)"
            R"("guidance_scale":4.0,"guidance_scale_2":3.0,"seed":42,"num_frames":81,)"
            R"("boundary_ratio":0.875,"output_format":"auto","response_format":"video_path"})");
  EXPECT_EQ(body(R"({"response_format":"video_bytes","seconds":3,"negative_prompt":"n","fps":8,)"
                 R"("latent_path":null,"prompt":"p","size":"1x1","guidance_scale":1.5})",
                 params),
            R"({"prompt":"p","negative_prompt":"n","size":"1x1","seconds":3.0,"fps":8,)"
            R"("num_inference_steps":20,"guidance_scale":1.5,"guidance_scale_2":3.0,"seed":42,)"
            R"("num_frames":81,"boundary_ratio":0.875,"output_format":"auto",)"
            R"("response_format":"video_bytes"})");
  EXPECT_EQ(note_of_unsent(params),
            "this api_type has no place for model_params temperature: not sent");
}

// Splicing the salt's text gives the same bytes as rendering the salted prompt.
TEST(RequestBody, TheSplicePointIsWhereAPrefixOfThePromptGoes) {
  const std::string salt = "[a8ce956811102085] ";
  for (const base::ApiType api : {base::ApiType::kOpenAiChat, base::ApiType::kOpenAiCompletions}) {
    for (const std::string prompt : {"Hi", "", "\\\"quoted\\\"", "content"}) {
      BodyParams params = model_m(true);
      params.api = api;
      params.model = "odd \"content\":\" model";
      RenderedBody plain;
      render_body(row("{\"system\":\"prompt\",\"prompt\":\"" + prompt + "\"}"), params, plain);
      ASSERT_GT(plain.splice, 0);
      std::string spliced = plain.bytes;
      spliced.insert(static_cast<std::size_t>(plain.splice), salt);
      EXPECT_EQ(spliced,
                body("{\"system\":\"prompt\",\"prompt\":\"" + salt + prompt + "\"}", params));
    }
  }
  RenderedBody out;
  render_body(row(R"({"prompt":[{"type":"text"}]})"), model_m(), out);
  EXPECT_EQ(out.splice, kNoSplice);
  render_body(row(R"({"messages":[{"role":"user","content":"x"}],"prompt":"p"})"), model_m(), out);
  EXPECT_EQ(out.splice, kNoSplice);
}

TEST(RequestBody, NamesTheFirstRowsThatCannotBeSalted) {
  Dataset dataset;
  dataset.path = "f.jsonl";
  dataset.rows = {row(R"({"prompt":"a"})", 1), row(R"({"prompt":"b"})", 2)};
  EXPECT_TRUE(check_saltable(dataset));
  dataset.rows.push_back(row(R"({"prompt":"c","messages":null})", 3));  // presence counts
  dataset.rows.push_back(row(R"({"prompt":[{"type":"text"}]})", 4));
  dataset.rows.push_back(row(R"({"input_tokens":[1],"messages":[]})", 5));
  dataset.rows.push_back(row(R"({"system":"s"})", 6));
  const base::Status status = check_saltable(dataset);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ExitCode::kInput);
  EXPECT_THAT(status.error().message, HasSubstr("given as messages: sample 2 (f.jsonl:3)"));
  EXPECT_THAT(status.error().message, HasSubstr("content parts: sample 3"));
  EXPECT_THAT(status.error().message, HasSubstr("and 1 more"));
  EXPECT_THAT(status.error().message, HasSubstr("--no-warmup-salt"));
  EXPECT_THAT(why_not_saltable(dataset.rows[4]), HasSubstr("token ids"));
  EXPECT_THAT(why_not_saltable(dataset.rows[5]), HasSubstr("no prompt"));
  EXPECT_THAT(why_not_saltable(row(R"({"prompt":null})")), HasSubstr("not text"));
}

}  // namespace
}  // namespace tutti::data
