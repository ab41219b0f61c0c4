#include "tests/mock_llm/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace tutti::mock_llm {
namespace {

constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15ULL;
constexpr double kTwoPi = 6.283185307179586;

tl::expected<double, std::string> parse_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end || !std::isfinite(value)) {
    return tl::unexpected(fmt::format("\"{}\" is not a number", text));
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(colon + 1);
  }
}

tl::expected<double, std::string> parse_quantity(std::string_view text, Quantity quantity) {
  if (quantity == Quantity::kDuration) {
    const auto ns = parse_duration_ns(text);
    if (!ns) {
      return tl::unexpected(ns.error());
    }
    return static_cast<double>(*ns);
  }
  auto value = parse_number(text);
  if (!value) {
    return value;
  }
  if (*value < 0 || *value > static_cast<double>(kCountMax)) {
    return tl::unexpected(fmt::format("{} is not within 0 and {}", text, kCountMax));
  }
  return value;
}

struct ShapeName {
  std::string_view name;
  Shape shape;
  std::size_t arguments;
};
constexpr ShapeName kShapes[] = {{"fixed", Shape::kFixed, 1},
                                 {"uniform", Shape::kUniform, 2},
                                 {"lognormal", Shape::kLognormal, 2},
                                 {"exponential", Shape::kExponential, 1}};

// The second argument of a shape: a range's end, or a spread.
tl::expected<double, std::string> parse_second(std::string_view text, const Distribution& so_far) {
  if (so_far.shape == Shape::kLognormal) {
    auto spread = parse_number(text);
    if (spread && (*spread < 0 || *spread > 100)) {
      return tl::unexpected(
          fmt::format("the spread {} must be a coefficient of variation within 0 and 100", text));
    }
    return spread;
  }
  auto end = parse_quantity(text, so_far.quantity);
  if (end && *end < so_far.a) {
    return tl::unexpected(std::string("the range's end lies before its start"));
  }
  return end;
}

}  // namespace

std::uint64_t RequestDraws::next_u64() {
  std::uint64_t z = seed_ + ++draws_ * kGamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double RequestDraws::next_double() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

std::int64_t Distribution::draw(RequestDraws& draws) const {
  double value = a;
  switch (shape) {
    case Shape::kFixed:
      break;
    case Shape::kUniform: {
      // A count takes both ends; a duration's end is as good as never met.
      const bool whole = quantity == Quantity::kCount;
      const double width = whole ? std::floor(b) - std::floor(a) + 1 : b - a;
      value = std::floor(a) + draws.next_double() * width;
      break;
    }
    case Shape::kLognormal: {
      // Mean m and coefficient of variation c: σ² = ln(1 + c²), μ = ln m − σ²/2. Box–Muller.
      if (a <= 0 || b <= 0) {
        break;
      }
      const double variance = std::log1p(b * b);
      const double radius = std::sqrt(-2.0 * std::log(1.0 - draws.next_double()));
      const double normal = radius * std::cos(kTwoPi * draws.next_double());
      value = std::exp(std::log(a) - variance / 2 + std::sqrt(variance) * normal);
      break;
    }
    case Shape::kExponential:
      value = -std::log(1.0 - draws.next_double()) * a;
      break;
  }
  const std::int64_t most = quantity == Quantity::kCount ? kCountMax : kDurationMaxNs;
  return static_cast<std::int64_t>(std::clamp(value, 0.0, static_cast<double>(most)));
}

Distribution Distribution::fixed_ns(std::int64_t ns) {
  return {Shape::kFixed, Quantity::kDuration, static_cast<double>(ns), 0};
}

Distribution Distribution::fixed_count(std::int64_t count) {
  return {Shape::kFixed, Quantity::kCount, static_cast<double>(count), 0};
}

DistributionResult parse_distribution(std::string_view text, Quantity quantity) {
  std::vector<std::string_view> parts = split(text);
  if (parts.size() == 1) {
    parts.insert(parts.begin(), "fixed");
  }
  Distribution out;
  out.quantity = quantity;
  const auto* form = std::find_if(std::begin(kShapes), std::end(kShapes),
                                  [&](const ShapeName& s) { return s.name == parts[0]; });
  if (form == std::end(kShapes)) {
    return tl::unexpected(fmt::format(
        "\"{}\" is no distribution; write a plain value, fixed:V, uniform:A:B, lognormal:MEAN:CV "
        "or exponential:MEAN",
        parts[0]));
  }
  out.shape = form->shape;
  if (parts.size() != form->arguments + 1) {
    return tl::unexpected(fmt::format("{} takes {} value{}, not {}", form->name, form->arguments,
                                      form->arguments == 1 ? "" : "s", parts.size() - 1));
  }
  const auto first = parse_quantity(parts[1], quantity);
  if (!first) {
    return tl::unexpected(first.error());
  }
  out.a = *first;
  if (form->arguments == 2) {
    const auto second = parse_second(parts[2], out);
    if (!second) {
      return tl::unexpected(second.error());
    }
    out.b = *second;
  }
  return out;
}

tl::expected<std::int64_t, std::string> parse_duration_ns(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  // Longer names first: "ms" ends in "s".
  static constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}};
  if (text == "0") {
    return 0;
  }
  for (const Unit& unit : kUnits) {
    if (text.size() <= unit.name.size() ||
        text.substr(text.size() - unit.name.size()) != unit.name) {
      continue;
    }
    const auto value = parse_number(text.substr(0, text.size() - unit.name.size()));
    if (!value) {
      break;
    }
    const double ns = *value * unit.ns;
    if (ns < 0 || ns > static_cast<double>(kDurationMaxNs)) {
      return tl::unexpected(fmt::format("\"{}\" is not within 0 and 24 hours", text));
    }
    return static_cast<std::int64_t>(std::llround(ns));
  }
  return tl::unexpected(
      fmt::format("\"{}\" is no duration; write a number with ns, us, ms, s or m", text));
}

}  // namespace tutti::mock_llm
