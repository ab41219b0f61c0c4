#pragma once

// HeldCommands: the commands in agents' hands and who has which, by their number. Numbers are
// handed out densely and come back roughly in that order, so they lie in pages by number: every
// step is one index, and a page goes when its last command has come back. 48 bytes a command held;
// a command that never comes back keeps one page. Plain value; owned by a PhaseRun.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "common/base/vocabulary.h"

namespace tutti::conduct {

class HeldCommands {
 public:
  struct Held {
    base::IssueCommand command;
    std::uint32_t seat = kNobody;
  };

  // Its number must not be held.
  void add(const base::IssueCommand& command, std::uint32_t seat);
  // nullptr: nobody has it. Valid until the next add() or erase().
  const Held* find(base::Seq seq) const;
  void erase(base::Seq seq);  // must be held

  std::uint64_t size() const { return size_; }

  // visit(const Held&) → whether it is to be erased; ascending numbers.
  template <class Visit>
  void erase_if(Visit visit);
  // visit(const Held&); ascending numbers.
  template <class Visit>
  void each(Visit visit) const;

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  static constexpr std::size_t kPage = 256;
  struct Page {
    std::array<Held, kPage> cells;
    std::size_t held = 0;
  };

  Page* page_of(base::Seq seq) const;
  void drop_empty_ends();

  std::deque<std::unique_ptr<Page>> pages_;  // [first_, first_ + size), null where nothing is held
  std::uint64_t first_ = 0;
  std::uint64_t size_ = 0;
};

template <class Visit>
void HeldCommands::erase_if(Visit visit) {
  for (auto& page : pages_) {
    for (std::size_t i = 0; page != nullptr && page->held > 0 && i < kPage; ++i) {
      Held& held = page->cells[i];
      if (held.seat != kNobody && visit(held)) {
        held.seat = kNobody;
        --page->held;
        --size_;
      }
    }
    if (page != nullptr && page->held == 0) {
      page.reset();
    }
  }
  drop_empty_ends();
}

template <class Visit>
void HeldCommands::each(Visit visit) const {
  for (const auto& page : pages_) {
    for (std::size_t i = 0; page != nullptr && i < kPage; ++i) {
      if (page->cells[i].seat != kNobody) {
        visit(page->cells[i]);
      }
    }
  }
}

}  // namespace tutti::conduct
