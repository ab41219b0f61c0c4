#include "common/text/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

namespace tutti::text {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kBlanks = " \t\r\n";
// Beyond every cluster; keeps widths and numbers within 64 bits.
constexpr std::size_t kDigitsMax = 18;
// Together with kHostsMax these bound the work: every group and every text touches all names so
// far.
constexpr std::size_t kGroupsMax = 8;
constexpr std::size_t kNameBytesMax = 255;

tl::unexpected<base::Error> wrong(std::string_view item, std::string_view why) {
  constexpr std::size_t kShown = 80;
  return base::fail(base::ExitCode::kInput,
                    fmt::format("host list: \"{}\" {}; write it like gpu[01-03,7],login1",
                                item.substr(0, kShown), why));
}

tl::unexpected<base::Error> too_many() {
  return base::fail(base::ExitCode::kInput,
                    fmt::format("host list: more than {} names", kHostsMax));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kDigitsMax &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::uint64_t number(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// "01-03,7" → 01 02 03 7
base::Result<Names> numbers_of(std::string_view group, std::string_view item) {
  Names out;
  for (std::size_t start = 0; start <= group.size();) {
    const std::size_t end = std::min(group.find(',', start), group.size());
    const std::string_view part = trimmed(group.substr(start, end - start));
    start = end + 1;
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
    if (!is_number(first) || !is_number(last)) {
      return wrong(item, "has something in brackets that is no number and no range");
    }
    if (number(last) < number(first)) {
      return wrong(item, "has a range that runs backwards");
    }
    if (number(last) - number(first) >= kHostsMax - out.size()) {
      return too_many();
    }
    const std::size_t width = first.front() == '0' ? first.size() : 1;
    for (std::uint64_t n = number(first); n <= number(last); ++n) {
      out.push_back(fmt::format("{:0{}}", n, width));
    }
  }
  return out;
}

// One item of the list: text and groups in turn. The names so far are multiplied by each group, so
// that later groups vary fastest.
base::Result<Names> expand_item(std::string_view item) {
  Names names{""};
  std::string_view rest = item;
  std::size_t groups = 0;
  while (!rest.empty()) {
    const std::size_t open = rest.find('[');
    const std::string_view text = rest.substr(0, open);
    if (text.find(']') != std::string_view::npos) {
      return wrong(item, "closes a bracket that it did not open");
    }
    if (text.find_first_of(kBlanks) != std::string_view::npos) {
      return wrong(item, "has a blank in a name");
    }
    if (names[0].size() + text.size() > kNameBytesMax) {
      return wrong(item, "gives names longer than a host name may be");
    }
    for (std::string& name : names) {
      name += text;
    }
    if (open == std::string_view::npos) {
      break;
    }
    if (++groups > kGroupsMax) {
      return wrong(item, "has too many brackets");
    }
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) {
      return wrong(item, "does not close its bracket");
    }
    const auto numbers = numbers_of(rest.substr(open + 1, close - open - 1), item);
    if (!numbers) {
      return tl::unexpected(numbers.error());
    }
    if (names.size() * numbers->size() > kHostsMax) {
      return too_many();
    }
    Names longer;
    longer.reserve(names.size() * numbers->size());
    for (const std::string& name : names) {
      for (const std::string& each : *numbers) {
        longer.push_back(name + each);
      }
    }
    names = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return names;
}

// Where the item that starts at `start` ends: at a comma outside brackets.
std::size_t end_of_item(std::string_view list, std::size_t start) {
  bool inside = false;
  for (std::size_t i = start; i < list.size(); ++i) {
    if (list[i] == ',' && !inside) {
      return i;
    }
    inside = list[i] == '[' || (inside && list[i] != ']');
  }
  return list.size();
}

}  // namespace

base::Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  Names out;
  for (std::size_t start = 0; start < list.size();) {
    const std::size_t end = end_of_item(list, start);
    const std::string_view item = trimmed(list.substr(start, end - start));
    start = end + 1;
    if (item.empty()) {
      continue;
    }
    auto names = expand_item(item);
    if (!names) {
      return names;
    }
    if (out.size() + names->size() > kHostsMax) {
      return too_many();
    }
    out.insert(out.end(), std::make_move_iterator(names->begin()),
               std::make_move_iterator(names->end()));
  }
  return out;
}

}  // namespace tutti::text
