#include "coordinator/accuracy/results.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/text/json_write.h"

namespace tutti::accuracy {
namespace {

using Json = nlohmann::ordered_json;

// Python's text of a float, as the reference writes these numbers.
std::string number_text(double value) {
  std::string out;
  text::append_json_double(out, value);
  return out;
}

double rounded_ms(double seconds) { return std::round(seconds * 1e3) / 1e3; }

using NamedTexts = std::vector<std::pair<const char*, std::string>>;

// In the reference's order; what is not known is not there.
NamedTexts rouge_texts(const RougeScore& score) {
  NamedTexts out{{"rouge1", number_text(score.rouge1)},
                 {"rouge2", number_text(score.rouge2)},
                 {"rougeL", number_text(score.rouge_l)}};
  if (score.sentences) {
    out.emplace_back("rougeLsum", number_text(score.sentences->rouge_lsum));
    out.emplace_back("gen_len", fmt::to_string(score.sentences->characters));
  }
  return out;
}

Json score_json(const Entry& entry) {
  if (entry.rouge) {
    Json out = Json::object();
    for (auto& [name, text] : rouge_texts(*entry.rouge)) {
      out[name] = std::move(text);
    }
    out["gen_num"] = entry.rouge->texts;
    return out;
  }
  return entry.score ? Json(*entry.score) : Json(nullptr);
}

Json entry_json(const Entry& entry) {
  Json out{{"dataset_name", entry.dataset_name},
           {"extractor", entry.of_performance ? Json(nullptr) : Json(entry.extractor)},
           {"ground_truth_column",
            entry.ground_truth_column ? Json(*entry.ground_truth_column) : Json(nullptr)},
           {"score", score_json(entry)},
           {"unit_samples", entry.unit_samples},
           {"num_repeats", entry.num_repeats},
           {"total_samples", entry.total_samples()},
           {"duration_s", rounded_ms(entry.duration_s)},
           {"complete", entry.complete},
           {"dataset_type", entry.of_performance ? "performance" : "accuracy"}};
  if (!entry.of_performance) {
    const ResponseCounts& seen = entry.responses;
    out["response_counts"] = {{"issued", seen.issued},
                              {"scored", seen.scored},
                              {"empty", seen.empty},
                              {"missing", seen.missing}};
  }
  if (entry.lengths) {
    out["output_sequence_lengths"] = Json::parse(entry.lengths->json);
    out["osl_tokenize_s"] = rounded_ms(entry.lengths->took_s);
  }
  return out;
}

// Four significant digits.
std::string short_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "N/A";
}

std::string short_score(const Entry& entry) {
  if (!entry.rouge) {
    return short_number(entry.score);
  }
  std::string out;
  for (const auto& [name, text] : rouge_texts(*entry.rouge)) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, text);
  }
  return out;
}

}  // namespace

std::optional<double> average(const Entries& entries) {
  double sum = 0;
  std::size_t count = 0;
  for (const Entry& entry : entries) {
    if (entry.score && !entry.of_performance) {
      sum += *entry.score;
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::string results_json(const Entries& entries) {
  Json out = Json::object();
  if (const auto mean = average(entries)) {
    out["average_accuracy"] = *mean;
  }
  Json scores = Json::array();
  std::optional<double> counting_s;
  for (const Entry& entry : entries) {
    scores.push_back(entry_json(entry));
    if (entry.lengths) {
      counting_s = counting_s.value_or(0) + entry.lengths->took_s;
    }
  }
  if (counting_s) {
    out["osl_tokenization_s"] = rounded_ms(*counting_s);
  }
  out["accuracy_scores"] = std::move(scores);
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string results_text(const Entries& entries) {
  if (entries.empty()) {
    return {};
  }
  std::string out = "Accuracy:\n";
  for (const Entry& entry : entries) {
    const ResponseCounts& seen = entry.responses;
    out += fmt::format("  {}: {} (unit={}, repeats={}, total={}, duration={:.2f}s)\n",
                       entry.dataset_name, short_score(entry), entry.unit_samples,
                       entry.num_repeats, entry.total_samples(), entry.duration_s);
    out += fmt::format("    responses: {}/{} scored ({} empty, {} missing)\n", seen.scored,
                       seen.issued, seen.empty, seen.missing);
    if (entry.lengths) {
      out += fmt::format("    output tokens (avg/min/max): {:.1f}/{}/{}\n", entry.lengths->avg,
                         entry.lengths->min, entry.lengths->max);
    }
    out += entry.complete ? "" : "    (incomplete)\n";
    out += entry.note.empty() ? "" : fmt::format("    {}\n", entry.note);
  }
  if (const auto mean = average(entries)) {
    out += fmt::format("  Average: {}\n", short_number(mean));
  }
  return out;
}

std::string score_line(const Entry& entry) {
  std::string score = entry.score ? number_text(*entry.score) : "None";
  if (entry.rouge) {
    score = "{";
    for (const auto& [name, text] : rouge_texts(*entry.rouge)) {
      score += fmt::format("'{}': '{}', ", name, text);
    }
    score += fmt::format("'gen_num': {}}}", entry.rouge->texts);
  }
  return fmt::format("Score for {}: {} ({} repeats, complete={})", entry.dataset_name, score,
                     entry.num_repeats, entry.complete ? "True" : "False");
}

}  // namespace tutti::accuracy
