/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/builtins.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "vyre/module.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/status.h"

/* --- texts -----------------------------------------------------------------*/

/* Parsed libraries, kept for the life of the process; written once, under the
 * lock. */
static struct {
  pthread_mutex_t lock;
  vyre_program *programs[VYRE__BUILTINS_COUNT];
  vyre_module *sums[2]; /* of f32 and of f64 */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Appends a kernel that calls every function once, because a program contains
 * only functions that its kernel calls. Names and parameters are taken from
 * the `fn` lines of the text, which vyre fmt has laid out. */
static void append_calls(vyre__bytes *t, const char *source, size_t length) {
  static const char head[] = "\nkernel library workgroup(1)\n{\n";
  vyre__bytes_put(t, head, sizeof head - 1);
  const char *end = source + length;
  unsigned number = 0;
  for (const char *at = source; at < end; at++) {
    if ((at != source && at[-1] != '\n') || end - at < 4 ||
        memcmp(at, "fn ", 3) != 0) {
      continue;
    }
    const char *name = at + 3, *open = memchr(name, '(', (size_t)(end - name));
    const char *close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
    if (!close) break;
    char line[64];
    vyre__bytes_put(
        t, line,
        (size_t)snprintf(line, sizeof line, "    let r%u = ", number++));
    vyre__bytes_put(t, name, (size_t)(open - name + 1));
    bool first = true;
    for (const char *p = open; p < close; p++) {
      if (*p != ':') continue;
      char zero[32];
      const char *type = p + 1;
      while (type < close && *type == ' ') type++;
      size_t size = 0;
      while (type + size < close && type[size] != ',') size++;
      vyre__bytes_put(t, zero,
                      (size_t)snprintf(zero, sizeof zero, "%s%.*s(0)",
                                       first ? "" : ", ", (int)size, type));
      first = false;
    }
    vyre__bytes_put(t, ");\n", 3);
  }
  vyre__bytes_put(t, "}\n", 2);
}

static vyre_code parse(vyre__builtins_kind kind, vyre_program **out,
                       vyre_status *st) {
  static const char with[] = "const HAS_FMA = true;\n";
  static const char without[] = "const HAS_FMA = false;\n";
  bool soft = kind == VYRE__BUILTINS_SOFT;
  const char *source = soft ? vyre__softlib_text : vyre__mathlib_text;
  size_t length = soft ? vyre__softlib_text_length : vyre__mathlib_text_length;
  vyre__bytes t = {0};
  if (kind == VYRE__BUILTINS_MATH) vyre__bytes_put(&t, with, sizeof with - 1);
  if (kind == VYRE__BUILTINS_MATH_NOFMA)
    vyre__bytes_put(&t, without, sizeof without - 1);
  vyre__bytes_put(&t, source, length);
  append_calls(&t, source, length);
  vyre_module *module = NULL;
  vyre_code code =
      t.failed
          ? vyre__no_memory(st, "vyre__builtins_get", "bytes of text", length)
          : vyre_module_parse((const char *)t.data, t.size, "vyre's library",
                              (vyre_allocator){0}, &module, NULL,
                              vyre__status_open(st));
  if (code == VYRE_OK)
    *out = vyre_program_retain(vyre_module_kernel(module, 0));
  vyre_module_release(module);
  vyre__bytes_deinit(&t);
  return code;
}

vyre_code vyre__builtins_get(vyre__builtins_kind kind, const vyre_program **out,
                             vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&cache.lock);
  if (!cache.programs[kind]) code = parse(kind, &cache.programs[kind], st);
  *out = cache.programs[kind];
  pthread_mutex_unlock(&cache.lock);
  return code;
}

const vyre__function *vyre__builtins_find(const vyre_program *library,
                                          const char *name) {
  for (uint32_t i = 1; i < library->function_count; i++) {
    if (strcmp(library->functions[i].name, name) == 0) {
      return &library->functions[i];
    }
  }
  return NULL;
}

/* --- sums ------------------------------------------------------------------*/

static vyre_code parse_sums(vyre_element element, vyre_module **out,
                            vyre_status *st) {
  static const char f32[] =
      "const LAST = 10u; const PRECISION = 24u;\n"
      "const INF = 0x7f800000ul; const SIGN = 0x80000000ul;\n";
  static const char f64[] =
      "const LAST = 70u; const PRECISION = 53u;\n"
      "const INF = 0x7ff0000000000000ul; const SIGN = 0x8000000000000000ul;\n";
  vyre__bytes t = {0};
  const char *head = element == VYRE_ELEMENT_SUM_F64 ? f64 : f32;
  vyre__bytes_put(&t, head, strlen(head));
  vyre__bytes_put(&t, vyre__sumlib_text, vyre__sumlib_text_length);
  vyre_code code = t.failed ? vyre__no_memory(st, __func__, "bytes of text",
                                              vyre__sumlib_text_length)
                            : vyre_module_parse((const char *)t.data, t.size,
                                                "vyre's library of sums",
                                                (vyre_allocator){0}, out, NULL,
                                                vyre__status_open(st));
  vyre__bytes_deinit(&t);
  return code;
}

vyre_code vyre__builtins_sum(vyre_element element, vyre__sum_kernel which,
                             const vyre_program **out, vyre_status *st) {
  vyre_code code = VYRE_OK;
  vyre_module **module = &cache.sums[element == VYRE_ELEMENT_SUM_F64];
  *out = NULL;
  pthread_mutex_lock(&cache.lock);
  if (!*module) code = parse_sums(element, module, st);
  if (code == VYRE_OK) *out = vyre_module_kernel(*module, which);
  pthread_mutex_unlock(&cache.lock);
  return code;
}

/* --- linking ---------------------------------------------------------------*/

/* Merge of two programs: the parts of the library move behind those of the
 * user's program. */
typedef struct link {
  const vyre_program *user, *library;
  vyre_program *out;
  vyre__node *nodes;
  uint32_t *lists;
  uint32_t list_count;
} link;

static uint32_t find_function(const link *l, const char *name) {
  char full[64];
  snprintf(full, sizeof full, "%s_f64", name);
  const vyre__function *f = vyre__builtins_find(l->library, full);
  return f ? l->user->function_count + (uint32_t)(f - l->library->functions) - 1
           : 0;
}

static void copy_user(link *l) {
  for (uint32_t i = 0; i < l->user->node_count; i++) {
    vyre__node node = l->user->nodes[i];
    if (vyre__op_is_math(node.op)) {
      uint32_t list = l->list_count;
      bool two = vyre__ops[node.op].form == VYRE__FORM_BINARY;
      l->lists[l->list_count++] = node.a;
      if (two) l->lists[l->list_count++] = node.b;
      node.a = find_function(l, vyre__ops[node.op].text);
      node.op = VYRE__OP_CALL;
      node.b = list;
      node.c = two ? 2 : 1;
    }
    l->nodes[i] = node;
  }
}

static void copy_library(link *l, uint32_t list_base) {
  uint32_t base = l->user->node_count;
  for (uint32_t i = 0; i < l->library->node_count; i++) {
    vyre__node n = l->library->nodes[i];
    switch ((vyre__form)vyre__ops[n.op].form) {
      case VYRE__FORM_CALL:
        n.a += l->user->function_count - 1;
        n.b += list_base;
        break;
      case VYRE__FORM_LIST:
        n.a += list_base;
        break;
      case VYRE__FORM_UNARY:
      case VYRE__FORM_BINARY:
      case VYRE__FORM_TERNARY:
      case VYRE__FORM_IF:
      case VYRE__FORM_WHILE:
        if (n.a) n.a += base;
        if (n.b) n.b += base;
        if (n.c) n.c += base;
        break;
      case VYRE__FORM_SET:
        n.b += base;
        break;
      case VYRE__FORM_FOR:
        n.b += list_base;
        break;
      default: /* literals and locals; a library uses no buffers */
        break;
    }
    l->nodes[base + i] = n;
  }
  /* All lists of a library contain nodes. */
  for (uint32_t i = 0; i < l->library->list_count; i++) {
    l->lists[list_base + i] = l->library->lists[i] + base;
  }
}

static bool copy_parts(link *l, vyre_arena *arena) {
  const vyre_program *user = l->user, *library = l->library;
  uint32_t nodes = user->node_count + library->node_count;
  uint32_t functions = user->function_count + library->function_count - 1;
  uint32_t lists =
      user->list_count + library->list_count + 2 * user->node_count;
  vyre__function *all = vyre__arena_array(arena, functions, sizeof *all);
  vyre__source_loc *places =
      vyre__arena_filled(arena, nodes, sizeof *places, 0);
  l->nodes = vyre__arena_array(arena, nodes, sizeof *l->nodes);
  l->lists = vyre__arena_array(arena, lists, sizeof *l->lists);
  if (!all || !places || !l->nodes || !l->lists) return false;
  for (uint32_t i = 0; i < user->node_count; i++) {
    places[i] = vyre__source_loc_of(user, i);
  }
  memcpy(l->lists, user->lists, sizeof *l->lists * user->list_count);
  memcpy(all, user->functions, sizeof *all * user->function_count);
  for (uint32_t i = 1; i < library->function_count; i++) {
    vyre__function f = library->functions[i];
    f.body += user->node_count;
    all[user->function_count + i - 1] = f;
  }
  uint32_t list_base = user->list_count;
  l->list_count = list_base + library->list_count;
  copy_library(l, list_base);
  copy_user(l);
  l->out->functions = all;
  l->out->function_count = functions;
  l->out->nodes = l->nodes;
  l->out->node_count = nodes;
  l->out->wide_places = places;
  l->out->lists = l->lists;
  l->out->list_count = l->list_count;
  return true;
}

static bool has_math(const vyre_program *program) {
  for (uint32_t i = 0; i < program->node_count; i++) {
    if (vyre__op_is_math(program->nodes[i].op)) return true;
  }
  return false;
}

vyre_code vyre__link_math(vyre_program *program, vyre_allocator allocator,
                          vyre_program **out, vyre_status *st) {
  *out = NULL;
  if (!has_math(program)) {
    *out = vyre_program_retain(program);
    return VYRE_OK;
  }
  link l = {.user = program};
  VYRE_TRY(vyre__builtins_get(VYRE__BUILTINS_MATH, &l.library, st));
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  l.out = vyre_arena_alloc(&arena, sizeof *l.out, 0);
  if (l.out) {
    *l.out = (vyre_program){.name = program->name,
                            .file = program->file,
                            .buffers = program->buffers,
                            .buffer_count = program->buffer_count,
                            .over = program->over,
                            .item_type = program->item_type,
                            .queue = program->queue,
                            .tables = program->tables,
                            .table_count = program->table_count,
                            .hidden = program->hidden,
                            .hidden_count = program->hidden_count,
                            .texts = program->texts,
                            .text_count = program->text_count,
                            .fingerprint = program->fingerprint};
    memcpy(l.out->workgroup, program->workgroup, sizeof l.out->workgroup);
    atomic_init(&l.out->references, 1);
  }
  if (!l.out || !copy_parts(&l, &arena)) {
    vyre_arena_deinit(&arena);
    return vyre__no_memory(st, __func__, "nodes", program->node_count);
  }
  l.out->arena = arena;
  *out = l.out;
  return VYRE_OK;
}
