#include "coordinator/accuracy/turn_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

namespace tutti::accuracy {
namespace {

using Json = nlohmann::ordered_json;

double to_four_places(double value) { return std::round(value * 1e4) / 1e4; }

Json name_json(const TurnName& name) {
  return Json{{"conversation_id", name.conversation}, {"repeat", name.pass}, {"turn", name.turn}};
}

}  // namespace

void TurnScores::add(TurnName turn, const TurnTruth& truth, const TurnAnswer& answer) {
  turns_.push_back({std::move(turn), truth, answer, false, agreement(truth, answer)});
}

void TurnScores::add_missing(TurnName turn, const TurnTruth& truth) {
  turns_.push_back({std::move(turn), truth, {}, true, 0});
}

void TurnScores::add_excluded(TurnName turn) { excluded_.push_back(std::move(turn)); }

std::uint64_t TurnScores::missing() const {
  return static_cast<std::uint64_t>(
      std::count_if(turns_.begin(), turns_.end(), [](const Turn& turn) { return turn.missing; }));
}

TurnScores::Sum TurnScores::sum_of(Domain domain) const {
  Sum sum;
  for (const Turn& turn : turns_) {
    if (domain == Domain::kAll || turn.truth.workflow == (domain == Domain::kWorkflow)) {
      sum.score += turn.score;
      ++sum.count;
    }
  }
  return sum;
}

std::optional<double> TurnScores::score() const {
  const Sum sum = sum_of(Domain::kAll);
  return sum.count == 0 ? std::nullopt
                        : std::optional(to_four_places(sum.score / static_cast<double>(sum.count)));
}

std::string TurnScores::json() const {
  Json domains = Json::object();
  for (const auto& [name, domain] :
       {std::pair("coding", Domain::kCoding), std::pair("workflow", Domain::kWorkflow)}) {
    const Sum sum = sum_of(domain);
    if (sum.count > 0) {
      domains[name] = {{"score", to_four_places(sum.score / static_cast<double>(sum.count))},
                       {"scored", sum.count}};
    }
  }
  Json each = Json::array();
  for (const Turn& turn : turns_) {
    Json line = name_json(turn.name);
    line["domain"] = turn.truth.workflow ? "workflow" : "coding";
    if (turn.missing) {
      line["missing"] = true;
    }
    if (turn.truth.workflow) {
      line["gt_intents"] = turn.truth.intents;
      line["model_intent"] = turn.answer.intent ? Json(*turn.answer.intent) : Json(nullptr);
    } else {
      line["gt_actions"] = turn.truth.actions;
      line["model_actions"] = turn.answer.actions;
    }
    line["score"] = turn.score;
    each.push_back(std::move(line));
  }
  const auto mean = score();
  Json out{{"score", mean ? Json(*mean) : Json(nullptr)},
           {"turns",
            {{"issued", issued()},
             {"expected", scored()},
             {"observed", scored() - missing()},
             {"missing", missing()},
             {"scored", scored()}}},
           {"domains", std::move(domains)},
           {"per_turn", std::move(each)}};
  if (!excluded_.empty()) {
    Json names = Json::array();
    for (const TurnName& name : excluded_) {
      names.push_back(name_json(name));
    }
    out["excluded_turns"] = std::move(names);
  }
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::accuracy
