// A Markdown text of at most so many bytes. It is made of pieces (a paragraph, a row, a block) that
// stand or fall as a whole, so that a cut never goes through an entity, a fence or a table row.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::reports {

class MarkdownDocument {
 public:
  explicit MarkdownDocument(std::size_t limit) : limit_(limit) {}

  /// A piece between blank lines. Once one did not fit none is taken any more: what comes first is
  /// worth most.
  void piece(std::string_view text);
  /// A line of a list, without its dash; lines that follow each other are one list.
  void item(std::string_view text);
  /// A table's header; rows follow. A table without rows is not written.
  void table(const std::vector<std::string>& heads);
  void row(const std::vector<std::string>& cells);
  /// Folded until the reader opens it; `summary` is HTML. Without pieces in it it is not written.
  void begin_details(std::string_view summary);
  void end_details();

  std::size_t left_out() const { return left_out_; }
  /// The text; where pieces were left out its last line says how many. "" if nothing fits.
  std::string take();

 private:
  void end_blocks();
  bool append(const std::string& text);
  std::size_t reserve() const;

  std::size_t limit_;
  std::string out_;
  std::string pending_details_;  // opened, nothing in it yet
  std::string pending_table_;    // its header, no row yet
  std::size_t open_ = 0;         // details that are written and not closed
  bool in_table_ = false, in_list_ = false;
  std::size_t left_out_ = 0;
};

}  // namespace warmgate::reports
