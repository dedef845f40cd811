// LocalAnswerer: answers with workers of this process (`lockstep run --local`). One thread.
#pragma once

#include <string>

#include "cli/talk/answerer.h"
#include "node/models/model_service.h"

namespace lockstep {

class LocalAnswerer : public Answerer {
 public:
  // `service` outlives it and has a tokenizer. `draft_tokens`: GenerateRequest::draft_tokens.
  LocalAnswerer(ModelService& service, int draft_tokens)
      : service_(service), draft_tokens_(draft_tokens) {}

  // kUnsupported for what only a node can do; known before the model is loaded.
  static Status check(const TalkSettings& settings);

  Result<TalkAnswer> answer(const Dialogue& conversation, const TalkSettings& settings,
                            TalkEvents& events) override;
  std::string model() const override { return service_.status().name; }
  int64_t context() const override { return service_.status().context; }
  Status choose_model(const std::string& model) override;
  std::vector<std::string> known_models() override { return {model()}; }
  Result<std::vector<std::string>> node_lines() override;
  std::string place() const override;

 private:
  ModelService& service_;
  const int draft_tokens_;
};

}  // namespace lockstep
