#include "coordinator/accuracy/python_arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/accuracy/python_node.h"
#include "coordinator/accuracy/python_tokens.h"

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

// A space on either side of each.
constexpr std::u32string_view kKeywords =
    U" False None True and as assert async await break class continue def del elif else except "
    U"finally for from global if import in is lambda nonlocal not or pass raise return try while "
    U"with yield ";

struct Operator {
  std::u32string_view text;
  int level;
};
constexpr std::array<Operator, 13> kBinary{{{U"|", kBitOr},
                                            {U"^", kBitXor},
                                            {U"&", kBitAnd},
                                            {U"<<", kShift},
                                            {U">>", kShift},
                                            {U"+", kArith},
                                            {U"-", kArith},
                                            {U"*", kTerm},
                                            {U"/", kTerm},
                                            {U"//", kTerm},
                                            {U"%", kTerm},
                                            {U"@", kTerm},
                                            {U"**", kPower}}};

class Parser {
 public:
  explicit Parser(std::vector<PyToken> tokens) : tokens_(std::move(tokens)) {}

  std::optional<PyValue> arguments() {
    Call call;
    if (!read_call(call, PyToken::Kind::kEnd)) {
      return std::nullopt;
    }
    PyValue out = PyValue::of(Kind::kDict);
    for (auto& [name, node] : call.named) {
      if (!name.empty()) {
        out.set(PyValue::of(Kind::kText, name),
                node.value ? *node.value : PyValue::of(Kind::kText, node.source));
      }
    }
    return out;
  }

 private:
  struct Call {
    std::vector<std::u32string> places;                  // source
    std::vector<std::pair<std::u32string, Node>> named;  // "": **
  };

  const PyToken& now() const { return tokens_[at_]; }

  bool is(std::u32string_view text) const {
    return (now().kind == PyToken::Kind::kSign || now().kind == PyToken::Kind::kName) &&
           now().text == text;
  }
  bool take(std::u32string_view text) {
    if (!is(text)) {
      return false;
    }
    ++at_;
    return true;
  }
  static bool is_keyword(std::u32string_view name) {
    return kKeywords.find(U" " + std::u32string(name) + U" ") != std::u32string_view::npos;
  }

  bool call_ends(PyToken::Kind kind) const {
    return kind == PyToken::Kind::kEnd ? now().kind == kind : is(U")");
  }

  // Up to, not over, the end.
  bool read_call(Call& call, PyToken::Kind end) {
    bool unpacked = false;
    while (!call_ends(end)) {
      Node node;
      const bool names = now().kind == PyToken::Kind::kName &&
                         tokens_[at_ + 1].kind == PyToken::Kind::kSign &&
                         tokens_[at_ + 1].text == U"=";
      if (take(U"**")) {
        unpacked = true;
        if (!test(node)) {
          return false;
        }
        call.named.emplace_back(U"", std::move(node));
      } else if (names) {
        const std::u32string name(now().text);
        at_ += 2;
        if (is_keyword(name) || !test(node)) {
          return false;
        }
        call.named.emplace_back(name, std::move(node));
      } else if (take(U"*")) {
        if (unpacked || !test(node)) {
          return false;
        }
        call.places.push_back(U"*" + in(node, kBitOr));
      } else {
        if (!call.named.empty() || !test(node)) {
          return false;
        }
        call.places.push_back(in(node, kTest));
      }
      if (!take(U",")) {
        return call_ends(end);
      }
    }
    return call.places.empty() && call.named.empty() ? tokens_[at_ == 0 ? 0 : at_ - 1].text != U","
                                                     : true;
  }

  bool test(Node& out) {
    if (++depth_ > kDepthMax || !any(out, kOr)) {
      return false;
    }
    --depth_;
    if (!take(U"if")) {
      return true;
    }
    Node condition;
    Node other;
    if (!any(condition, kOr) || !take(U"else") || !test(other)) {
      return false;
    }
    out = {in(out, kOr) + U" if " + in(condition, kOr) + U" else " + in(other, kTest), kTest,
           std::nullopt};
    return true;
  }

  // or, and: the more operands one has, the more unparse wants of the later ones.
  bool any(Node& out, int level) {
    const std::u32string_view word = level == kOr ? U"or" : U"and";
    const auto operand = [this, level](Node& node) {
      return level == kOr ? any(node, kAnd) : negation(node);
    };
    if (!operand(out)) {
      return false;
    }
    if (!is(word)) {
      return true;
    }
    int wanted = level + 1;
    std::u32string source = in(out, wanted);
    while (take(word)) {
      Node next;
      if (!operand(next)) {
        return false;
      }
      source.append(U" ").append(word).append(U" ").append(in(next, ++wanted));
    }
    out = {source, level, std::nullopt};
    return true;
  }

  bool negation(Node& out) {
    if (!take(U"not")) {
      return comparison(out);
    }
    if (++depth_ > kDepthMax || !negation(out)) {
      return false;
    }
    --depth_;
    out = {U"not " + in(out, kNot), kNot, std::nullopt};
    return true;
  }

  std::u32string compare_sign() {
    for (const std::u32string_view sign : {U"<", U">", U"==", U">=", U"<=", U"!=", U"in"}) {
      if (take(sign)) {
        return std::u32string(sign);
      }
    }
    if (take(U"is")) {
      return take(U"not") ? U"is not" : U"is";
    }
    if (is(U"not") && tokens_[at_ + 1].text == U"in") {
      at_ += 2;
      return U"not in";
    }
    return {};
  }

  bool comparison(Node& out) {
    if (!binary(out, kBitOr)) {
      return false;
    }
    for (std::u32string sign = compare_sign(); !sign.empty(); sign = compare_sign()) {
      Node next;
      if (!binary(next, kBitOr)) {
        return false;
      }
      const std::u32string left = out.level == kCompare ? out.source : in(out, kBitOr);
      out = {left + U" " + sign + U" " + in(next, kBitOr), kCompare, std::nullopt};
    }
    return true;
  }

  const Operator* binary_operator(int level) const {
    for (const Operator& each : kBinary) {
      if (each.level == level && now().kind == PyToken::Kind::kSign && now().text == each.text) {
        return &each;
      }
    }
    return nullptr;
  }

  bool binary(Node& out, int level) {
    if (level == kFactor) {
      return factor(out);
    }
    if (!binary(out, level + 1)) {
      return false;
    }
    while (const Operator* const sign = binary_operator(level)) {
      ++at_;
      Node next;
      if (!binary(next, level + 1)) {
        return false;
      }
      const bool sum = level == kArith && is_literal_number(out) && next.is_number && next.value &&
                       next.value->kind == Kind::kForeign;
      std::u32string source = in(out, level);
      source.append(U" ").append(sign->text).append(U" ").append(in(next, level + 1));
      out = {std::move(source), level,
             sum ? std::optional(PyValue::of(Kind::kForeign)) : std::nullopt};
    }
    return true;
  }

  static bool is_literal_number(const Node& node) {
    return node.value && (node.value->kind == Kind::kInt || node.value->kind == Kind::kFloat);
  }

  bool factor(Node& out) {
    for (const std::u32string_view sign : {U"+", U"-", U"~"}) {
      if (!take(sign)) {
        continue;
      }
      if (++depth_ > kDepthMax || !factor(out)) {
        return false;
      }
      --depth_;
      std::optional<PyValue> value;
      if (out.is_number && out.value && sign != U"~") {
        value = out.value;
        if (sign == U"-" && value->kind != Kind::kForeign &&
            !(value->kind == Kind::kInt && value->text == U"0")) {
          value->text.insert(0, U"-");
        }
      }
      out = {std::u32string(sign) + in(out, kFactor), kFactor, std::move(value)};
      return true;
    }
    return power(out);
  }

  bool power(Node& out) {
    if (!primary(out)) {
      return false;
    }
    if (take(U"**")) {
      Node next;
      if (!factor(next)) {
        return false;
      }
      out = {in(out, kAwait) + U" ** " + in(next, kPower), kPower, std::nullopt};
    }
    return true;
  }

  bool primary(Node& out) {
    if (!atom(out)) {
      return false;
    }
    while (true) {
      if (take(U".")) {
        if (now().kind != PyToken::Kind::kName || is_keyword(now().text)) {
          return false;
        }
        out = {in(out, kAtom) + (out.is_int ? U" ." : U".") + std::u32string(now().text), kAtom,
               std::nullopt};
        ++at_;
      } else if (take(U"(")) {
        Call call;
        if (!read_call(call, PyToken::Kind::kSign) || !take(U")")) {
          return false;
        }
        // literal_eval knows one call, and json cannot write what it gives.
        const bool empty_set = out.source == U"set" && call.places.empty() && call.named.empty();
        out = {in(out, kAtom) + U"(" + told(call) + U")", kAtom,
               empty_set ? std::optional(PyValue::of(Kind::kForeign)) : std::nullopt};
      } else if (take(U"[")) {
        std::u32string index;
        if (!subscript(index)) {
          return false;
        }
        out = {in(out, kAtom) + U"[" + index + U"]", kAtom, std::nullopt};
      } else {
        return true;
      }
    }
  }

  static std::u32string told(const Call& call) {
    std::u32string out;
    const auto add = [&out](const std::u32string& text) {
      out += (out.empty() ? U"" : U", ") + text;
    };
    for (const std::u32string& place : call.places) {
      add(place);
    }
    for (const auto& [name, node] : call.named) {
      add((name.empty() ? U"**" : name + U"=") + in(node, name.empty() ? kBitOr : kTest));
    }
    return out;
  }

  bool subscript(std::u32string& out) {
    std::size_t count = 0;
    bool comma = false;
    bool tuple = false;
    while (!is(U"]")) {
      std::u32string part;
      for (int colons = 0; !is(U"]") && !is(U","); ++colons) {
        Node node;
        if (!is(U":") && !test(node)) {
          return false;
        }
        part += node.source;
        tuple = node.is_tuple;
        if (is(U"]") || is(U",")) {
          break;
        }
        if (colons == 2 || !take(U":")) {
          return false;
        }
        part += U':';
      }
      if (part.empty()) {
        return false;
      }
      out += (count == 0 ? U"" : U", ") + part;
      ++count;
      comma = take(U",");
      if (!comma) {
        break;
      }
    }
    if (count == 1 && tuple && !comma && out.back() == U')') {
      out = out.substr(1, out.size() - 2);  // x[(1, 2)] is x[1, 2]
    }
    out += count == 1 && comma ? U"," : U"";
    return count > 0 && take(U"]");
  }

  bool atom(Node& out) {
    const PyToken& token = now();
    if (token.kind == PyToken::Kind::kNumber) {
      ++at_;
      out = {token.value.kind == Kind::kForeign ? std::u32string(token.text) : token.value.text,
             kAtom, token.value, token.text != U"...", token.value.kind == Kind::kInt};
      return true;
    }
    if (token.kind == PyToken::Kind::kString) {
      return strings(out);
    }
    if (token.kind == PyToken::Kind::kName) {
      return name(out);
    }
    if (take(U"(")) {
      return group(out);
    }
    if (take(U"[")) {
      std::vector<Node> items;
      return read_items(items, U"]") && made(out, items, U"[", U"]", PyValue::of(Kind::kList));
    }
    return take(U"{") && braces(out);
  }

  bool name(Node& out) {
    const std::u32string text(now().text);
    ++at_;
    const Kind kind = text == U"None"    ? Kind::kNone
                      : text == U"True"  ? Kind::kTrue
                      : text == U"False" ? Kind::kFalse
                                         : Kind::kForeign;
    if (kind != Kind::kForeign) {
      out = {text, kAtom, PyValue::of(kind)};
      return true;
    }
    out = {text, kAtom, std::nullopt};
    return !is_keyword(text);
  }

  // Neighbours are one.
  bool strings(Node& out) {
    PyValue whole = now().value;
    std::u32string source(now().text);
    for (++at_; now().kind == PyToken::Kind::kString; ++at_) {
      if (now().value.kind != whole.kind) {
        return false;
      }
      whole.text += now().value.text;
      source += U" " + std::u32string(now().text);
    }
    out = {whole.kind == Kind::kText ? quoted(whole.text) : source, kAtom, std::move(whole)};
    return true;
  }

  // Over the closing sign.
  bool read_items(std::vector<Node>& items, std::u32string_view closing) {
    while (!take(closing)) {
      Node node;
      const bool star = take(U"*");
      if (star ? !binary(node, kBitOr) : !test(node)) {
        return false;
      }
      if (star) {
        node = {U"*" + in(node, kBitOr), kAtom, std::nullopt};
      }
      items.push_back(std::move(node));
      comma_ = take(U",");
      if (!comma_ && !is(closing)) {
        return false;
      }
    }
    return true;
  }

  bool made(Node& out, const std::vector<Node>& items, std::u32string_view open,
            std::u32string_view close, PyValue value) {
    std::u32string source(open);
    bool literal = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
      source += (i == 0 ? U"" : U", ") + in(items[i], kTest);
      literal = literal && items[i].value;
      if (literal) {
        value.items.push_back(*items[i].value);
      }
    }
    source += close;
    out = {std::move(source), kAtom, literal ? std::optional(std::move(value)) : std::nullopt};
    out.is_tuple = open == U"(" && !items.empty();
    return true;
  }

  // Behind "(": one thing in parentheses, or a tuple.
  bool group(Node& out) {
    std::vector<Node> items;
    comma_ = false;
    if (!read_items(items, U")")) {
      return false;
    }
    if (items.size() == 1 && !comma_) {
      out = std::move(items.front());
      return out.source[0] != U'*';
    }
    return made(out, items, U"(", items.size() == 1 ? U",)" : U")", PyValue::of(Kind::kList));
  }

  // Behind "{": a dict, or a set.
  bool braces(Node& out) {
    Node first;
    if (is(U"}") || is(U"**")) {
      return dict(out, nullptr);
    }
    std::vector<Node> items;
    if (!is(U"*")) {
      if (!test(first)) {
        return false;
      }
      if (is(U":")) {
        return dict(out, &first);
      }
      items.push_back(std::move(first));
      if (!take(U",") && !is(U"}")) {
        return false;
      }
    }
    return read_items(items, U"}") && made(out, items, U"{", U"}", PyValue::of(Kind::kForeign));
  }

  // `first`: a key that was read already, or null.
  bool dict(Node& out, const Node* first) {
    PyValue value = PyValue::of(Kind::kDict);
    std::u32string source = U"{";
    bool literal = true;
    while (!take(U"}")) {
      Node key;
      Node item;
      source += source.size() == 1 ? U"" : U", ";
      if (take(U"**")) {
        if (!binary(item, kBitOr)) {
          return false;
        }
        literal = false;
        source += U"**" + in(item, kBitOr);
      } else {
        if (first != nullptr) {
          key = *std::exchange(first, nullptr);
        } else if (!test(key)) {
          return false;
        }
        if (!take(U":") || !test(item)) {
          return false;
        }
        source += in(key, kTest) + U": " + in(item, kTest);
        literal = literal && key.value && item.value;
        if (literal && !value.set(*key.value, *item.value)) {
          value.set(PyValue::of(Kind::kForeign), {});  // no such key can be: Python fails
        }
      }
      if (!take(U",") && !is(U"}")) {
        return false;
      }
    }
    out = {source + U"}", kAtom, literal ? std::optional(std::move(value)) : std::nullopt};
    return true;
  }

  static constexpr int kDepthMax = 80;

  std::vector<PyToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool comma_ = false;
};

}  // namespace

std::optional<PyValue> python_arguments(std::u32string_view source) {
  auto tokens = python_tokens(source);
  return tokens ? Parser(std::move(*tokens)).arguments() : std::nullopt;
}

}  // namespace tutti::accuracy
