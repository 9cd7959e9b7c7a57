#include "harness/plan/shrink/tokenizer.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "harness/plan/shrink/reader.h"

namespace warmgate::plan::shrink {
namespace {

void append_utf8(std::uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else {  // never beyond U+0143 here
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// The visible character that stands for each byte in byte-level BPE (openai/gpt-2, encoder.py,
// bytes_to_unicode): itself where it can be printed, else the next from U+0100 on.
std::vector<std::string> byte_characters() {
  std::vector<std::string> out;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    out.emplace_back();
    append_utf8(visible ? byte : next++, out.back());
  }
  return out;
}

// The ids under a key: one number, or a list of them.
std::vector<std::int64_t> ids_of(Reader& reader, const std::string& key, std::int64_t vocabulary) {
  if (!reader.has(key)) return {};
  if (reader.config().at(key).is_array()) return reader.numbers(key, 0, vocabulary - 1);
  const Json& value = reader.config().at(key);
  // -1 is written for "none".
  if (value == Json(-1)) return {};
  const auto id = reader.maybe(key, 0, vocabulary - 1);
  return id ? std::vector<std::int64_t>{*id} : std::vector<std::int64_t>{};
}

}  // namespace

std::map<std::string, std::string> tokenizer_stub(const Json& config, Complaints& complaints) {
  Reader reader(config, complaints);
  const std::int64_t vocabulary = reader.whole("vocab_size", 1, kMostVocabulary);
  std::map<std::int64_t, std::string> special;
  Json settings;
  for (const std::string name : {"bos", "eos", "pad"}) {
    const auto ids = ids_of(reader, name + "_token_id", vocabulary);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string text =
          i == 0 ? fmt::format("<|{}|>", name) : fmt::format("<|{}_{}|>", name, i);
      const std::string& taken = special.emplace(ids[i], text).first->second;
      if (i == 0) settings[name + "_token"] = taken;
    }
  }
  if (vocabulary < 256 + static_cast<std::int64_t>(special.size()))
    complaints.add("vocab_size",
                   fmt::format("{} is too small for a byte-level tokenizer stub, which "
                               "takes 256 ids and {} special ones",
                               vocabulary, special.size()));
  if (!complaints.empty()) return {};
  std::map<std::int64_t, std::string> by_id = special;
  std::int64_t id = 0;
  for (const std::string& character : byte_characters()) {
    while (by_id.count(id) > 0) ++id;
    by_id[id] = character;
  }
  Json vocabulary_json = Json::object();
  for (const auto& [token_id, text] : by_id) vocabulary_json[text] = token_id;
  Json added = Json::array();
  for (const auto& [token_id, text] : special)
    added.push_back({{"id", token_id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"vocab", vocabulary_json},
                            {"merges", Json::array()}}}};
  settings["tokenizer_class"] = "PreTrainedTokenizerFast";
  settings["model_max_length"] =
      reader.maybe("max_position_embeddings", 1, std::int64_t{1} << 40).value_or(1 << 20);
  settings["clean_up_tokenization_spaces"] = false;
  settings["chat_template"] = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}";
  return {{"tokenizer.json", config_text(tokenizer)},
          {"tokenizer_config.json", config_text(settings)}};
}

}  // namespace warmgate::plan::shrink
