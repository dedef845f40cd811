// The normalizers and pre-tokenizers of a tokenizer.json, one by one.
#include <string>

#include "base/threads/work.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/text/regex.h"

using namespace lockstep;

namespace {

std::string normalize(const std::string& json, std::string_view text) {
  const auto value = parse_json(json);
  REQUIRE(value.ok());
  const auto normalizer = Normalizer::read(&value.value());
  REQUIRE_MESSAGE(normalizer.ok(), normalizer.error().message);
  return normalizer.value().apply(text);
}

Strings cut(const std::string& json, const std::string& text) {
  const auto value = parse_json(json);
  REQUIRE(value.ok());
  const auto pre_tokenizer = PreTokenizer::read(&value.value());
  REQUIRE_MESSAGE(pre_tokenizer.ok(), pre_tokenizer.error().message);
  const TextPieces pieces = pre_tokenizer.value().cut(text, true);
  Strings result;
  for (const TextPieces::Piece piece : pieces.pieces) result.emplace_back(pieces.view(piece));
  return result;
}

std::string split(const std::string& behavior, bool is_inverted = false) {
  return R"({"type":"Split","pattern":{"String":"-"},"behavior":")" + behavior + R"(","invert":)" +
         (is_inverted ? "true}" : "false}");
}

// How many times the pattern is found before a search ends or gives up.
size_t found_count(const Regex& regex, const std::string& text) {
  RegexScratch scratch(text.size());
  size_t count = 0;
  for (size_t from = 0; from < text.size(); ++count) {
    const Regex::Match match = regex.next(text, from, scratch);
    if (match.outcome != Regex::Outcome::kFound) break;
    from = match.end;
  }
  return count;
}

constexpr const char* kSlowPattern = "(?:a{1,250}a{1,250}a{1,250}c|a)";

}  // namespace

TEST_CASE("a slow pattern ends when the steps of its text are spent, an honest one never") {
  const std::string text(2000, 'a');
  const auto slow = Regex::compile(kSlowPattern);
  REQUIRE(slow.ok());
  CHECK(found_count(slow.value(), text) < 200);
  const auto honest = Regex::compile(R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|\s+(?!\S)|\s+|.)");
  REQUIRE(honest.ok());
  std::string words;
  for (int i = 0; i < 20'000; ++i) words += "word    123\t.,;";
  CHECK(found_count(honest.value(), words) == 20'000 * 9 + 1);
  const std::string run = std::string(200'000, ' ') + "b" + std::string(200'000, 'c');
  CHECK(found_count(honest.value(), run) == 2);
}

TEST_CASE("normalizers and pre-tokenizers end with the work of their thread") {
  Work work(std::chrono::milliseconds(10'000));
  const Work::Scope scope(work);
  work.cancel();
  const std::string text = "a b c";
  CHECK(cut(R"({"type":"Split","pattern":{"Regex":" "},"behavior":"Isolated"})", text).size() == 1);
  CHECK(normalize(R"({"type":"Lowercase"})", "A") == "A");
  const auto regex = Regex::compile("b");
  REQUIRE(regex.ok());
  RegexScratch scratch(text.size());
  CHECK(regex.value().next(text, 0, scratch).outcome == Regex::Outcome::kGaveUp);
}

TEST_CASE("normal forms compose and decompose") {
  CHECK(normalize(R"({"type":"NFC"})", "e\u0301 \u212B") == "é Å");
  CHECK(normalize(R"({"type":"NFC"})", "ab 中文 한") == "ab 中文 한");
  CHECK(normalize(R"({"type":"NFD"})", "é한") == "e\u0301\u1112\u1161\u11ab");
  CHECK(normalize(R"({"type":"NFKC"})", "ﬁ①\uFDFA") == "fi1صلى الله عليه وسلم");
  CHECK(normalize(R"({"type":"NFKD"})", "ﬁé") == "fie\u0301");
  CHECK(normalize(R"({"type":"NFC"})", std::string("a\0\u0301", 4)).size() == 4);
}

TEST_CASE("the other normalizers do what they are named for") {
  CHECK(normalize(R"({"type":"Lowercase"})", "ÀB İ") == "àb i\u0307");
  CHECK(normalize(R"({"type":"Strip","strip_left":true,"strip_right":false})", " \u3000a ") ==
        "a ");
  CHECK(normalize(R"({"type":"StripAccents"})", "e\u0301") == "e");
  CHECK(normalize(R"({"type":"BertNormalizer"})", "Á\t中\u0007x") == "a  中 x");
  CHECK(normalize(R"({"type":"BertNormalizer","lowercase":false})", "Á") == "Á");
  CHECK(normalize(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"_"})", "a   b c") ==
        "a_b c");
  CHECK(normalize(R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"}]})",
                  "éà") == "ea");
}

TEST_CASE("Split keeps, drops or joins the matches of its pattern") {
  CHECK(cut(split("Isolated"), "a--b") == Strings{"a", "-", "-", "b"});
  CHECK(cut(split("Removed"), "-a--b") == Strings{"a", "b"});
  CHECK(cut(split("Contiguous"), "a--b") == Strings{"a", "--", "b"});
  CHECK(cut(split("MergedWithPrevious"), "a--b") == Strings{"a-", "-", "b"});
  CHECK(cut(split("MergedWithNext"), "a--b") == Strings{"a", "-", "-b"});
  CHECK(cut(split("Removed", true), "a--b") == Strings{"-", "-"});
  CHECK(cut(R"x({"type":"Split","pattern":{"Regex":"(?=b)"},"behavior":"Isolated"})x", "abab") ==
        Strings{"a", "ba", "b"});
}

TEST_CASE("the named pre-tokenizers of tokenizer.json cut where Hugging Face cuts") {
  CHECK(cut(R"({"type":"Digits","individual_digits":true})", "a12½") ==
        Strings{"a", "1", "2", "½"});
  CHECK(cut(R"({"type":"Digits"})", "a12b") == Strings{"a", "12", "b"});
  CHECK(cut(R"({"type":"Punctuation"})", "a.,b") == Strings{"a", ".", ",", "b"});
  CHECK(cut(R"({"type":"Punctuation","behavior":"Contiguous"})", "a.,b") ==
        Strings{"a", ".,", "b"});
  CHECK(cut(R"({"type":"Whitespace"})", "it's a_b.") == Strings{"it", "'", "s", "a_b", "."});
  CHECK(cut(R"({"type":"WhitespaceSplit"})", " a\u3000b.") == Strings{"a", "b."});
  CHECK(cut(R"({"type":"BertPreTokenizer"})", "a b!") == Strings{"a", "b", "!"});
  CHECK(cut(R"({"type":"CharDelimiterSplit","delimiter":"|"})", "a|b") == Strings{"a", "b"});
  CHECK(cut(R"({"type":"ByteLevel"})", "a's b  c") == Strings{" a", "'s", " b", " ", " c"});
}

TEST_CASE("parts after ByteLevel see the byte alphabet") {
  // U+4E2D is the bytes E4 B8 AD; "\u00B8" is the letter of the second.
  const std::string json = R"({"type":"Sequence","pretokenizers":[
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
      {"type":"Split","pattern":{"Regex":"¸"},"behavior":"Isolated"}]})";
  CHECK(cut(json, "中") == Strings{"\xE4", "\xB8", "\xAD"});
}

TEST_CASE("an intersection of classes is rewritten, even without the scripts' extensions") {
  RegexScratch scratch(100);
  const auto regex = Regex::compile(R"([\p{Lu}\p{Lo}&&[^\p{Han}]]+)");
  REQUIRE(regex.ok());
  const std::string text = "ab中Aかb";
  const auto match = regex.value().next(text, 0, scratch);
  CHECK(text.substr(match.begin, match.end - match.begin) == "Aか");
  const auto han = Regex::compile(R"(\p{Han}+)");
  REQUIRE(han.ok());
  CHECK(han.value().next("。", 0, scratch).outcome == Regex::Outcome::kNone);
  CHECK(han.value().next("々", 0, scratch).outcome == Regex::Outcome::kFound);
}

TEST_CASE("a pattern that exceeds its limit leaves the rest whole") {
  const std::string json =
      R"({"type":"Split","pattern":{"Regex":"(a+)+$|x"},"behavior":"Isolated"})";
  const std::string text = "x" + std::string(64, 'a') + "!";
  CHECK(cut(json, text) == Strings{"x", text.substr(1)});
}

TEST_CASE("no chain of normalizers makes a text many times as long") {
  const std::string grow =
      R"({"type":"Replace","pattern":{"Regex":"."},"content":")" + std::string(64, 'a') + R"("})";
  const std::string ligature =
      R"({"type":"Replace","pattern":{"String":"aaa"},"content":"\uFDFA"})";
  const std::string compose = R"({"type":"NFKC"})";
  const std::string text(4096, 'a');
  for (const std::string& parts :
       {grow + "," + grow + "," + grow + "," + grow,
        grow + "," + ligature + "," + compose + "," + grow + "," + ligature + "," + compose}) {
    const std::string result =
        normalize(R"({"type":"Sequence","normalizers":[)" + parts + "]}", text);
    CHECK(result.size() <= 200 * text.size());
  }
}
