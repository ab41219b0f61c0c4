#include "common/spec/flag_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/spec/coerce.h"
#include "common/spec/flag_names.h"
#include "common/spec/tree_json.h"
#include "common/spec/words.h"

namespace tutti::spec {
namespace {

bool is_negative_number(std::string_view text) {
  return text.size() > 1 && text[0] == '-' &&
         ((text[1] >= '0' && text[1] <= '9') || text[1] == '.' || text == "-inf");
}

// One argument list being read. A flag is `name` or `name=value`; `spelled` keeps its dashes.
class Reader {
 public:
  Reader(const FlagGrammar& grammar, const std::vector<std::string>& args, Findings& findings)
      : grammar_(grammar), args_(args), findings_(findings) {
    parsed_.document.where = "command line";
  }

  ParsedFlags read() {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_++];
      if (first_bad_utf8(arg) != std::string::npos) {
        findings_.wrong_at("command line", {}, "an argument is not UTF-8");
        continue;
      }
      if (arg == "-c" && grammar_.takes_config) {
        take("config", "-c", std::nullopt);
        continue;
      }
      if (!arg.starts_with("--") || arg.size() == 2) {
        findings_.wrong_at(
            "command line", {},
            fmt::format("unexpected argument '{}'; {}", shown({}, Tree::of_string(arg)),
                        arg.starts_with('-') ? "flags start with two dashes"
                                             : "repeat the flag to give several values"));
        continue;
      }
      const std::size_t equals = arg.find('=');
      const std::string spelled = arg.substr(0, equals);
      const auto value = equals == std::string::npos
                             ? std::optional<std::string>{}
                             : std::optional<std::string>(arg.substr(equals + 1));
      take(spelled.substr(2), spelled, value);
    }
    put_free_values();
    return std::move(parsed_);
  }

 private:
  void wrong(const std::string& spelled, std::string remedy) {
    findings_.wrong_at(spelled, {}, std::move(remedy));
  }

  // False, with a problem, when a flag that takes one value was seen before under any of its names.
  bool is_first(const std::string& what, const std::string& spelled) {
    if (seen_.insert(what).second) {
      return true;
    }
    wrong(spelled, "is given more than once; keep one of them");
    return false;
  }

  std::optional<std::string> value_of(const std::string& spelled,
                                      const std::optional<std::string>& attached) {
    if (attached) {
      return attached;
    }
    const bool has_next =
        at_ < args_.size() && (!args_[at_].starts_with('-') || is_negative_number(args_[at_]));
    if (!has_next) {
      wrong(spelled, "requires an argument");
      return std::nullopt;
    }
    if (first_bad_utf8(args_[at_]) != std::string::npos) {
      wrong(spelled, "its value is not UTF-8");
      ++at_;
      return std::nullopt;
    }
    return args_[at_++];
  }

  std::optional<bool> switch_of(const std::string& spelled, bool negated,
                                const std::optional<std::string>& attached) {
    if (!attached) {
      return !negated;
    }
    if (negated) {
      wrong(spelled, "takes no value");
      return std::nullopt;
    }
    const auto value = to_bool(Tree::of_string(*attached));
    if (!value) {
      wrong(spelled, fmt::format("'{}' {}", *attached, value.error()));
      return std::nullopt;
    }
    return *value;
  }

  void take(const std::string& name, const std::string& spelled,
            const std::optional<std::string>& attached) {
    if (take_command_flag(kebab(name), spelled, attached) ||
        take_section(name, spelled, attached)) {
      return;
    }
    const auto target = flag_target(name);
    if (!target || !is_taken(target->path)) {
      unknown(name, spelled);
    } else if (target->row != nullptr && target->row->kind == FieldKind::kBool) {
      take_bool(*target, spelled, attached);
    } else {
      take_value(*target, spelled, attached);
    }
  }

  bool is_taken(std::string_view path) const {
    return grammar_.takes_fields || path.starts_with("distributed.") || path == "report_dir" ||
           path == "settings.timeouts.run_timeout_s";
  }

  bool take_command_flag(const std::string& name, const std::string& spelled,
                         const std::optional<std::string>& attached) {
    CommandFlags& command = parsed_.command;
    if (name == "mode" || (name == "config" && grammar_.takes_config)) {
      const auto value = value_of(spelled, attached);
      if (value && is_first(name, spelled)) {
        (name == "mode" ? command.mode : command.config_path) = *value;
      }
      return true;
    }
    if (name == "dataset" && grammar_.takes_datasets) {
      if (const auto value = value_of(spelled, attached)) {
        command.datasets.push_back(*value);
      }
      return true;
    }
    if (name == "json-values" && grammar_.takes_fields) {
      command.json_values = switch_of(spelled, false, attached).value_or(false);
      return true;
    }
    if (name == "accuracy-only" || name == "no-accuracy-only") {
      const auto value = switch_of(spelled, name != "accuracy-only", attached);
      if (value && is_first("accuracy-only", spelled)) {
        command.accuracy_only = *value;
      }
      return true;
    }
    return false;
  }

  // `--runtime '{"…"}'`. Some section names are flags of their own too; a JSON mapping tells.
  bool take_section(const std::string& name, const std::string& spelled,
                    const std::optional<std::string>& attached) {
    const Row* section = flag_section(name);
    if (section == nullptr || !is_taken(section->path + ".")) {
      return false;
    }
    const std::string_view next = attached             ? std::string_view(*attached)
                                  : at_ < args_.size() ? std::string_view(args_[at_])
                                                       : std::string_view();
    if (!trimmed(next).starts_with('{')) {
      if (flag_target(name)) {
        return false;
      }
      wrong(spelled, fmt::format("takes a JSON mapping, or name one of its fields, e.g. --{}",
                                 flag_name(*config_schema().children(section->path).front())));
      if (!attached && at_ < args_.size() && !args_[at_].starts_with('-')) {
        ++at_;
      }
      return true;
    }
    const auto tree = tree_from_json(next, spelled);
    at_ += attached ? 0U : 1U;
    if (!tree) {
      wrong(spelled, tree.error().message);
    } else if (is_first(section->path + "{}", spelled)) {
      put(section->path, *tree, spelled);
    }
    return true;
  }

  void take_bool(const FlagTarget& target, const std::string& spelled,
                 const std::optional<std::string>& attached) {
    const auto value = switch_of(spelled, target.is_negated, attached);
    if (!value || !is_first(target.path, spelled)) {
      return;
    }
    if (target.is_deprecated) {
      findings_.warn_at(spelled, target.path,
                        fmt::format("is an old name; write --{}", flag_name(*target.row)));
    }
    Tree tree = Tree::of_bool(*value);
    tree.where = spelled;
    put(target.path, std::move(tree), spelled);
  }

  void take_value(const FlagTarget& target, const std::string& spelled,
                  const std::optional<std::string>& attached) {
    const auto value = value_of(spelled, attached);
    if (!value) {
      return;
    }
    Tree tree = Tree::of_string(*value);
    tree.where = spelled;
    if (!target.sub_key.empty()) {
      if (is_first(target.path + "." + target.sub_key, spelled)) {
        free_values_.push_back({target.path, target.sub_key, std::move(tree)});
      }
      return;
    }
    if (target.row != nullptr &&
        (target.row->kind == FieldKind::kTextList || target.row->kind == FieldKind::kIntList)) {
      put_items(target, *value, spelled);
      return;
    }
    if (!is_first(target.path, spelled)) {
      return;
    }
    if (target.row != nullptr && target.row->kind == FieldKind::kEnum) {
      tree.text = enum_text(*target.row, *value);
    }
    if (target.row != nullptr && target.row->kind == FieldKind::kTree) {
      const auto json = tree_from_json(*value, spelled);
      if (!json || !json->is_map()) {
        wrong(spelled, "takes a JSON mapping, or one flag per key: " + spelled + ".KEY VALUE");
        return;
      }
      tree = *json;
    }
    put(target.path, std::move(tree), spelled);
  }

  // Help shows enum values as the file spells them; dashes are understood as well.
  static std::string enum_text(const Row& row, const std::string& value) {
    const std::string other = snake(value);
    return std::find(row.names.begin(), row.names.end(), other) != row.names.end() ||
                   std::find(row.later.begin(), row.later.end(), other) != row.later.end()
               ? other
               : value;
  }

  void put_items(const FlagTarget& target, const std::string& value, const std::string& spelled) {
    const std::vector<std::string> parts =
        target.row->splits_commas ? split(value, ',') : std::vector<std::string>{value};
    Tree* list = section_of(target.path, spelled);
    if (list == nullptr) {
      return;
    }
    Tree* found = list->find(leaf_of(target.path));
    if (found == nullptr) {
      Tree empty = Tree::list();
      empty.where = spelled;
      found = &list->set(leaf_of(target.path), std::move(empty));
    }
    for (const std::string& part : parts) {
      Tree item = Tree::of_string(part);
      item.where = spelled;
      found->items.push_back(std::move(item));
    }
  }

  // The mapping that holds `path`'s leaf, made on the way down.
  Tree* section_of(std::string_view path, const std::string& spelled) {
    Tree* node = &parsed_.document;
    const std::string parent(parent_of(path));
    for (const std::string& part : split(parent, '.')) {
      if (part.empty()) {
        continue;
      }
      Tree* below = node->find(part);
      if (below == nullptr) {
        Tree map = Tree::map();
        map.where = spelled;
        below = &node->set(part, std::move(map));
      }
      if (!below->is_map()) {
        wrong(spelled, fmt::format("cannot be set inside the value given for {}", part));
        return nullptr;
      }
      node = below;
    }
    return node;
  }

  void put(std::string_view path, Tree tree, const std::string& spelled) {
    Tree* section = section_of(path, spelled);
    if (section == nullptr) {
      return;
    }
    const Tree* old = section->find(leaf_of(path));
    section->set(leaf_of(path), old == nullptr ? std::move(tree) : merged(*old, tree));
  }

  void unknown(const std::string& name, const std::string& spelled) {
    if (at_ < args_.size() && !args_[at_].starts_with('-')) {
      ++at_;  // most likely its value; one message is enough
    }
    if (!grammar_.takes_fields && flag_target(name)) {
      wrong(spelled, "is a field of the config file; set it there");
      return;
    }
    if (name.starts_with("datasets") || name == "empty-datasets") {
      wrong(spelled, "unknown flag; use --dataset PATH,KEY=VALUE");
      return;
    }
    const std::string meant = nearest(kebab(name), all_flag_names());
    wrong(spelled, meant.empty() ? "unknown flag; --help lists them"
                                 : fmt::format("unknown flag; did you mean --{}?", meant));
  }

  struct FreeValue {
    std::string path;
    std::string key;
    Tree value;
  };

  // Keys of free mappings go in last: how their values read depends on --json-values.
  void put_free_values() {
    for (const FreeValue& free : free_values_) {
      Tree value = free.value;
      if (parsed_.command.json_values) {
        const auto json = tree_from_json(value.text, value.where);
        value = json ? *json : value;
      }
      put(free.path + "." + free.key, std::move(value), free.value.where);
    }
  }

  const FlagGrammar& grammar_;
  const std::vector<std::string>& args_;
  Findings& findings_;
  ParsedFlags parsed_;
  std::vector<FreeValue> free_values_;
  std::set<std::string> seen_;
  std::size_t at_ = 0;
};

}  // namespace

ParsedFlags parse_flags(const FlagGrammar& grammar, const std::vector<std::string>& args,
                        Findings& findings) {
  return Reader(grammar, args, findings).read();
}

}  // namespace tutti::spec
