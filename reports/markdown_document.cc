#include "reports/markdown_document.h"

#include <fmt/format.h>

#include <utility>

namespace warmgate::reports {
namespace {

constexpr std::string_view kCloseDetails = "\n</details>\n";

std::string cut_text(std::size_t left_out, std::size_t limit) {
  return fmt::format(
      "\n**Cut:** {} more {} did not fit into {} bytes; `--json FILE` writes everything.\n",
      left_out, left_out == 1 ? "entry" : "entries", limit);
}

}  // namespace

// What must still fit when everything else is full: closing tags, and the line about the cut with
// the longest numbers there are.
std::size_t MarkdownDocument::reserve() const {
  return (open_ + 1) * kCloseDetails.size() + cut_text(std::size_t(-1), std::size_t(-1)).size();
}

bool MarkdownDocument::append(const std::string& text) {
  const std::size_t need = pending_details_.size() + pending_table_.size() + text.size();
  if (left_out_ > 0 || out_.size() + need + reserve() > limit_) {
    ++left_out_;
    return false;
  }
  out_ += pending_details_;
  if (!pending_details_.empty()) ++open_;
  out_ += pending_table_ + text;
  pending_details_.clear();
  pending_table_.clear();
  return true;
}

void MarkdownDocument::end_blocks() {
  pending_table_.clear();
  in_table_ = in_list_ = false;
}

void MarkdownDocument::piece(std::string_view text) {
  end_blocks();
  std::string whole(text);
  if (whole.empty() || whole.back() != '\n') whole += '\n';
  append((out_.empty() && pending_details_.empty() ? "" : "\n") + whole);
}

void MarkdownDocument::item(std::string_view text) {
  const bool first = !std::exchange(in_list_, true);
  pending_table_.clear();
  in_table_ = false;
  append((first && !out_.empty() ? "\n- " : "- ") + std::string(text) + "\n");
}

void MarkdownDocument::table(const std::vector<std::string>& heads) {
  std::string line = "|", rule = "|";
  for (const std::string& head : heads) {
    line += " " + head + " |";
    rule += " --- |";
  }
  end_blocks();
  pending_table_ = "\n" + line + "\n" + rule + "\n";
  in_table_ = true;
}

void MarkdownDocument::row(const std::vector<std::string>& cells) {
  if (!in_table_) return;
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  append(line + "\n");
}

void MarkdownDocument::begin_details(std::string_view summary) {
  end_details();
  pending_details_ = fmt::format("\n<details>\n<summary>{}</summary>\n", summary);
}

void MarkdownDocument::end_details() {
  end_blocks();
  pending_details_.clear();
  if (open_ == 0) return;
  out_ += kCloseDetails;
  --open_;
}

std::string MarkdownDocument::take() {
  end_details();
  if (left_out_ > 0 && !out_.empty()) out_ += cut_text(left_out_, limit_);
  if (left_out_ > 0 && out_.empty()) {
    const std::string alone = cut_text(left_out_, limit_).substr(1);
    if (alone.size() <= limit_) out_ = alone;
  }
  return std::move(out_);
}

}  // namespace warmgate::reports
