/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The float probe: compiles one kernel per operation, runs it, and counts wrong
 * results. */
#include "runtime/probe/probe.h"

#include <stdio.h>
#include <string.h>

#include "vyre/module.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/float_ops.h"
#include "ir/scalar.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/probe/vectors.h"

typedef struct operation {
  const char *name, *expression;
  vyre__op op;
  vyre_type of, to;
  uint8_t operands;
} operation;

static const operation operations[] = {
#define VYRE__X7(name, text, op, of, to, operands, expression) \
  {text, expression, VYRE__OP_##op, VYRE_TYPE_##of, VYRE_TYPE_##to, operands},
    VYRE__FLOAT_OP_MAP(VYRE__X7)
#undef VYRE__X7
};

const vyre_float_op_info vyre__float_op_is_exact[] = {
#define VYRE__X7(name, text, op, of, to, operands, expression) \
  {text, VYRE_FLOAT_MODE_NATIVE, 0, 0},
    VYRE__FLOAT_OP_MAP(VYRE__X7)
#undef VYRE__X7
};

enum {
  CHUNK = 1 << 14, /* vectors per dispatch */
  TEXT_BYTES = 320 /* source of one kernel */
};

/* State of a probe. */
typedef struct probe {
  vyre_device *device;
  vyre_arena arena;
  vyre_module *module;
  vyre_pipeline *pipelines[VYRE__FLOAT_OP_COUNT];
  vyre_float_op_info *float_ops;
  uint32_t vectors;
  uint64_t (*values)[3];   /* CHUNK operand tuples, as register values */
  unsigned char *bytes[3]; /* the same operands as elements in memory */
  unsigned char *results;
  vyre_status *st;
} probe;

static bool is_f64(const operation *o) {
  return o->of == VYRE_TYPE_F64 || o->to == VYRE_TYPE_F64;
}

static bool has_types(const vyre_device *device, const operation *o) {
  if (is_f64(o)) return device->caps.has_f64;
  return device->caps.has_u64 ||
         !(vyre__is_wide(o->of) || vyre__is_wide(o->to));
}

/* --- kernels -------------------------------------------------------------- */

/* Returns the type of buffer elements. Bools are stored as u32. */
static const char *element_name(vyre_type type) {
  return vyre_type_name(type == VYRE_TYPE_BOOL ? VYRE_TYPE_U32 : type);
}

static void print_kernel(const operation *o, size_t index, char *out) {
  const char *of = element_name(o->of), *to = element_name(o->to);
  int used = snprintf(out, TEXT_BYTES,
                      "kernel probe%zu workgroup(64) over(r)\n", index);
  for (unsigned i = 0; i < o->operands; i++) {
    used += snprintf(out + used, (size_t)(TEXT_BYTES - used),
                     "buffer %c : read %s[] @%u;\n", "abc"[i], of, i);
  }
  used += snprintf(out + used, (size_t)(TEXT_BYTES - used),
                   "buffer r : write %s[] @3;\n{ let i = global_id.x; "
                   "if (i >= len(r)) return; ",
                   to);
  for (unsigned i = 0; i < o->operands; i++) {
    used += snprintf(out + used, (size_t)(TEXT_BYTES - used),
                     "let %c = %c[i]; ", "xyz"[i], "abc"[i]);
  }
  (void)snprintf(out + used, (size_t)(TEXT_BYTES - used), "r[i] = %s(%s); }\n",
                 o->to == VYRE_TYPE_BOOL ? "u32" : "", o->expression);
}

static vyre_code parse(probe *p) {
  char *text =
      vyre_arena_alloc(&p->arena, (size_t)VYRE__FLOAT_OP_COUNT * TEXT_BYTES, 1);
  if (!text) return vyre__no_memory(p->st, "probe", "kernels", 1);
  size_t length = 0;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    print_kernel(&operations[i], i, text + length);
    length += strlen(text + length);
  }
  return vyre_module_parse(text, length, "probe", p->device->allocator,
                           &p->module, NULL, vyre__status_open(p->st));
}

/* Compiles operation @p index in its current float mode. */
static vyre_code compile(probe *p, size_t index) {
  vyre_pipeline_release(p->pipelines[index]);
  p->pipelines[index] = NULL;
  return vyre__pipeline_compile_as(p->device,
                                   vyre_module_kernel(p->module, index),
                                   p->float_ops, &p->pipelines[index], p->st);
}

/* --- execution ------------------------------------------------------------ */

static size_t bytes_of(vyre_type type) {
  return vyre__is_wide(type) ? 8 : 4;
}

static void store(bool is_wide_type, uint64_t value, size_t index,
                  unsigned char *out) {
  if (is_wide_type) {
    memcpy(out + index * 8, &value, 8);
  } else {
    memcpy(out + index * 4, &(uint32_t){(uint32_t)value}, 4);
  }
}

static uint64_t load(const unsigned char *from, size_t index, size_t size) {
  uint32_t narrow;
  uint64_t wide;
  if (size == 8) {
    memcpy(&wide, from + index * 8, 8);
    return wide;
  }
  memcpy(&narrow, from + index * 4, 4);
  return narrow;
}

static vyre_code dispatch(probe *p, size_t index) {
  const operation *o = &operations[index];
  vyre_input inputs[3];
  size_t in = CHUNK * bytes_of(o->of), out = CHUNK * bytes_of(o->to);
  for (unsigned i = 0; i < o->operands; i++) {
    inputs[i] = vyre_input_bytes(p->bytes[i], in);
  }
  vyre_output output = vyre_output_bytes(p->results, out);
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = o->operands,
                             .outputs = &output,
                             .output_count = 1,
                             .label = o->name,
                             .profile = "probe"};
  return vyre_dispatch(p->pipelines[index], &desc, vyre__status_open(p->st));
}

/* Counts the results that differ from exact arithmetic. */
static uint64_t count_wrong(const probe *p, size_t index) {
  const operation *o = &operations[index];
  size_t size = bytes_of(o->to);
  uint64_t wrong = 0;
  fenv_t saved;
  vyre__float_begin(&saved);
  for (size_t i = 0; i < CHUNK; i++) {
    uint64_t want = 0;
    bool is_known =
        vyre__scalar_apply(o->op, o->of, o->to, p->values[i], &want);
    want = vyre__canonical(o->to, want);
    if (size == 4) want = (uint32_t)want;
    wrong += !is_known || load(p->results, i, size) != want;
  }
  vyre__float_end(&saved);
  return wrong;
}

/* Generates operands of one type for all operations on it. */
static void make_vectors(probe *p, vyre_type type, uint64_t seed) {
  vyre__vectors v = vyre__vectors_make(type, seed);
  bool wide = vyre__is_wide(type);
  for (size_t i = 0; i < CHUNK; i++) {
    vyre__vectors_next(&v, p->values[i]);
    for (int k = 0; k < 3; k++) store(wide, p->values[i][k], i, p->bytes[k]);
  }
}

/* Runs all vectors through the operations of @p chosen on @p type. Adds to
 * wrong[]. */
static vyre_code run_type(probe *p, vyre_type type, const bool *chosen,
                          uint64_t *wrong) {
  bool any = false;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    any = any || (chosen[i] && operations[i].of == type);
  }
  for (uint32_t done = 0; any && done < p->vectors; done += CHUNK) {
    make_vectors(p, type, done / CHUNK);
    for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
      if (!chosen[i] || operations[i].of != type) continue;
      VYRE_TRY(dispatch(p, i));
      wrong[i] += count_wrong(p, i);
    }
  }
  return VYRE_OK;
}

static vyre_code run_chosen(probe *p, const bool *chosen, uint64_t *wrong) {
  static const vyre_type types[] = {VYRE_TYPE_F32, VYRE_TYPE_U32,
                                    VYRE_TYPE_I32, VYRE_TYPE_U64,
                                    VYRE_TYPE_I64, VYRE_TYPE_F64};
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    if (chosen[i]) VYRE_TRY(compile(p, i));
  }
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    VYRE_TRY(run_type(p, types[i], chosen, wrong));
  }
  return VYRE_OK;
}

/* --- float modes ---------------------------------------------------------- */

static vyre_code wrong_in_all_modes(const probe *p, size_t index,
                                    uint64_t wrong) {
  return VYRE_FAIL_WITH(
      p->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"wrong", wrong}, {"vectors", p->vectors}),
      "use another device, and report the bug to the vendor of the driver",
      "device '%s' gets '%s' wrong in every float mode: %llu of %u results",
      vyre_device_name(p->device), operations[index].name,
      (unsigned long long)wrong, p->vectors);
}

/* Tries the modes of each operation in order until its results are correct. */
static vyre_code classify(probe *p) {
  bool chosen[VYRE__FLOAT_OP_COUNT];
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    chosen[i] = has_types(p->device, &operations[i]);
    p->float_ops[i].tested = chosen[i] ? p->vectors : 0;
  }
  for (vyre_float_mode mode = VYRE_FLOAT_MODE_NATIVE;
       mode < VYRE_FLOAT_MODE_COUNT; mode++) {
    uint64_t wrong[VYRE__FLOAT_OP_COUNT] = {0};
    VYRE_TRY(run_chosen(p, chosen, wrong));
    for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
      vyre_float_op_info *c = &p->float_ops[i];
      if (mode == VYRE_FLOAT_MODE_NATIVE) c->wrong = wrong[i];
      chosen[i] = wrong[i] > 0;
      if (!chosen[i]) continue;
      if (mode == VYRE_FLOAT_MODE_SOFT) {
        return wrong_in_all_modes(p, i, wrong[i]);
      }
      bool has_modes = !is_f64(&operations[i]);
      c->mode = has_modes ? (vyre_float_mode)(mode + 1) : VYRE_FLOAT_MODE_SOFT;
      chosen[i] = has_modes;
    }
  }
  return VYRE_OK;
}

static vyre_code prepare(probe *p) {
  p->values = vyre__arena_array(&p->arena, CHUNK, sizeof *p->values);
  p->results = vyre__arena_array(&p->arena, CHUNK, 8);
  bool fits = p->values && p->results;
  for (int k = 0; k < 3; k++) {
    p->bytes[k] = vyre__arena_array(&p->arena, CHUNK, 8);
    fits = fits && p->bytes[k];
  }
  if (!fits) return vyre__no_memory(p->st, "probe", "vectors", CHUNK);
  return parse(p);
}

vyre_code vyre__probe_run(vyre_device *device, uint32_t vectors,
                          vyre__probe_result *out, vyre_status *st) {
  probe p = {.device = device, .float_ops = out->float_ops, .st = st};
  if (vectors == 0) vectors = VYRE__PROBE_VECTORS;
  p.vectors = (vectors + CHUNK - 1) / CHUNK * CHUNK;
  out->is_cached = false;
  memcpy(out->float_ops, vyre__float_op_is_exact, sizeof out->float_ops);
  vyre_arena_init(&p.arena, device->allocator);
  vyre_code code = prepare(&p);
  if (code == VYRE_OK) code = classify(&p);
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    vyre_pipeline_release(p.pipelines[i]);
  }
  vyre_module_release(p.module);
  vyre_arena_deinit(&p.arena);
  return code;
}

/* --- results in memory ---------------------------------------------------- */

enum { MAX_KNOWN = 16 };

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  size_t key_length;
  char key[VYRE__PROBE_KEY];
  vyre_float_op_info float_ops[VYRE__FLOAT_OP_COUNT];
} known[MAX_KNOWN];
static size_t known_count;

static bool find_known(const char *key, size_t length,
                       vyre_float_op_info *out) {
  bool found = false;
  pthread_mutex_lock(&known_lock);
  size_t count = known_count < MAX_KNOWN ? known_count : MAX_KNOWN;
  for (size_t i = 0; i < count && !found; i++) {
    found =
        known[i].key_length == length && memcmp(known[i].key, key, length) == 0;
    if (found) memcpy(out, known[i].float_ops, sizeof known[i].float_ops);
  }
  pthread_mutex_unlock(&known_lock);
  return found;
}

/* Adds a result; replaces the oldest one. */
static void add_known(const char *key, size_t length,
                      const vyre_float_op_info *float_ops) {
  pthread_mutex_lock(&known_lock);
  size_t at = known_count++ % MAX_KNOWN;
  known[at].key_length = length;
  memcpy(known[at].key, key, length);
  memcpy(known[at].float_ops, float_ops, sizeof known[at].float_ops);
  pthread_mutex_unlock(&known_lock);
}

vyre_code vyre__probe_find(vyre_device *device, vyre__probe_result *out,
                           vyre_status *st) {
  char key[VYRE__PROBE_KEY];
  size_t length = vyre__probe_key(device, key);
  const vyre__cache *cache = &device->context->cache;
  if (length > 0 && find_known(key, length, out->float_ops)) {
    out->is_cached = true;
    return VYRE_OK;
  }
  bool is_file =
      length > 0 && vyre__probe_load(cache, key, length, out->float_ops);
  if (!is_file) VYRE_TRY(vyre__probe_run(device, 0, out, st));
  out->is_cached = is_file;
  if (length == 0) return VYRE_OK;
  add_known(key, length, out->float_ops);
  if (!is_file) (void)vyre__probe_save(cache, key, length, out->float_ops);
  return VYRE_OK;
}

vyre_code vyre_device_probe(vyre_device *device, vyre_float_op_info *out,
                            size_t capacity, size_t *count, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, count);
  *count = 0;
  VYRE_REQUIRE(st, device);
  VYRE_REQUIRE_ARRAY(st, out, capacity);
  vyre__probe_result result;
  VYRE_TRY(vyre__device_check(device, st));
  VYRE_TRY(vyre__probe_run(device, 0, &result, st));
  *count = VYRE__FLOAT_OP_COUNT;
  size_t copied =
      capacity < VYRE__FLOAT_OP_COUNT ? capacity : VYRE__FLOAT_OP_COUNT;
  if (copied > 0) memcpy(out, result.float_ops, copied * sizeof *out);
  return VYRE_OK;
}
