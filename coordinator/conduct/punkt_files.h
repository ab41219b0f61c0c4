#pragma once

// What NLTK learned of English sentences, from this host's copy of its data: the first folder of
// NLTK's own search that has tokenizers/punkt_tab/english. Blocking; for set-up only. One thread.

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/hub/hub_terms.h"
#include "coordinator/accuracy/punkt.h"

namespace tutti::conduct {

using Punkt = std::shared_ptr<const accuracy::PunktModel>;

// NLTK_DATA, the home folder, the virtual environment, the system's places; in that order.
std::vector<std::string> nltk_folders(const hub::Environment& environment);

// An error says where it looked and how the data is had.
base::Result<Punkt> load_punkt(const hub::Environment& environment = hub::process_environment);

}  // namespace tutti::conduct
