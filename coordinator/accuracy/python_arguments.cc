#include "coordinator/accuracy/python_arguments.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/accuracy/python_parser.h"

namespace tutti::accuracy {
namespace {

using Kind = PyValue::Kind;

// A space on either side of each.
constexpr std::u32string_view kKeywords =
    U" False None True and as assert async await break class continue def del elif else except "
    U"finally for from global if import in is lambda nonlocal not or pass raise return try while "
    U"with yield ";

}  // namespace

std::optional<PyValue> PythonParser::arguments() {
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

bool PythonParser::is_keyword(std::u32string_view name) {
  return kKeywords.find(U" " + std::u32string(name) + U" ") != std::u32string_view::npos;
}

bool PythonParser::call_ends(PyToken::Kind kind) const {
  return kind == PyToken::Kind::kEnd ? now().kind == kind : is(U")");
}

bool PythonParser::read_call(Call& call, PyToken::Kind end) {
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

bool PythonParser::primary(Node& out) {
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

std::u32string PythonParser::told(const Call& call) {
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

bool PythonParser::subscript(std::u32string& out) {
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

bool PythonParser::atom(Node& out) {
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

bool PythonParser::name(Node& out) {
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

bool PythonParser::strings(Node& out) {
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

bool PythonParser::read_items(std::vector<Node>& items, std::u32string_view closing) {
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

bool PythonParser::made(Node& out, const std::vector<Node>& items, std::u32string_view open,
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

bool PythonParser::group(Node& out) {
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

bool PythonParser::braces(Node& out) {
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

bool PythonParser::dict(Node& out, const Node* first) {
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

std::optional<PyValue> python_arguments(std::u32string_view source) {
  auto tokens = python_tokens(source);
  return tokens ? PythonParser(std::move(*tokens)).arguments() : std::nullopt;
}

}  // namespace tutti::accuracy
