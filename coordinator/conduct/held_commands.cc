#include "coordinator/conduct/held_commands.h"

#include "common/base/check.h"

namespace tutti::conduct {

HeldCommands::Page* HeldCommands::page_of(base::Seq seq) const {
  const std::uint64_t page = seq / kPage;
  return page < first_ || page - first_ >= pages_.size() ? nullptr : pages_[page - first_].get();
}

void HeldCommands::add(const base::IssueCommand& command, std::uint32_t seat) {
  TUTTI_CHECK(seat != kNobody);
  const std::uint64_t number = command.seq / kPage;
  if (pages_.empty()) {
    first_ = number;
  }
  while (number < first_) {
    pages_.emplace_front();
    --first_;
  }
  if (number - first_ >= pages_.size()) {
    pages_.resize(number - first_ + 1);
  }
  auto& page = pages_[number - first_];
  if (page == nullptr) {
    page.reset(new Page);  // make_unique would write every cell twice
  }
  Held& held = page->cells[command.seq % kPage];
  TUTTI_CHECK(held.seat == kNobody);
  held = {command, seat};
  ++page->held;
  ++size_;
}

const HeldCommands::Held* HeldCommands::find(base::Seq seq) const {
  const Page* page = page_of(seq);
  if (page == nullptr || page->cells[seq % kPage].seat == kNobody) {
    return nullptr;
  }
  return &page->cells[seq % kPage];
}

void HeldCommands::erase(base::Seq seq) {
  Page* page = page_of(seq);
  TUTTI_CHECK(page != nullptr && page->cells[seq % kPage].seat != kNobody);
  page->cells[seq % kPage].seat = kNobody;
  --size_;
  if (--page->held == 0) {
    pages_[seq / kPage - first_].reset();
    drop_empty_ends();
  }
}

void HeldCommands::drop_empty_ends() {
  while (!pages_.empty() && pages_.front() == nullptr) {
    pages_.pop_front();
    ++first_;
  }
  while (!pages_.empty() && pages_.back() == nullptr) {
    pages_.pop_back();
  }
}

}  // namespace tutti::conduct
