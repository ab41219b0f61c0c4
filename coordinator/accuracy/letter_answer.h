#pragma once

// Which of A, B, C, D a reply to a multiple-choice question settles on, by the reference's list of
// forms ("Answer: B", "**B**", "\boxed{B}", a line that begins with a capital, …). The first form
// that is found anywhere wins, by its leftmost place. Pure; linear in the text but for runs of
// emphasis marks.

#include <optional>
#include <string_view>

namespace tutti::accuracy {

// 'A' to 'D', or nothing.
std::optional<char> letter_answer(std::u32string_view text);

}  // namespace tutti::accuracy
