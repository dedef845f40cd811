// A request parser's refusal as one line.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "access/api_error.h"

namespace lockstep {

// "param code" of a refusal, "ok" otherwise.
template <class T>
std::string refusal_of(const ApiResult<T>& result) {
  if (result.ok()) return "ok";
  CHECK(!result.error().message.empty());
  return result.error().param + " " + result.error().code;
}

}  // namespace lockstep
