// Foreign text in GitHub's Markdown. It must show as it is: no link, no mention, no reference to an
// issue, no formula, no HTML, no table cell or fence that ends early. Code spans and blocks are
// what no filter of GitHub looks into, so everything that came out of a run stands in one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::reports {

class MarkdownText {
 public:
  explicit MarkdownText(std::vector<std::string> secrets);

  /// One line, masked, printable, at most `most` columns.
  std::string clean(std::string_view text, std::size_t most = 600) const;

  /// As a code span, also in a cell of a table; "–" for no text.
  std::string code(std::string_view text, std::size_t most = 600) const;

  /// As words of a sentence: Markdown and HTML are escaped, and mentions, references and links
  /// are broken by a zero-width space (U+200B). For texts that a person wrote.
  std::string prose(std::string_view text, std::size_t most = 600) const;

  /// For raw HTML such as <summary>: <code>…</code>.
  std::string html(std::string_view text, std::size_t most = 200) const;

  /// A fenced block, each line cleaned; ends with a newline. `kind`: text, sh.
  std::string block(std::string_view kind, const std::vector<std::string>& lines,
                    std::size_t most = 4000) const;

 private:
  std::vector<std::string> secrets_;
};

}  // namespace warmgate::reports
