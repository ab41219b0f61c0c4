#include <algorithm>
#include <numeric>

#include "agent/target/reply_event.h"
#include "common/text/json_write.h"

namespace tutti::target {

bool ToolCallMerge::add(const std::vector<ToolDelta>& calls) {
  constexpr std::size_t kCallsMax = 256;
  constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  for (const ToolDelta& delta : calls) {
    const auto alive = calls_.begin() + static_cast<std::ptrdiff_t>(used_);
    auto found = std::find_if(calls_.begin(), alive,
                              [&delta](const Call& call) { return call.index == delta.index; });
    bytes_ += delta.id.size() + delta.type.size() + delta.name.size() + delta.arguments.size();
    if (bytes_ > kBytesMax || (found == alive && used_ == kCallsMax)) {
      return false;
    }
    if (found == alive) {
      if (used_ == calls_.size()) {
        calls_.emplace_back();
      }
      found = calls_.begin() + static_cast<std::ptrdiff_t>(used_++);
      found->index = delta.index;
      found->id.clear();
      found->type = "function";
      found->name.clear();
      found->arguments.clear();
    }
    const auto overwrite = [](std::string& to, std::string_view from) {
      if (!from.empty()) {
        to.assign(from);
      }
    };
    overwrite(found->id, delta.id);
    overwrite(found->type, delta.type);
    overwrite(found->name, delta.name);
    found->arguments.append(delta.arguments);
  }
  return true;
}

void ToolCallMerge::write(std::string& out) const {
  std::vector<std::size_t> order(used_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [this](std::size_t a, std::size_t b) { return calls_[a].index < calls_[b].index; });
  text::JsonWriter json(out);
  json.begin_array();
  for (const std::size_t i : order) {
    const Call& call = calls_[i];
    json.begin_object().key("type").string(call.type);
    json.key("function").begin_object().key("arguments").string(call.arguments);
    if (!call.name.empty()) {
      json.key("name").string(call.name);
    }
    json.end_object();
    if (!call.id.empty()) {
      json.key("id").string(call.id);
    }
    json.end_object();
  }
  json.end_array();
}

void ToolCallMerge::reset() {
  used_ = 0;
  bytes_ = 0;
}

}  // namespace tutti::target
