#pragma once

// Results: what accuracy_results.json and the report's Accuracy block say, in the reference's
// fields. Plain values and their two forms. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/accuracy/tally.h"

namespace tutti::accuracy {

// Tokens of the replies of one data set.
struct OutputLengths {
  double avg = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::string json;  // as in result_summary.json
  double took_s = 0;
};

// One accuracy data set, or the turns of the performance phase.
struct Entry {
  std::string dataset_name;
  bool of_performance = false;  // outside the average; its name is "performance"
  std::string extractor;        // its class name; none of the performance phase
  std::optional<std::string> ground_truth_column;
  std::optional<double> score;
  std::optional<RougeScore> rouge;  // goes in its place
  std::uint64_t unit_samples = 0;   // rows
  std::uint64_t num_repeats = 1;
  double duration_s = 0;  // of its phase, the last reply included
  bool complete = false;  // all was asked, and every query came to an end
  ResponseCounts responses;
  std::optional<OutputLengths> lengths;  // nothing without a tokenizer, or without a reply
  std::string note;  // why there is no score, or not all of it, for the report; not in the file

  std::uint64_t total_samples() const {
    return of_performance ? responses.issued : unit_samples * num_repeats;
  }
};

using Entries = std::vector<Entry>;

// Mean of the scores there are.
std::optional<double> average(const Entries& entries);

// accuracy/accuracy_results.json
std::string results_json(const Entries& entries);

// The "Accuracy:" block of report.txt; nothing without entries.
std::string results_text(const Entries& entries);

// "Score for NAME: S (R repeats, complete=B)"
std::string score_line(const Entry& entry);

}  // namespace tutti::accuracy
