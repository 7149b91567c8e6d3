/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scopes of files: which declaration a name means in which file. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lang/import.h"
#include "lang/parse/parse.h"
#include "lang/symbols.h"

enum {
  FIRST_SLOTS = 256,
  MAX_NAMES = 1 << 21, /* names that all files see together */
};

/* First words of keys. */
static uint32_t of_file(uint32_t file) {
  return file;
}

static uint32_t of_own(uint32_t file) { /* declared in it */
  return UINT32_C(1) << 31 | file;
}

static uint32_t of_unknown(uint32_t file, uint32_t target) {
  return UINT32_C(1) << 30 | file << 12 | target;
}

/* --- the table -------------------------------------------------------------*/

static size_t slot_of(const vyre__scopes *s, uint64_t key) {
  const size_t mask = s->slot_count - 1;
  size_t slot = (size_t)((key * vyre__name_prime) >> 32) & mask;
  while (s->keys[slot] && s->keys[slot] != key) slot = (slot + 1) & mask;
  return slot;
}

static uint32_t find(const vyre__scopes *s, uint32_t scope, uint32_t base) {
  if (s->slot_count == 0) return 0;
  const size_t slot = slot_of(s, (uint64_t)scope << 32 | base);
  return s->keys[slot] ? s->values[slot] : 0;
}

static void free_slots(vyre__scopes *s) {
  if (s->slot_count == 0) return;
  vyre__resize(s->allocator, s->keys, s->slot_count * sizeof *s->keys, 0);
  vyre__resize(s->allocator, s->values, s->slot_count * sizeof *s->values, 0);
}

static bool grow(vyre__scopes *s) {
  vyre__scopes old = *s;
  const size_t count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
  s->keys = vyre__alloc_zeroed(s->allocator, count * sizeof *s->keys);
  s->values = vyre__alloc_zeroed(s->allocator, count * sizeof *s->values);
  if (!s->keys || !s->values) {
    if (s->keys)
      vyre__resize(s->allocator, s->keys, count * sizeof *s->keys, 0);
    if (s->values)
      vyre__resize(s->allocator, s->values, count * sizeof *s->values, 0);
    *s = old;
    return false;
  }
  s->slot_count = count;
  for (size_t i = 0; i < old.slot_count; i++) {
    if (!old.keys[i]) continue;
    const size_t slot = slot_of(s, old.keys[i]);
    s->keys[slot] = old.keys[i];
    s->values[slot] = old.values[i];
  }
  free_slots(&old);
  return true;
}

static void put(vyre__scopes *s, uint32_t scope, uint32_t base,
                uint32_t symbol) {
  if ((s->count * 2 >= s->slot_count && !grow(s)) || s->count >= MAX_NAMES) {
    s->failed = true;
    s->symbols->failed = true;
    return;
  }
  const uint64_t key = (uint64_t)scope << 32 | base;
  const size_t slot = slot_of(s, key);
  s->count += s->keys[slot] == 0;
  s->keys[slot] = key;
  s->values[slot] = symbol;
}

void vyre__scopes_deinit(vyre__parser *p) {
  vyre__scopes *s = p->scopes;
  if (!s) return;
  for (size_t i = 0; i < s->file_count; i++) {
    void *imports = s->files[i].imports;
    vyre__reserve_free(p->allocator, &imports, &s->files[i].import_capacity,
                       sizeof *s->files[i].imports);
  }
  void *files = s->files, *joined = p->joined;
  vyre__reserve_free(p->allocator, &files, &s->file_capacity, sizeof *s->files);
  vyre__reserve_free(p->allocator, &joined, &p->joined_capacity, 1);
  free_slots(s);
  p->joined = NULL;
  p->joined_length = 0;
  p->scopes = NULL;
}

bool vyre__p_is_hidden(const vyre__parser *p, uint32_t symbol) {
  const vyre__symbol *own = &p->symbols.items[symbol];
  if (!p->scopes || !own->item) return false;
  const uint32_t base =
      vyre__find_name(&p->symbols, own->text,
                      vyre__name_key_of(own->text, own->length, own->length));
  return find(p->scopes, of_file(p->now.lexer.file), base) != symbol;
}

uint32_t vyre__file_at(const vyre__scopes *s, uint32_t at) {
  size_t low = 0, high = s->file_count;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    if (at < s->files[middle].start) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return (uint32_t)low;
}

/* --- names -----------------------------------------------------------------*/

static uint32_t intern(vyre__symbols *symbols, const char *text,
                       uint32_t length) {
  return vyre__intern(symbols, text, vyre__name_key_of(text, length, length));
}

/* Returns the symbol that all files share. */
static uint32_t base_of(vyre__scopes *s, uint32_t symbol) {
  const vyre__symbol *own = &s->symbols->items[symbol];
  return intern(s->symbols, own->text, own->length);
}

/* Adds a symbol with the text of another and no meaning. */
static uint32_t add_copy(vyre__scopes *s, uint32_t base) {
  const vyre__symbol from = s->symbols->items[base];
  const vyre__name_key key = {from.length, from.hash, from.tail};
  const uint32_t symbol = vyre__symbol_add(s->symbols, from.text, key);
  if (symbol) s->symbols->items[symbol].value = from.value;
  return symbol;
}

/* Returns the symbol of a name in a file. */
static uint32_t scoped(vyre__scopes *s, uint32_t file, uint32_t base) {
  const vyre__symbol *symbol = &s->symbols->items[base];
  if (symbol->word != VYRE__WORD_PLAIN) return base;
  const uint32_t found = find(s, of_file(file), base);
  if (found || !symbol->item) return found ? found : base;
  const uint32_t hidden = add_copy(s, base); /* another file declares it */
  if (hidden) put(s, of_file(file), base, hidden);
  return hidden;
}

void vyre__scope_declare(vyre__scopes *s, uint32_t file, uint32_t symbol) {
  const uint32_t base = base_of(s, symbol);
  if (!base) return;
  put(s, of_file(file), base, symbol);
  put(s, of_own(file), base, symbol);
}

/* Returns the symbol of a name that the file @p target does not declare. */
static uint32_t unknown(vyre__scopes *s, uint32_t file, uint32_t target,
                        uint32_t base, const vyre__token *name) {
  const uint32_t scope = of_unknown(file, target);
  uint32_t symbol = find(s, scope, base);
  if (symbol) return symbol;
  const char *text = s->text + name->start;
  symbol = vyre__symbol_add(
      s->symbols, text, vyre__name_key_of(text, name->length, name->length));
  if (symbol) put(s, scope, base, symbol);
  return symbol;
}

/* Joins NAME.member, where NAME is an import, into one token. */
static void join_member(vyre__lexer *lexer, vyre__token *token,
                        uint32_t target) {
  vyre__scopes *s = lexer->scopes;
  uint32_t before = token->start;
  while (before > 0 &&
         (lexer->text[before - 1] == ' ' || lexer->text[before - 1] == '\t')) {
    before--;
  }
  if (before > 0 && lexer->text[before - 1] == '.') return; /* a field */
  if (lexer->at >= lexer->length || lexer->text[lexer->at] != '.') return;
  vyre__lexer after = *lexer;
  after.scopes = NULL;
  after.at++;
  const vyre__token member = vyre__lex(&after);
  if (member.kind != VYRE__T_NAME || member.start != lexer->at + 1) return;
  const uint32_t found = find(s, of_own(target), member.symbol);
  token->length = member.start + member.length - token->start;
  lexer->at = after.at;
  if (found) {
    token->symbol = found;
  } else if (s->symbols->items[member.symbol].word == VYRE__WORD_TYPE) {
    token->symbol = member.symbol; /* an override type, which files share */
  } else {
    token->symbol = unknown(s, lexer->file, target, member.symbol, token);
  }
}

void vyre__scope_name(vyre__lexer *lexer, vyre__token *token) {
  if (token->kind != VYRE__T_NAME || !token->symbol) return;
  token->symbol = scoped(lexer->scopes, lexer->file, token->symbol);
  const uint32_t import = lexer->scopes->symbols->items[token->symbol].import;
  if (import) join_member(lexer, token, import - 1);
}

/* --- imports ---------------------------------------------------------------*/

/* Returns the first item at or after an offset. */
static size_t item_from(const vyre__parser *p, uint32_t at) {
  size_t low = 0, high = p->item_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (p->items[middle].start.at < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool has_meaning(const vyre__scopes *s, uint32_t symbol) {
  return symbol &&
         (s->symbols->items[symbol].item || s->symbols->items[symbol].import);
}

static void report_alias(vyre__parser *p, const vyre__import *import) {
  vyre__p_error(p, vyre__p_span(&import->alias), "V031",
                "import the file under another name",
                "'%.*s' already has a meaning in this file",
                (int)import->alias.length, p->text + import->alias.start);
}

static void bind_alias(vyre__parser *p, uint32_t file,
                       const vyre__import *import) {
  vyre__scopes *s = p->scopes;
  const uint32_t base =
      intern(&p->symbols, p->text + import->alias.start, import->alias.length);
  if (!base || p->symbols.items[base].word != VYRE__WORD_PLAIN) return;
  if (has_meaning(s, find(s, of_file(file), base))) {
    report_alias(p, import);
    return;
  }
  const uint32_t symbol = add_copy(s, base);
  if (!symbol) return;
  p->symbols.items[symbol].import = import->target + 1;
  put(s, of_file(file), base, symbol);
}

/* Reports a name of an imported file that has another meaning. */
static void report_equal(vyre__parser *p, const vyre__import *import,
                         const vyre__item *item, uint32_t existing) {
  const vyre__scopes *s = p->scopes;
  const vyre__symbol *symbol = &p->symbols.items[existing];
  const vyre__linked_file *target = &s->files[import->target];
  const uint32_t line = item->span.place.line - target->first_line + 1;
  static const char fix[] =
      "rename one of them, or import the file under a name: import \"...\" as "
      "name;";
  if (!symbol->item) {
    vyre__p_error(p, vyre__p_span(&import->path), "V031", fix,
                  "'%.*s', declared in %.100s:%u, is the name of an import",
                  (int)symbol->length, symbol->text, target->name,
                  (unsigned)line);
    return;
  }
  vyre__p_error2(p, vyre__p_span(&import->path), "V031",
                 p->items[symbol->item - 1].span, "declared here", fix,
                 "'%.*s', declared in %.100s:%u, already has a meaning in this "
                 "file",
                 (int)symbol->length, symbol->text, target->name,
                 (unsigned)line);
}

static void bind_names(vyre__parser *p, uint32_t file,
                       const vyre__import *import) {
  vyre__scopes *s = p->scopes;
  vyre__linked_file *target = &s->files[import->target];
  if (target->bound_in == file + 1) return; /* imported twice */
  target->bound_in = file + 1;
  for (size_t i = item_from(p, target->start);
       i < p->item_count && p->items[i].start.at < target->end && !s->failed;
       i++) {
    const vyre__item *item = &p->items[i];
    if (item->kind == VYRE__T_KERNEL || item->nested) continue;
    const uint32_t base = base_of(s, item->symbol);
    const uint32_t existing = find(s, of_file(file), base);
    if (!base || existing == item->symbol) continue;
    if (has_meaning(s, existing)) {
      report_equal(p, import, item, existing);
    } else {
      put(s, of_file(file), base, item->symbol);
    }
  }
}

void vyre__p_bind_imports(vyre__parser *p) {
  vyre__scopes *s = p->scopes;
  for (uint32_t f = 0; f < s->file_count && !p->symbols.failed; f++) {
    for (size_t i = 0; i < s->files[f].import_count; i++) {
      const vyre__import *import = &s->files[f].imports[i];
      if (import->target == VYRE_NO_INDEX) continue;
      if (import->alias.kind == VYRE__T_NAME) {
        bind_alias(p, f, import);
      } else {
        bind_names(p, f, import);
      }
    }
  }
}

bool vyre__p_import_fix(vyre__parser *p, const vyre__token *name, char *fix,
                        size_t size) {
  vyre__scopes *s = p->scopes;
  const uint32_t file = s ? vyre__file_at(s, name->start) : 0;
  const char *text = p->text + name->start;
  const char *dot = memchr(text, '.', name->length);
  const char *member = dot ? dot + 1 : text;
  const uint32_t length = name->length - (uint32_t)(member - text);
  for (size_t i = 0; s && i < s->files[file].import_count; i++) {
    const vyre__import *import = &s->files[file].imports[i];
    const char *alias = p->text + import->alias.start;
    if (import->target == VYRE_NO_INDEX || import->alias.kind != VYRE__T_NAME ||
        (dot && ((size_t)(dot - text) != import->alias.length ||
                 memcmp(alias, text, import->alias.length) != 0))) {
      continue;
    }
    vyre__guess guess = vyre__guess_begin(member, length);
    const vyre__linked_file *target = &s->files[import->target];
    for (size_t k = item_from(p, target->start);
         k < p->item_count && p->items[k].start.at < target->end; k++) {
      const vyre__symbol *symbol = &p->symbols.items[p->items[k].symbol];
      const bool is_equal =
          symbol->length == length && memcmp(symbol->text, member, length) == 0;
      if (p->items[k].kind == VYRE__T_KERNEL || (!dot && !is_equal)) continue;
      if (is_equal) {
        guess.best = symbol->text;
        guess.best_length = symbol->length;
        break;
      }
      vyre__guess_try(&guess, symbol->text, symbol->length);
    }
    if (!guess.best) continue;
    vyre__p_edit(p, vyre__p_span(name), "%.*s.%.*s", (int)import->alias.length,
                 alias, (int)guess.best_length, guess.best);
    snprintf(fix, size, "write %.*s.%.*s", (int)import->alias.length, alias,
             (int)guess.best_length, guess.best);
    return true;
  }
  if (dot) snprintf(fix, size, "declare it in the imported file");
  return dot != NULL;
}
