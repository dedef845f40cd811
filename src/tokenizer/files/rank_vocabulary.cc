#include "tokenizer/files/rank_vocabulary.h"

#include <memory>
#include <utility>

#include "tokenizer/models/bpe_model.h"
#include "tokenizer/pipeline/token_pipeline.h"
#include "tokenizer/text/json_part.h"

namespace lockstep {

TokenizerResult make_rank_tokenizer(RankVocabulary parts) {
  std::vector<int32_t> ids;
  std::vector<int32_t> ranks;
  for (int32_t id = 0; id < parts.vocabulary.size(); ++id) {
    const bool exists = parts.vocabulary.text(id).has_value();
    ranks.push_back(exists ? id - parts.first_id : -1);
    if (exists) ids.push_back(id);
  }
  const auto merges = merges_by_rank(parts.vocabulary, ids, ranks);
  auto vocabulary = std::make_shared<Vocabulary>(std::move(parts.vocabulary));
  for (const AddedToken& token : parts.specials) {
    TRY(vocabulary->add(token.content, token.id));
    vocabulary->hide(token.id);
  }
  PipelineParts pipeline;
  pipeline.decoder = Decoder::byte_level();
  pipeline.pre_tokenizer = std::move(parts.pre_tokenizer);
  pipeline.bos_id = parts.bos_id;
  set_added_tokens(std::move(parts.specials), pipeline);
  // tiktoken looks up the whole piece before it merges.
  const BpeOptions options = {.is_byte_level = true, .ignores_merges = true};
  pipeline.model = std::make_shared<BpeModel>(options, vocabulary, merges);
  pipeline.vocabulary = std::move(vocabulary);
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(std::move(pipeline)));
}

}  // namespace lockstep
