#include "harness/explain/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmgate::explain {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

bool secret_name(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"token", "api_key", "api-key", "password", "secret"})
    if (lower == word || lower.ends_with(std::string("_") + word)) return true;
  return false;
}

std::vector<std::string> found(std::string_view text) { return secrets_in(text, secret_name); }

TEST(Secrets, ByTheNameBesideThem) {
  EXPECT_THAT(found("HF_TOKEN=abcdef123 x"), ElementsAre("abcdef123"));
  EXPECT_THAT(found("args: --api-key s3cr3t-value --port 8000"), ElementsAre("s3cr3t-value"));
  EXPECT_THAT(found("args: --api-key=s3cr3t-value"), ElementsAre("s3cr3t-value"));
  EXPECT_THAT(found("{'api_key': 's3cr3t value', 'port': 8000}"), ElementsAre("s3cr3t value"));
  EXPECT_THAT(found("{\"password\": \"hunter2!\"}"), ElementsAre("hunter2!"));
  EXPECT_THAT(found("password: hunter2!"), ElementsAre("hunter2!"));
}

TEST(Secrets, ByTheirShape) {
  EXPECT_THAT(found("Authorization: Bearer abc.def-ghi"), Contains("abc.def-ghi"));
  EXPECT_THAT(found("git clone https://user:pass-word@host/x"), ElementsAre("pass-word"));
  EXPECT_THAT(found("https://ghp_0123456789abcdefghij@github.com/x"),
              ElementsAre("ghp_0123456789abcdefghij"));
  EXPECT_THAT(found("GET /m?X-Amz-Signature=0badcafe0badcafe&x=1"),
              ElementsAre("0badcafe0badcafe"));
  EXPECT_THAT(found("key hf_abcdefghijklmnopqrst used"), ElementsAre("hf_abcdefghijklmnopqrst"));
}

TEST(Secrets, WhatIsNone) {
  EXPECT_THAT(found("token: None, api_key=None, password=****, max_num_batched_tokens=8192"),
              IsEmpty());
  EXPECT_THAT(found("pad_token='<|endoftext|>'"), IsEmpty());
  EXPECT_THAT(found("http://127.0.0.1:8000/v1 and user@host"), IsEmpty());
  EXPECT_THAT(found("the token abcdefgh"), IsEmpty());  // no separator
  EXPECT_THAT(found("shf_abcdefghijklmnopqrst"), IsEmpty());
  EXPECT_THAT(found("hf_short"), IsEmpty());
}

TEST(Secrets, HostileText) {
  for (const char* text : {"", "=", "token=", "token='", "://", "https://@", "--token", "Bearer ",
                           "'token': '", "token\0=x"})
    EXPECT_THAT(found(text), IsEmpty()) << text;
  EXPECT_EQ(found("token=" + std::string(1 << 20, 'a')).size(), 1u);
  (void)found(std::string(1 << 16, '\''));
}

}  // namespace
}  // namespace warmgate::explain
