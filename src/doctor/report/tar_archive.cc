#include "doctor/report/tar_archive.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace lockstep {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kEndBlocks = 2;

// The header block of ustar: offsets and lengths are POSIX's (pax, "ustar Interchange Format").
class Header {
 public:
  void text(size_t offset, std::string_view value) {
    std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // Octal digits, then a zero.
  void number(size_t offset, size_t digits, uint64_t value) {
    text(offset, fmt::format("{:0{}o}", value, digits));
  }
  std::string finish() {
    constexpr size_t kSumOffset = 148;
    text(kSumOffset, "        ");
    const uint64_t sum = std::accumulate(
        bytes_.begin(), bytes_.end(), uint64_t{0},
        [](uint64_t total, char c) { return total + static_cast<unsigned char>(c); });
    text(kSumOffset, fmt::format("{:06o}", sum) + '\0' + ' ');
    return std::string(bytes_.begin(), bytes_.end());
  }

 private:
  std::array<char, kBlockBytes> bytes_{};
};

}  // namespace

Status TarArchive::add(std::string_view name, std::string_view content) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a name of {} bytes does not fit into an archive", name.size())};
  }
  if (content.size() > kBytesMax || blocks_.size() + content.size() > kBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the archive would be larger than the limit of {} bytes", kBytesMax)};
  }
  Header header;
  header.text(0, name);
  header.number(100, 7, 0644);
  header.number(108, 7, 0);  // owner and group: root, whoever creates it
  header.number(116, 7, 0);
  header.number(124, 11, content.size());
  header.number(136, 11, static_cast<uint64_t>(std::max<int64_t>(modified_s_, 0)));
  header.text(156, "0");
  header.text(257, "ustar");
  header.text(263, "00");
  blocks_ += header.finish();
  blocks_ += content;
  blocks_.resize((blocks_.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes, '\0');
  return Ok{};
}

std::string TarArchive::bytes() const {
  return blocks_ + std::string(kEndBlocks * kBlockBytes, '\0');
}

}  // namespace lockstep
