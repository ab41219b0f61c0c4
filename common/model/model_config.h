#pragma once

// What tokenizer_config.json and its neighbours say of chat templates: the template, and the
// special tokens that it may write by name. Internal to this folder.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/model/model_files.h"
#include "common/text/json_read.h"

namespace tutti::model {

struct ModelConfig {
  std::string chat_template;                      // empty: there is none
  std::vector<text::JsonValue::Member> specials;  // "bos_token": "<s>" …
};

base::Result<ModelConfig> read_model_config(const ModelFiles& files);

}  // namespace tutti::model
