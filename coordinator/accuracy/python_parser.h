#pragma once

// PythonParser: one pass over the tokens of a call's arguments, by recursive descent with one
// method a rule; what a rule read is a Node. The operators stand in python_operators.cc, names,
// displays and calls in python_arguments.cc. Private to python_arguments(). One owner, one use.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/accuracy/python_node.h"
#include "coordinator/accuracy/python_tokens.h"

namespace tutti::accuracy {

class PythonParser {
 public:
  explicit PythonParser(std::vector<PyToken> tokens) : tokens_(std::move(tokens)) {}

  std::optional<PyValue> arguments();

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
  static bool is_keyword(std::u32string_view name);

  // Of all rules: false when it is not to be read.
  bool test(Node& out);
  // or, and: the more operands one has, the more unparse wants of the later ones.
  bool any(Node& out, int level);
  bool negation(Node& out);
  std::u32string compare_sign();
  bool comparison(Node& out);
  bool binary(Node& out, int level);
  bool factor(Node& out);
  bool power(Node& out);

  bool call_ends(PyToken::Kind kind) const;
  // Up to, not over, the end.
  bool read_call(Call& call, PyToken::Kind end);
  bool primary(Node& out);
  static std::u32string told(const Call& call);
  bool subscript(std::u32string& out);
  bool atom(Node& out);
  bool name(Node& out);
  // Neighbours are one.
  bool strings(Node& out);
  // Over the closing sign.
  bool read_items(std::vector<Node>& items, std::u32string_view closing);
  bool made(Node& out, const std::vector<Node>& items, std::u32string_view open,
            std::u32string_view close, PyValue value);
  // Behind "(": one thing in parentheses, or a tuple.
  bool group(Node& out);
  // Behind "{": a dict, or a set.
  bool braces(Node& out);
  // `first`: a key that was read already, or null.
  bool dict(Node& out, const Node* first);

  static constexpr int kDepthMax = 80;

  std::vector<PyToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool comma_ = false;
};

}  // namespace tutti::accuracy
