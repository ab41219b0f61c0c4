#include "common/spec/yaml_text.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/spec/words.h"
#include "common/spec/yaml_scalar.h"

namespace tutti::spec {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

// Ends the parse from inside the handler; caught below, never seen outside this file.
class Refusal : public std::exception {
 public:
  Refusal(std::string where, std::string reason)
      : where_(std::move(where)), reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::string reason_;
};

std::size_t count_nodes(const Tree& tree) {
  std::size_t count = 1;
  for (const Tree& item : tree.items) {
    count += count_nodes(item);
  }
  for (const Tree::Entry& entry : tree.entries) {
    count += count_nodes(entry.value);
  }
  return count;
}

// Builds the tree from the library's events. A frame is an open list or mapping.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view file, base::Problems& warnings) : file_(file), warnings_(warnings) {}

  bool is_complete() const { return complete_; }
  Tree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    merge_key_ = false;
    add(Tree{}, place(mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Refusal(place(mark), "an alias inside its own anchor has no end; write the value out");
    }
    merge_key_ = false;
    nodes_ += found->second.nodes;
    check_limits(place(mark));
    add(found->second.tree, {}, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const std::string where = place(mark);
    Tree tree = tag == "?" || tag.empty() ? plain_scalar(value) : tagged(tag, value, where);
    merge_key_ = tag == "?" && value == "<<";
    add(std::move(tree), where, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Tree::list(), "seq", tag, place(mark), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Tree::map(), "map", tag, place(mark), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Tree tree;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    bool key_is_merge = false;
    std::string key;
    std::string key_where;
    std::vector<Tree> merges;
  };
  struct Anchored {
    Tree tree;
    std::size_t nodes = 0;
  };

  std::string place(const YAML::Mark& mark) const {
    return fmt::format("{}:{}", file_, mark.line + 1);
  }

  void check_limits(const std::string& where) const {
    if (nodes_ > kYamlNodesMax) {
      throw Refusal(where, fmt::format("more than {} values; is an alias repeated inside aliases?",
                                       kYamlNodesMax));
    }
    if (frames_.size() > kYamlDepthMax) {
      throw Refusal(where, fmt::format("nested deeper than {} levels", kYamlDepthMax));
    }
  }

  static Tree tagged(const std::string& tag, const std::string& value, const std::string& where) {
    if (tag == "!" || tag == fmt::format("{}str", kTagPrefix)) {
      return Tree::of_string(value);
    }
    Tree tree = plain_scalar(value);
    static const std::map<std::string, Tree::Kind, std::less<>> kKinds{
        {"null", Tree::Kind::kNull},
        {"bool", Tree::Kind::kBool},
        {"int", Tree::Kind::kInt},
        {"float", Tree::Kind::kFloat}};
    const bool known = tag.starts_with(kTagPrefix);
    const auto kind = known ? kKinds.find(tag.substr(kTagPrefix.size())) : kKinds.end();
    if (kind == kKinds.end()) {
      throw Refusal(where, fmt::format("the tag '{}' is not supported; remove it", tag));
    }
    if (kind->second == Tree::Kind::kFloat && tree.kind == Tree::Kind::kInt) {
      tree.kind = Tree::Kind::kFloat;
      tree.real = tree.whole.to_double();
    }
    if (tree.kind != kind->second) {
      throw Refusal(where, fmt::format("the value does not have the type of its tag '{}'", tag));
    }
    return tree;
  }

  void open(Tree tree, std::string_view kind, const std::string& tag, std::string where,
            YAML::anchor_t anchor) {
    if (!tag.empty() && tag != "?" && tag != "!" && tag != fmt::format("{}{}", kTagPrefix, kind)) {
      throw Refusal(where, fmt::format("the tag '{}' is not supported; remove it", tag));
    }
    if (!frames_.empty() && frames_.back().tree.is_map() && !frames_.back().has_key) {
      throw Refusal(where, "a mapping or list cannot be a key");
    }
    tree.where = std::move(where);
    frames_.push_back({});
    frames_.back().tree = std::move(tree);
    frames_.back().anchor = anchor;
    ++nodes_;
    check_limits(frames_.back().tree.where);
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    // Merged entries come first and give way to the mapping's own; of several, the first wins.
    if (!frame.merges.empty()) {
      Tree whole = Tree::map();
      whole.where = frame.tree.where;
      for (auto merge = frame.merges.rbegin(); merge != frame.merges.rend(); ++merge) {
        take_entries(whole, *merge);
      }
      take_entries(whole, frame.tree);
      frame.tree = std::move(whole);
    }
    add(std::move(frame.tree), {}, frame.anchor);
  }

  static void take_entries(Tree& into, const Tree& from) {
    for (const Tree::Entry& entry : from.entries) {
      into.erase(entry.key);
      into.entries.push_back(entry);
    }
  }

  // A finished node: the document, a list's item, a mapping's key or value. An empty `where` leaves
  // the node's own.
  void add(Tree tree, std::string where, YAML::anchor_t anchor) {
    if (!where.empty()) {
      tree.where = std::move(where);
      ++nodes_;
      check_limits(tree.where);
    }
    if (anchor != 0) {
      anchors_[anchor] = {tree, count_nodes(tree)};
    }
    if (frames_.empty()) {
      root_ = std::move(tree);
      complete_ = true;
      return;
    }
    Frame& frame = frames_.back();
    if (frame.tree.is_list()) {
      frame.tree.items.push_back(std::move(tree));
    } else if (!frame.has_key) {
      take_key(frame, tree);
    } else {
      frame.has_key = false;
      take_value(frame, std::move(tree));
    }
  }

  void take_key(Frame& frame, const Tree& tree) {
    if (tree.is_list() || tree.is_map()) {
      throw Refusal(tree.where, "a mapping or list cannot be a key");
    }
    frame.has_key = true;
    frame.key = tree.is_null() && tree.text.empty() ? "null" : tree.text;
    frame.key_where = tree.where;
    frame.key_is_merge = std::exchange(merge_key_, false);
  }

  void take_value(Frame& frame, Tree tree) {
    if (frame.key_is_merge) {
      take_merge(frame, std::move(tree));
      return;
    }
    for (Tree::Entry& entry : frame.tree.entries) {
      if (entry.key == frame.key) {
        warnings_.push_back(
            {frame.key_where,
             frame.key,
             {},
             fmt::format("is written twice; the one at {} is not used", entry.where)});
        entry.value = std::move(tree);
        entry.where = frame.key_where;
        return;
      }
    }
    frame.tree.entries.push_back({frame.key, std::move(tree), frame.key_where});
  }

  static void take_merge(Frame& frame, Tree tree) {
    const bool all_maps =
        tree.is_list() && std::all_of(tree.items.begin(), tree.items.end(),
                                      [](const Tree& item) { return item.is_map(); });
    if (tree.is_map()) {
      frame.merges.push_back(std::move(tree));
    } else if (all_maps) {
      for (Tree& item : tree.items) {
        frame.merges.push_back(std::move(item));
      }
    } else {
      throw Refusal(frame.key_where, "'<<' takes a mapping or a list of mappings");
    }
  }

  std::string_view file_;
  base::Problems& warnings_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  bool merge_key_ = false;
  bool complete_ = false;
  Tree root_;
};

// YAML text is UTF-8 without control characters; nothing else gets to the parser.
bool is_text(std::string_view text, std::string_view file, base::Problems& problems) {
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20U && c != '\t' && c != '\n' && c != '\r') ||
           c == 0x7F;
  });
  const auto control_at = static_cast<std::size_t>(control - text.begin());
  const std::size_t bad_at = std::min(first_bad_utf8(text), control_at);
  if (bad_at >= text.size()) {
    return true;
  }
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad_at), '\n');
  problems.push_back({fmt::format("{}:{}", file, line + 1),
                      {},
                      {},
                      bad_at == control_at ? "holds a control character; is it a text file?"
                                           : "is not UTF-8; save it as UTF-8"});
  return false;
}

}  // namespace

Tree tree_from_yaml(std::string_view text, std::string_view file, base::Problems& problems,
                    base::Problems& warnings) {
  if (!is_text(text, file, problems)) {
    return {};
  }
  Builder builder(file, warnings);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Tree tree = builder.take();
    if (tree.where.empty()) {
      tree.where = fmt::format("{}:1", file);
    }
    Builder second(file, warnings);
    if (builder.is_complete() && parser.HandleNextDocument(second)) {
      problems.push_back(
          {std::string(file), {}, {}, "holds more than one YAML document; keep one"});
    }
    return tree;
  } catch (const Refusal& refusal) {
    problems.push_back({refusal.where(), {}, {}, refusal.what()});
  } catch (const YAML::Exception& error) {
    problems.push_back({fmt::format("{}:{}", file, error.mark.line + 1),
                        {},
                        {},
                        fmt::format("not valid YAML: {}", error.msg)});
  } catch (const std::exception& error) {
    problems.push_back({std::string(file), {}, {}, fmt::format("not readable: {}", error.what())});
  }
  return {};
}

}  // namespace tutti::spec
