// A server with a file of API keys, and raw requests to it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "access/api_keys.h"
#include "server/served.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace lockstep {

inline constexpr const char* kShortBody = R"({"prompt":"p","max_tokens":1})";
inline constexpr const char* kCompletionsPath = "/v1/completions";

// A server with a file of keys, which does not exist at first.
class ServedKeys {
 public:
  explicit ServedKeys(const std::function<void(AccessOptions&)>& change = [](AccessOptions&) {})
      : server([&](ServerOptions& options) {
          options.access.keys = folder.path() / kApiKeyFile;
          change(options.access);
        }) {
    server.model->says("a");
  }

  // Both return once the server has read the change.
  std::string add(const std::string& name) {
    const std::string key = add_api_key(folder.path() / kApiKeyFile, name, 1).value();
    REQUIRE(comes_true([&] { return knows(key); }));
    keys_[name] = key;
    return key;
  }
  void remove(const std::string& name) {
    REQUIRE(remove_api_key(folder.path() / kApiKeyFile, name).ok());
    const std::string key = std::exchange(keys_[name], "");
    REQUIRE(comes_true([&] { return !knows(key); }));
    keys_.erase(name);
  }
  // `headers` end with line ends; the default Host is localhost.
  Answer ask(const std::string& method, const std::string& path, const std::string& headers = "",
             const std::string& body = "") {
    const bool has_host = ("\n" + headers).find("\nHost:") != std::string::npos;
    return server.exchange(
        method + " " + path + " HTTP/1.1\r\n" + (has_host ? "" : "Host: localhost\r\n") + headers +
        "Connection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  Answer post(const std::string& headers = "") {
    return ask("POST", kCompletionsPath, headers, kShortBody);
  }

  const TemporaryFolder folder;
  Served server;

 private:
  // A page of another site can read only with a key, and reading counts against no limit.
  bool knows(const std::string& key) {
    return ask("GET", "/metrics",
               "Origin: http://probe.example\r\nAuthorization: Bearer " + key + "\r\n")
               .status == 200;
  }

  std::map<std::string, std::string> keys_;
};

inline std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

}  // namespace lockstep
