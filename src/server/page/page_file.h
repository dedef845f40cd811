// One file of the web page, as the server sends it: compiled into the program (built_in_page.h), or
// of the plain page (plain_page.h). The bytes live as long as the program.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct PageFile {
  std::string_view path;          // "/", or below "/assets/"
  std::string_view content_type;  // with the charset, for texts
  std::string_view hash;          // hex, of `plain`; a part of the ETag
  std::string_view plain;
  std::string_view gzip;  // the same bytes, compressed (RFC 1952); empty: they do not get smaller
};

using PageFiles = std::span<const PageFile>;  // empty: there is no page

}  // namespace lockstep
