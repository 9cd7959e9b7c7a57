// As much of a Markdown reader as tests need: what of a text stands outside of code, whether its
// fences, tables and folds are whole.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace warmgate::reports {

struct MarkdownRead {
  std::string outside;                // without code spans, fenced blocks and <code>
  std::vector<std::string> code;      // contents of spans and of fenced lines
  std::vector<std::string> problems;  // what is not whole
  std::size_t rows = 0, details = 0;
};

class MarkdownReader {
 public:
  static MarkdownRead read(const std::string& text) {
    MarkdownReader reader;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) reader.line(line);
    if (!reader.fence_.empty()) reader.say("a fence is open at the end");
    if (reader.open_ != 0) reader.say("<details> and </details> do not match");
    return std::move(reader.out_);
  }

 private:
  void say(const std::string& what) { out_.problems.push_back(what); }

  static std::size_t run(const std::string& line, std::size_t at) {
    std::size_t end = at;
    while (end < line.size() && line[end] == '`') ++end;
    return end - at;
  }

  void line(const std::string& text) {
    const std::size_t ticks = run(text, 0);
    if (!fence_.empty()) {
      if (ticks >= fence_.size() && text.find_first_not_of('`') == std::string::npos)
        fence_.clear();
      else
        out_.code.push_back(text);
      return;
    }
    if (ticks >= 3 && text.find('`', ticks) == std::string::npos) {
      fence_ = text.substr(0, ticks);
      columns_ = 0;
      return;
    }
    if (text == "<details>") ++open_, ++out_.details;
    if (text == "</details>") --open_;
    if (open_ < 0) say("</details> without <details>");
    if (!text.empty() && text.front() == '|') {
      // Cells are cut before anything else is read, so pipes count wherever they stand.
      const std::size_t cells = pipes(text);
      if (columns_ != 0 && cells != columns_) say("a row of other width: " + text);
      columns_ = cells;
      ++out_.rows;
      if (text.back() != '|') say("a row without its end: " + text);
      spans(unescaped(text));
    } else {
      columns_ = 0;
      spans(text);
    }
  }

  static std::size_t pipes(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      count += text[i] == '|' && (i == 0 || text[i - 1] != '\\') ? 1 : 0;
    return count;
  }

  static std::string unescaped(std::string text) {
    for (std::size_t at = 0; (at = text.find("\\|", at)) != std::string::npos; ++at)
      text.erase(at, 1);
    return text;
  }

  void spans(const std::string& text) {
    for (std::size_t i = 0; i < text.size();) {
      if (text.compare(i, 6, "<code>") == 0) {
        const std::size_t end = text.find("</code>", i);
        if (end == std::string::npos) return say("<code> is open: " + text);
        out_.code.push_back(text.substr(i + 6, end - i - 6));
        i = end + 7;
        continue;
      }
      if (text[i] != '`') {
        out_.outside += text[i++];
        continue;
      }
      const std::size_t ticks = run(text, i);
      std::size_t end = i + ticks;
      while (end < text.size() && (text[end] != '`' || run(text, end) != ticks))
        end += text[end] == '`' ? run(text, end) : 1;
      if (end >= text.size()) return say("a code span is open: " + text);
      out_.code.push_back(text.substr(i + ticks, end - i - ticks));
      i = end + ticks;
    }
    out_.outside += '\n';
  }

  MarkdownRead out_;
  std::string fence_;
  std::size_t columns_ = 0;
  int open_ = 0;
};

}  // namespace warmgate::reports
