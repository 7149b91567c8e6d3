/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre grammar`: syntax highlighting for editors, from the tables of the
 * lexer. The files in editors/ are its output. */
#include <stdlib.h>
#include <string.h>

#include "vyre/source.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "io/json_out.h"

typedef struct grammar {
  const vyre_word *words;
  size_t count;
  sink *out;
} grammar;

/* Scopes of TextMate and groups of Vim, by kind of word. */
static const struct {
  vyre_word_kind kind;
  const char *scope, *group;
} kinds[] = {
    {VYRE_WORD_KEYWORD, "keyword.control.vyre", "Keyword"},
    {VYRE_WORD_TYPE, "storage.type.vyre", "Type"},
    {VYRE_WORD_ELEMENT, "storage.type.element.vyre", "Type"},
    {VYRE_WORD_FUNCTION, "support.function.vyre", "Function"},
    {VYRE_WORD_ID, "variable.language.vyre", "Identifier"},
    {VYRE_WORD_CONSTANT, "constant.language.vyre", "Constant"},
    {VYRE_WORD_CONTEXT, "storage.modifier.vyre", "StorageClass"},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Appends the words of a kind, with @p between between them. */
static void put_words(const grammar *g, vyre_word_kind kind,
                      const char *between, sink *out) {
  bool is_first = true;
  for (size_t i = 0; i < g->count; i++) {
    if (g->words[i].kind != kind) continue;
    if (!is_first) sink_text(out, between);
    sink_text(out, g->words[i].name);
    is_first = false;
  }
}

/* --- TextMate --------------------------------------------------------------*/

static void put_pattern(json_out *json, const char *name, const char *match) {
  json_open(json, NULL, '{');
  json_text(json, "name", name);
  json_text(json, "match", match);
  json_close(json, '}');
  sink_text(json->out, "\n");
}

static void put_range_pattern(json_out *json, const char *name,
                              const char *begin, const char *end,
                              const char *inner) {
  json_open(json, NULL, '{');
  json_text(json, "name", name);
  json_text(json, "begin", begin);
  json_text(json, "end", end);
  if (inner) {
    json_open(json, "patterns", '[');
    put_pattern(json, "constant.character.escape.vyre", inner);
    json_close(json, ']');
  }
  json_close(json, '}');
  sink_text(json->out, "\n");
}

static void put_words_pattern(const grammar *g, json_out *json, size_t which) {
  sink match = {0};
  const bool is_function = kinds[which].kind == VYRE_WORD_FUNCTION;
  const bool is_context = kinds[which].kind == VYRE_WORD_CONTEXT;
  sink_text(&match, is_context ? "(?<![.\\w])(?:" : "\\b(?:");
  put_words(g, kinds[which].kind, "|", &match);
  /* Names of functions may be names of variables. Most words of a context are
   * before a bracket, a type or the end of a declaration. */
  sink_text(&match, is_function  ? ")\\b(?=\\s*\\()"
                    : is_context ? ")\\b(?=\\s*(?:\\(|;|\\{|[a-z]+[0-9]*(?:x"
                                   "[234])?\\s*\\[|[a-z_]+\\b))"
                                 : ")\\b");
  json_open(json, NULL, '{');
  json_text(json, "name", kinds[which].scope);
  json_string(json, "match", match.data, match.length);
  json_close(json, '}');
  sink_text(json->out, "\n");
  sink_deinit(&match);
}

static void put_textmate(const grammar *g) {
  json_out json = {.out = g->out};
  json_open(&json, NULL, '{');
  json_text(&json, "name", "vyre");
  json_text(&json, "scopeName", "source.vyre");
  json_open(&json, "fileTypes", '[');
  json_text(&json, NULL, "vyre");
  json_close(&json, ']');
  json_open(&json, "patterns", '[');
  sink_text(g->out, "\n");
  put_pattern(&json, "comment.line.double-slash.vyre", "//.*$");
  put_range_pattern(&json, "comment.block.vyre", "/\\*", "\\*/", NULL);
  put_range_pattern(&json, "string.quoted.double.vyre", "\"", "\"|$",
                    "\\\\[nt\"\\\\]");
  put_pattern(&json, "constant.numeric.vyre",
              "\\b(?:0[xX][0-9a-fA-F_.]+(?:[pP][+-]?[0-9]+)?|0[bB][01_]+|"
              "[0-9][0-9_]*(?:\\.[0-9_]*)?(?:[eE][+-]?[0-9]+)?)"
              "(?:ul|u|i|l|f|d)?\\b");
  put_pattern(&json, "constant.numeric.binding.vyre", "@\\s*[0-9]+");
  for (size_t i = 0; i < KINDS; i++) put_words_pattern(g, &json, i);
  put_pattern(&json, "entity.name.function.vyre",
              "(?<=\\bfn|\\bkernel)\\s+[A-Za-z_]\\w*");
  put_pattern(&json, "entity.name.function.call.vyre",
              "\\b[A-Za-z_]\\w*(?=\\s*\\()");
  put_pattern(&json, "variable.other.vyre", "\\b[A-Za-z_]\\w*\\b");
  put_pattern(&json, "keyword.operator.vyre", "[-+*/%&|^~!<>=?:]+");
  json_close(&json, ']');
  json_close(&json, '}');
  sink_text(g->out, "\n");
}

/* --- Vim -------------------------------------------------------------------*/

static void put_vim(const grammar *g) {
  sink_text(g->out,
            "\" Vim syntax file of the kernel language of vyre. Written by "
            "`vyre grammar --to vim`.\n"
            "if exists(\"b:current_syntax\")\n  finish\nendif\n");
  for (size_t i = 0; i < KINDS; i++) {
    sink_format(g->out, "syn keyword vyre%u ", (unsigned)i);
    put_words(g, kinds[i].kind, " ", g->out);
    sink_text(g->out, "\n");
  }
  sink_text(
      g->out,
      "syn match vyreNumber \"\\<\\d\\w*\\(\\.\\w*\\)\\=\\>\"\n"
      "syn match vyreBinding \"@\\s*\\d\\+\"\n"
      "syn region vyreString start=+\"+ skip=+\\\\\\\\\\|\\\\\"+ end=+\"+ "
      "oneline\n"
      "syn match vyreComment \"//.*$\"\n"
      "syn region vyreComment start=\"/\\*\" end=\"\\*/\"\n");
  for (size_t i = 0; i < KINDS; i++) {
    sink_format(g->out, "hi def link vyre%u %s\n", (unsigned)i, kinds[i].group);
  }
  sink_text(g->out,
            "hi def link vyreNumber Number\n"
            "hi def link vyreBinding Number\n"
            "hi def link vyreString String\n"
            "hi def link vyreComment Comment\n"
            "let b:current_syntax = \"vyre\"\n");
}

/* --- the command -----------------------------------------------------------*/

int cmd_grammar(int count, char **words, bool json) {
  problem wrong = {0};
  size_t to = 0; /* textmate */
  sink out = {0};
  flag flags[] = {FLAG("--to", &to)};
  arguments spec = {.command = "grammar", .flags = flags, .flag_count = 1};
  if (!args_read(&spec, count, words, &wrong)) {
    return problem_report(&wrong, json);
  }
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  grammar g = {.out = &out};
  g.words = vyre_words(&arena, &g.count);
  if (!g.words) {
    problem_no_memory(&wrong, "the words");
  } else if (to == 1) {
    put_vim(&g);
  } else {
    put_textmate(&g);
  }
  vyre_arena_deinit(&arena);
  if (wrong.kind) return problem_report(&wrong, json);
  if (json) {
    sink answer = {0};
    json_out object = {.out = &answer};
    json_open(&object, NULL, '{');
    json_bool(&object, "ok", true);
    json_string(&object, "text", out.data, out.length);
    json_close(&object, '}');
    sink_text(&answer, "\n");
    sink_deinit(&out);
    out = answer;
  }
  return publish(&out, NULL, NULL, json);
}
