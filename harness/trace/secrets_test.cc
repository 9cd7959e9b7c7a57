// What is recognised as a secret, what is not, and that no cut leaves half of one.
#include "harness/trace/secrets.h"

#include <gmock/gmock.h>

namespace warmgate::trace {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string masked(std::string_view text) { return mask_secrets(text, {}); }

const std::string kHf = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";

TEST(Secrets, ShowByTheirShape) {
  const std::pair<std::string, std::string> cases[] = {
      {"GET https://user:pa55@host:80/x?a=1", "GET https://user:[secret]@host:80/x?a=1"},
      {"https://user:pa/ss@host/x", "https://user:[secret]@host/x"},
      {"redis://:hunter22@10.0.0.1:6379/0", "redis://:[secret]@10.0.0.1:6379/0"},
      {"https://x-access-token-0123@github.com/a", "https://[secret]@github.com/a"},
      {"https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=AK%2F20&"
       "X-Amz-Signature=deadbeef&x=1",
       "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4&X-Amz-Credential=[secret]&"
       "X-Amz-Signature=[secret]&x=1"},
      {"https://a.blob/x?sv=2022&sig=a%2Bb%3D&se=1", "https://a.blob/x?sv=2022&sig=[secret]&se=1"},
      {"https://h/x?token=abc123 next", "https://h/x?token=[secret] next"},
      {"Authorization: Bearer abc.def-123", "Authorization: Bearer [secret]"},
      {"authorization: Basic dXNlcjpwYXNz\r\n", "authorization: Basic [secret]\r\n"},
      {R"({"Authorization": "Bearer s3cret-value"})", R"({"Authorization": "Bearer [secret]"})"},
      {R"({\"authorization\":\"Bearer s3cret\"})", R"({\"authorization\":\"Bearer [secret]\"})"},
      {"using bearer abcdef123456", "using bearer [secret]"},
      {"login with " + kHf + " ok", "login with [secret] ok"},
      {"x=" + kHf, "x=[secret]"},
      {R"(a\n)" + kHf, R"(a\n[secret])"},
      {"ghp_0123456789abcdefghij0123456789ABCDEF", "[secret]"},
      {"key AKIAIOSFODNN7EXAMPLE.", "key [secret]."},
      {"sk-proj-abcdefgh12345678ijkl", "[secret]"},
      {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[secret]"},
      {"'api_key': ['first-key', 'second'], 'port': 1",
       "'api_key': ['[secret]', '[secret]'], 'port': 1"},
      {"vllm serve m --api-key s3kr3t --port 1", "vllm serve m --api-key [secret] --port 1"},
      {"['--api-key', 's3kr3t', '--port']", "['--api-key', '[secret]', '--port']"},
      {"--hf-token=abcdef", "--hf-token=[secret]"},
      {"export MY_SERVICE_TOKEN=abcdef1", "export MY_SERVICE_TOKEN=[secret]"},
      {"password: hunter2", "password: [secret]"},
      {"secret_access_key = wJalrXUtnFEMI/K7MDENG", "secret_access_key = [secret]"},
      {"-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
       "-----BEGIN RSA PRIVATE KEY-----[secret]-----END RSA PRIVATE KEY-----"},
      {"-----BEGIN PRIVATE KEY-----\nMIIBcut", "-----BEGIN PRIVATE KEY-----[secret]"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(masked(text), expected);
    EXPECT_EQ(masked(expected), expected) << "masking twice is masking once";
    EXPECT_TRUE(has_secret_shape(text)) << text;
  }
}

TEST(Secrets, WhatEnginesPrintIsLeftAlone) {
  for (const std::string text :
       {"max_num_batched_tokens=8192, eos_token='<|end_of_text|>', pad_token=128004",
        "EOS_TOKEN=<|im_end|> IMAGE_TOKEN=<image>",
        "BuildPrefillChunkMetadata{COMPRESS_RATIO=0,HAS_KEY=float32,SORT_KEY=descending}",
        "kernel{SERVICE_TOKEN=ab}",
        "\"key\":\"CombineTopkSwaIndices{A=1}\"",
        "signature=abcdefgh",
        "http://127.0.0.1:8000/health",
        "http://host:8000/a@b",
        "git@github.com:vllm-project/vllm",
        "ssh://git@github.com/x",
        "tokens: 42",
        "token: 7",
        "api_key=None",
        "'api_key': None",
        "api_key=$API_KEY",
        "Bearer authentication is required",
        "bearer token",
        "password: ****",
        "hf_quantizer_config_loader",
        "sk-some-words-joined-by-dashes-only",
        "risk-0123456789012345678901",
        "--api-key --port 1",
        "--tokenizer meta/llama",
        "[secret]",
        "Authorization: Bearer [secret]",
        "13:37:00 INFO a::b",
        "--token",
        "api_key:",
        "://",
        "=",
        "-----BEGIN CERTIFICATE-----\nMII"}) {
    EXPECT_EQ(masked(text), text);
    EXPECT_FALSE(has_secret_shape(text)) << text;
  }
}

TEST(Secrets, ArgumentsAndVariables) {
  std::vector<std::string> found;
  find_argument_secrets(
      {"serve", "--api-key", "first-one", "--hf-token=second-one", "X_TOKEN=third-1",
       "target.command.env.DB_PASSWORD=fourth-1", "--port", "8000", "--key", "--x",
       "https://u:fifth-one@h/", "--max-num-batched-tokens", "1048576"},
      found);
  for (const char* secret : {"first-one", "second-one", "third-1", "fourth-1", "fifth-one"})
    EXPECT_THAT(found, Contains(secret));
  EXPECT_THAT(found, Not(Contains("8000")));
  EXPECT_THAT(found, Not(Contains("1048576")));
  found.clear();
  find_named_secret("HF_TOKEN", "abc", found);
  find_named_secret("A_TOKEN", "1234567", found);
  find_named_secret("PLAIN", "ordinary value", found);
  find_named_secret("MASKED_TOKEN", "[secret]", found);
  EXPECT_THAT(found, IsEmpty());
}

TEST(Secrets, ShapesOfServicesAndOfCurl) {
  for (const auto& [text, safe] : std::vector<std::pair<std::string, std::string>>{
           {"post https://hooks.slack.com/services/T0ABC/B0DEF/xyzXYZ123 now",
            "post https://hooks.slack.com/services/[secret] now"},
           {"'https://discord.com/api/webhooks/1234/aB-c_d'",
            "'https://discord.com/api/webhooks/[secret]'"},
           {"SENTRY_DSN=https://abc123def@sentry.example/1", "[secret]@sentry.example/1"},
           {"dsn https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/42 on",
            "dsn https://[secret]@o1.ingest.sentry.io/42 on"},
           {"+ curl -s -u user:pa55 https://h/x", "+ curl -s -u user:[secret] https://h/x"},

           {"curl --user 'user:p w' x", "curl --user 'user:[secret]' x"},
           {"curl --user=user:s3cr x", "curl --user=user:[secret] x"},
           {"['curl', '-u', 'user:pa55', '-H', 'Authorization: Basic dTpw']",
            "['curl', '-u', 'user:[secret]', '-H', 'Authorization: Basic [secret]']"},
           {"curl -H \"Authorization: Bearer ab.cd\" x",
            "curl -H \"Authorization: Bearer [secret]\" x"},
           {"PGPASS=hunter2 X_COOKIE=abc=def SESSION_BEARER=xyz1 SSH_KEY_PASSPHRASE=open",
            "PGPASS=[secret] X_COOKIE=[secret] SESSION_BEARER=[secret] "
            "SSH_KEY_PASSPHRASE=[secret]"}}) {
    EXPECT_THAT(masked(text), HasSubstr(safe)) << text;
  }
  for (const std::string text : {"docker run -u 1000:1000 image",
                                 "podman run --user app:app image",
                                 "python3 -u a:b",
                                 "curl -u $USER:$PASS x",
                                 "curl -U x",
                                 "curl --url a:b",
                                 "curl -u user x",
                                 "see https://hooks.slack.com/services/ for more",
                                 "https://git@github.com/1",
                                 "https://user@host/path",
                                 "COOKIE_DOMAIN=example.org",
                                 "X_BYPASS=always",
                                 "COMPASS=north",
                                 "commit 6f1ed002ab5595859014ebf0951522d9aabbccdd",
                                 "/models/a1b2/snapshots/9c0d46a",
                                 "void cutlass::gemm_kernel<float, 128>()",
                                 "forward_pass=12 first_pass: 7",
                                 "bearer: none",
                                 "cookie policy: lax",
                                 "num_passes=3"}) {
    EXPECT_EQ(masked(text), text);
  }
}

TEST(Secrets, NamesThatSayIt) {
  for (const char* name : {"PGPASS", "SSH_PASSPHRASE", "X_PASSPHRASE", "X_COOKIE", "COOKIES",
                           "API_BEARER", "X_BEARER", "MYSQL_PASS", "REDIS_PWD"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"PGPASSFILE", "COOKIE_DOMAIN", "BYPASS", "X_BYPASS", "COMPASS",
                           "FIRST_PASSES", "BEARER_FILE", "COOKIE_PATH", "PASSTHROUGH", "PWD"})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

// Four and five bytes are masked where they stand alone; words and numbers never are.
TEST(Secrets, ShortValuesOnlyAsWordsOfTheirOwn) {
  std::vector<std::string> found;
  for (const char* value :
       {"s3cr", "a!9x", "Pa55w", "abc", "1234", "12.5", "dummy", "EMPTY", "None", "true", "auto"})
    find_named_secret("X_TOKEN", value, found);
  EXPECT_THAT(found, ElementsAre("s3cr", "a!9x", "Pa55w"));
  found = spellings(found);
  EXPECT_EQ(mask_secrets("s3cr 'a!9x' (Pa55w)=s3cr,", found),
            "[secret] '[secret]' ([secret])=[secret],");
  for (const std::string text :
       {"9c0ds3cr6a", "/tmp/s3cret", "kernel_s3cr{A=1}", "xPa55w", "s3cr7", "1a!9xb"})
    EXPECT_EQ(mask_secrets(text, found), text);
}

TEST(Secrets, ArgumentsOfCurl) {
  std::vector<std::string> found;
  find_argument_secrets({"/usr/bin/curl", "-u", "me:pa55word", "--user=me:other-1", "-ume:third-1",
                         "--proxy-user", "me:fourth-1", "-H", "Authorization: Basic fifth-one"},
                        found);
  for (const char* secret : {"pa55word", "other-1", "third-1", "fourth-1", "fifth-one"})
    EXPECT_THAT(found, Contains(secret));
  found.clear();
  find_argument_secrets({"docker", "run", "-u", "1000:staff-group", "--user", "app:app-group"},
                        found);
  EXPECT_THAT(found, IsEmpty());
}

TEST(Secrets, KnownInEverySpelling) {
  const std::vector<std::string> known = spellings({"pa\"ss w/rd'1", "already%40encoded"});
  for (const std::string text : {"x pa\"ss w/rd'1 y", R"({"a":"pa\"ss w/rd'1"})",
                                 "?a=pa%22ss%20w%2Frd%271&b", "?a=pa%22ss%20w%2frd%271&b",
                                 "'pa\"ss w/rd'\\''1'", "already@encoded", "already%40encoded"}) {
    EXPECT_THAT(mask_secrets(text, known), HasSubstr("[secret]")) << text;
    EXPECT_THAT(mask_secrets(text, known), Not(HasSubstr("rd"))) << text;
    EXPECT_THAT(mask_secrets(text, known), Not(HasSubstr("lready"))) << text;
  }
}

TEST(Secrets, KnownAsPythonPrintsIt) {
  const std::vector<std::string> known = spellings({"en\"v\\Secret'/4 56+\u00e9"});
  for (const std::string text : {R"('en"v\\Secret\'/4 56+é')", R"("en\"v\\Secret'/4 56+\u00e9")"}) {
    EXPECT_THAT(mask_secrets(text, known), HasSubstr("[secret]")) << text;
    EXPECT_THAT(mask_secrets(text, known), Not(HasSubstr("Secret"))) << text;
  }
}

TEST(Secrets, NoneIsCutInHalf) {
  const std::string text = "head " + kHf + " tail";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_THAT(mask_part(text, 0, cut, {}), Not(HasSubstr("AbC"))) << cut;
    EXPECT_THAT(mask_part(text, cut, text.size(), {}), Not(HasSubstr("345"))) << cut;
  }
  std::vector<std::string> found;
  mask_part(text, 0, 5, {}, &found);
  EXPECT_THAT(found, ElementsAre(kHf));
}

TEST(Secrets, HostileTextEndsInTime) {
  for (const std::string& piece :
       {std::string("="), std::string("a="), std::string("://@"), std::string("\\\""),
        std::string("--a "), std::string("token=["), std::string("eyJ."),
        std::string("-----BEGIN "), std::string(1, '\0'), std::string("password='"),
        std::string("hf_"), std::string("\xff:"), std::string("curl -u "),
        std::string("hooks.slack.com/services/"), std::string("-u ")}) {
    std::string text;
    while (text.size() < 20000) text += piece;
    EXPECT_LE(mask_secrets(text, {"x"}).size(), text.size() * 8) << piece;
  }
}

}  // namespace
}  // namespace warmgate::trace
