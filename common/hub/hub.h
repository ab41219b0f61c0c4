#pragma once

// Hub: files of Hugging Face repositories, from the cache that its own library keeps on this host,
// else fetched into it, so that each is fetched once for all programs:
//   CACHE/models--org--name/refs/main            the commit that a branch stood for
//   CACHE/models--org--name/snapshots/COMMIT/…   the files of a commit
// Files appear whole or not at all, whoever else fetches them. What the cache has is not asked for
// again: to get a newer commit, name it as revision. Blocking; for set-up only. One thread.

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/hub/hub_terms.h"

namespace tutti::hub {

enum class RepositoryKind { kModel, kDataset };

struct Repository {
  RepositoryKind kind = RepositoryKind::kModel;
  std::string name;               // "org/name", or "name"
  std::string revision = "main";  // branch, tag or commit
};

// One commit of a repository.
struct Snapshot {
  std::string commit;              // 40 hex digits
  std::vector<std::string> files;  // paths within, sorted
};

// Whether a text can be a repository's name at all; what cannot was meant as a path.
bool is_repository_name(const std::string& name);

class Hub {
 public:
  explicit Hub(HubTerms terms) : terms_(std::move(terms)) {}

  // Folder of the repository in the cache, there or not.
  std::string folder(const Repository& repository) const;
  // The cached snapshot's folder, there or not; nothing when the cache does not know the revision.
  std::optional<std::string> cached(const Repository& repository) const;

  // What a revision holds: as noted in the cache, else asked.
  base::Result<Snapshot> look_up(const Repository& repository) const;
  // Fetches those of `files` that the cache does not have, in order; then, when all are there, the
  // cache knows the revision. Returns the snapshot's folder. `snapshot` is the revision's.
  base::Result<std::string> fetch(const Repository& repository, const Snapshot& snapshot,
                                  const std::vector<std::string>& files) const;

 private:
  std::string url(const Repository& repository, const std::string& rest, bool api) const;
  base::Result<Snapshot> ask(const Repository& repository) const;
  base::Status fetch_file(const Repository& repository, const std::string& commit,
                          const std::string& file, const std::string& path) const;

  HubTerms terms_;
};

}  // namespace tutti::hub
