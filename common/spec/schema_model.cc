// The schema's tables for who is asked what: top level, model_params, datasets[], endpoint_config.

#include "common/spec/schema_rows.h"

namespace tutti::spec {
namespace {

std::vector<Row> osl_rows() {
  const std::string inert =
      "the reference does not use it either; max_new_tokens bounds the output";
  return {
      field("type", &OslDistribution::type)
          .about("Shape of the output lengths.")
          .one_of({"original", "fixed", "uniform", "normal"})
          .inert(inert),
      field("mean", &OslDistribution::mean).about("Mean length in tokens.").inert(inert),
      field("std", &OslDistribution::std).about("Standard deviation in tokens.").inert(inert),
      field("min", &OslDistribution::min)
          .about("Shortest length in tokens.")
          .flag("min-output-tokens")
          .inert(inert),
      field("max", &OslDistribution::max).about("Longest length in tokens.").inert(inert),
  };
}

std::vector<Row> accuracy_rows() {
  return {
      field("eval_method", &AccuracyConfig::eval_method)
          .about("The scorer.")
          .one_of({"", "pass_at_1", "string_match", "rouge", "code_bench_scorer",
                   "shopify_category_f1", "agentic_inference_inline", "vbench", "bfcl_v4",
                   "legacy_mlperf_deepseek_r1", "swe_bench_scorer"}),
      field("ground_truth", &AccuracyConfig::ground_truth)
          .about("Column that holds the right answer; `ground_truth` when null."),
      field("extractor", &AccuracyConfig::extractor)
          .about("How the answer is taken out of the reply (docs/accuracy.md)."),
      field("num_repeats", &AccuracyConfig::num_repeats)
          .about("How often every row is asked.")
          .at_least(1),
      field("extras", &AccuracyConfig::extras).about("Arguments of the scorer (docs/accuracy.md)."),
  };
}

std::vector<Row> agentic_rows() {
  return {
      field("turn_timeout_s", &AgenticInference::turn_timeout_s)
          .about("Longest wait for one turn; then its conversation is given up.")
          .above(0),
      field("enable_salt", &AgenticInference::enable_salt)
          .about("Mark every system prompt with the conversation and how often it was played."),
      field("inject_tool_delay", &AgenticInference::inject_tool_delay)
          .about("Wait for delay_seconds of a row before its turn is sent."),
      field("routing_headers", &AgenticInference::routing_headers)
          .about("Headers that carry the conversation's id."),
      field("num_trajectories_to_issue", &AgenticInference::num_trajectories_to_issue)
          .about("How many conversations to play; each once when null, and a larger number goes "
                 "round.")
          .above(0),
      field("stop_issuing_on_first_user_complete",
            &AgenticInference::stop_issuing_on_first_user_complete)
          .about("Stop issuing when a conversation has ended and none is left to begin."),
  };
}

std::vector<Row> endpoint_rows() {
  return {
      field("endpoints", &EndpointConfig::endpoints)
          .about("Base URLs of the frontends; the load is spread over them.")
          .required()
          .flag("endpoints"),
      field("api_key", &EndpointConfig::api_key)
          .about("Sent as a bearer token; null or empty sends no Authorization header. "
                 "Better written as \"${API_KEY}\" than in plain text.")
          .flag("api-key"),
      field("api_type", &EndpointConfig::api_type)
          .about("Which API the frontends speak: chat completions, completions (token ids or "
                 "text), SGLang's /generate (token ids) or video generation (never streamed).")
          .one_of({"openai", "openai_completions", "sglang", "videogen"})
          .flag("api-type"),
  };
}

std::vector<Row> audit_rows() {
  return {
      field("test", &Audit::test).about("Which audit to run: `output_caching_test`.").required(),
      field("only", &Audit::only).about("Skip the normal run."),
      field("samples", &Audit::samples)
          .about("Requests of the reference phase.")
          .required()
          .at_least(1),
      field("audit_samples", &Audit::audit_samples)
          .about("Requests of the audit phase; as many as `samples` when null.")
          .at_least(1),
      field("sample_index", &Audit::sample_index)
          .about("The row the audit phase repeats.")
          .at_least(0),
      field("threshold", &Audit::threshold)
          .about("Tolerated relative difference.")
          .above(0)
          .below(1),
  };
}

std::vector<Row> top_rows() {
  return {
      field("name", &Config::name)
          .about("Name of the run; `<type>_benchmark` when empty.")
          .hidden(),
      field("version", &Config::version).about("Version of the file, for its readers.").hidden(),
      field("type", &Config::type)
          .about("What kind of run this is; the command word on a command line.")
          .one_of({"offline", "online", "eval", "submission"})
          .required()
          .hidden(),
  };
}

}  // namespace

std::vector<Row> model_params_rows() {
  return together(
      std::vector<Row>{
          field("name", &ModelParams::name)
              .about(
                  "Model name, as the frontends know it. `submission_ref.model` stands in for it.")
              .flag("model"),
          field("temperature", &ModelParams::temperature).about("Sampling temperature."),
          field("seed", &ModelParams::seed).about("Sampling seed sent to the server.").flag("seed"),
          field("top_k", &ModelParams::top_k).about("Sample from the k likeliest tokens."),
          field("top_p", &ModelParams::top_p).about("Sample from the likeliest tokens of mass p."),
          field("repetition_penalty", &ModelParams::repetition_penalty)
              .about("Penalty on tokens seen before."),
          field("presence_penalty", &ModelParams::presence_penalty)
              .about("Penalty on tokens already present."),
          field("frequency_penalty", &ModelParams::frequency_penalty)
              .about("Penalty that grows with a token's count."),
          field("chat_template_kwargs", &ModelParams::chat_template_kwargs)
              .about("Sent along with every request as it is; on a command line one flag per key."),
          field("max_new_tokens", &ModelParams::max_new_tokens)
              .about("Most tokens of one reply.")
              .flag("max-output-tokens"),
          field("min_new_tokens", &ModelParams::min_new_tokens)
              .about("Fewest tokens of one reply; other than 1 only with openai_completions.")
              .at_least(0),
          field("skip_special_tokens", &ModelParams::skip_special_tokens)
              .about("Leave special tokens out of replies; false only with openai_completions."),
      },
      section(heading("osl_distribution").about("Wanted output lengths."),
              &ModelParams::osl_distribution, osl_rows()),
      std::vector<Row>{
          field("streaming", &ModelParams::streaming)
              .about("Ask for event streams; auto is off for offline runs and on for all others.")
              .one_of({"auto", "on", "off"})
              .flag("streaming"),
          field("tokenizer_name", &ModelParams::tokenizer_name)
              .about("Tokenizer to count tokens with: a folder with a tokenizer.json, or a name at "
                     "Hugging Face's hub, fetched when it is not on this host; the model's name "
                     "when empty.")
              .flag("tokenizer"),
      });
}

static std::vector<Row> dataset_rows() {
  return together(
      std::vector<Row>{
          field("name", &DatasetSpec::name)
              .about("Name of the data set; the file's name without its suffix when empty."),
          field("type", &DatasetSpec::type)
              .about("What the data set is for.")
              .one_of({"performance", "accuracy"}),
          field("path", &DatasetSpec::path)
              .about("The file, a folder, or hf://datasets/ORG/NAME at Hugging Face's hub."),
          field("format", &DatasetSpec::format)
              .about(
                  "Format of the file (`.jsonl`, `.json`, `.csv`, `.parquet`, `huggingface`); its "
                  "suffix says it when null."),
          field("samples", &DatasetSpec::samples)
              .about("Use the first N rows only; the reference reads this field and uses all rows.")
              .above(0),
          field("eval_method", &DatasetSpec::eval_method)
              .about("Without effect, here and in the reference.")
              .one_of({"", "exact_match", "contains", "judge"})
              .inert("scorers are named by accuracy_config.eval_method"),
          field("parser", &DatasetSpec::parser)
              .about("Columns to rename, as target: source, e.g. `prompt: question`.")
              .nullable(),
          field("generate_params", &DatasetSpec::generate_params)
              .about("Which form of a predefined data set is meant: `variant`, `max_samples` …"),
      },
      section(heading("accuracy_config").about("How replies to this data set are scored."),
              &DatasetSpec::accuracy_config, accuracy_rows()),
      section(
          heading("agentic_inference")
              .about("Makes the data set one of multi-turn conversations (docs/datasets.md); an "
                     "empty mapping will do."),
          &DatasetSpec::agentic_inference, agentic_rows()),
      std::vector<Row>{
          field("generation_config_override", &DatasetSpec::generation_config_override)
              .about("Fields of model_params that differ for this data set."),
      });
}

const Schema& config_schema() {
  static const Schema kSchema(together(
      top_rows(),
      section(heading("submission_ref").about("The model and rule set of a submission.").hidden(),
              &Config::submission_ref,
              {field("model", &SubmissionRef::model)
                   .about("Model of the submission.")
                   .required()
                   .hidden(),
               field("ruleset", &SubmissionRef::ruleset)
                   .about("Rule set whose seeds are used.")
                   .required()
                   .hidden()}),
      std::vector<Row>{field("benchmark_mode", &Config::benchmark_mode)
                           .about("Which kind of run a submission is.")
                           .one_of({"", "offline", "online"})
                           .hidden()},
      section(heading("model_params").about("The model and how it samples."), &Config::model_params,
              model_params_rows()),
      std::vector<Row>{field("datasets", &Config::datasets)
                           .about("Data sets, each a mapping or a text as for --dataset.")
                           .hidden()},
      section(heading("settings").about("How the load is made."), &Config::settings,
              settings_rows()),
      section(heading("endpoint_config").about("The frontends under test.").required(),
              &Config::endpoint_config, endpoint_rows()),
      std::vector<Row>{
          field("report_dir", &Config::report_dir)
              .about("Run folder; a new one under the temporary directory when null."),
          field("verbose", &Config::verbose)
              .about("Without effect; use -v.")
              .hidden()
              .inert("use the flag -vv for debug lines"),
          field("enable_cpu_affinity", &Config::enable_cpu_affinity)
              .about("Pin threads to cores near the network card.")
              .flag("cpu-affinity")
              .inert("agents place their own threads"),
      },
      section(
          heading("audit")
              .about("Compliance audit after the run: two runs more, in `audit/` of its folder, "
                     "one of which asks one row for ever; a server that is faster at it fails.")
              .hidden(),
          &Config::audit, audit_rows()),
      section(heading("distributed")
                  .about("How the load is spread over agents. This block is tutti's own; the "
                         "reference client does not know it."),
              &Config::distributed, distributed_rows())));
  return kSchema;
}

const Schema& dataset_schema() {
  static const Schema kSchema(dataset_rows());
  return kSchema;
}

}  // namespace tutti::spec
