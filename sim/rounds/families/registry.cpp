#include "sim/rounds/families/context.h"
#include "sim/rounds/families/distribution.h"

namespace specsim::families {

// To add a family, a transform or a context process, add one line here and a function in this folder.
#define SPECSIM_FAMILIES(X) \
  X(explicit)               \
  X(uniform)                \
  X(zipf)                   \
  X(geometric)              \
  X(dirichlet)              \
  X(normal_logits)          \
  X(uniform_logits)         \
  X(one_hot)                \
  X(mixture)

#define SPECSIM_TRANSFORMS(X) \
  X(temperature)              \
  X(mix_noise)                \
  X(logit_noise)              \
  X(top_k)                    \
  X(top_p)                    \
  X(min_p)                    \
  X(permute)                  \
  X(interpolate)              \
  X(reduced_vocab)            \
  X(overlap)                  \
  X(argmax_agreement)

#define SPECSIM_CONTEXTS(X) \
  X(fixed)                  \
  X(iid)                    \
  X(markov)                 \
  X(regimes)                \
  X(text)                   \
  X(by_depth)               \
  X(requests)               \
  X(copy)                   \
  X(trace)                  \
  X(acceptance_table)

#define SPECSIM_DECLARE(name) FamilyEntry name##_family();
SPECSIM_FAMILIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) TransformEntry name##_transform();
SPECSIM_TRANSFORMS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) ContextEntry name##_context();
SPECSIM_CONTEXTS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<FamilyEntry>& families() {
#define SPECSIM_ENTRY(name) name##_family(),
  static config::Registry<FamilyEntry> registry("family", {SPECSIM_FAMILIES(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<TransformEntry>& transforms() {
#define SPECSIM_ENTRY(name) name##_transform(),
  static config::Registry<TransformEntry> registry("transform", {SPECSIM_TRANSFORMS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<ContextEntry>& context_processes() {
#define SPECSIM_ENTRY(name) name##_context(),
  static config::Registry<ContextEntry> registry("context process", {SPECSIM_CONTEXTS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::families
