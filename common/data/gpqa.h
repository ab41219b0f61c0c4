#pragma once

// GPQA as the reference client makes it of its source: each question's right and three wrong
// answers become choice1 to choice4, in an order that one Mersenne Twister draws for all rows. The
// result is a Parquet file under the name that the reference's cache has it by, or beside it where
// it is not what the reference's name stands for. Drawing is pure; make_gpqa() reads the source
// (a file, a folder, the hub), writes and blocks. For set-up only; one thread.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tutti::data {

struct GpqaRow {
  std::string question;
  std::array<std::string, 4> answers;  // the right one, then the wrong ones as the source has them
  std::string domain;
  std::string subdomain;
};

struct GpqaOrder {
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> count;  // so many rows, drawn before the choices are; none: all
};

struct GpqaQuestion {
  std::string question;
  std::array<std::string, 4> choices;
  std::string ground_truth;  // "choice1" … "choice4": the first that reads like the right answer
  std::string domain;
  std::string subdomain;
};

std::vector<GpqaQuestion> draw_gpqa(const std::vector<GpqaRow>& rows, const GpqaOrder& order);

struct GpqaWanted {
  std::string variant = "diamond";
  // A folder with gpqa_VARIANT.csv or .parquet in it, such a file, or a path at the hub; of a whole
  // repository there gpqa_VARIANT.csv is meant.
  std::string source = "hf://datasets/Idavidrein/gpqa";
  GpqaOrder order;
};

// Writes `path`, whole or not at all; what was there is replaced. Returns what it was made of.
base::Result<std::string> make_gpqa(const GpqaWanted& wanted, const std::string& path);

}  // namespace tutti::data
