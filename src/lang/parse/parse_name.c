/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: names and their meaning. A name has one meaning: a local must not
 * hide a buffer, a parameter, another local or a declaration of the file. */
#include <stdio.h>

#include "base/memory.h"
#include "lang/source_index.h"

const char *vyre__p_did_you_mean(const vyre__guess *guess,
                                 const char *otherwise,
                                 char buffer[VYRE__FIX_TEXT]) {
  if (guess->best) {
    snprintf(buffer, VYRE__FIX_TEXT, "did you mean '%.*s'?",
             (int)guess->best_length, guess->best);
  } else {
    snprintf(buffer, VYRE__FIX_TEXT, "%s", otherwise);
  }
  return buffer;
}

void vyre__p_check_free(vyre__parser *p, const vyre__token *name) {
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  if (symbol->local) {
    const vyre__binding *before = &p->bindings[symbol->local - 1];
    if (before->kind == VYRE__BIND_WRONG) return;
    vyre__p_error2(p, vyre__p_span(name), "V031", before->span, "declared here",
                   "use another name; a name can have only one meaning",
                   "'%.*s' is already the name of %s", (int)symbol->length,
                   symbol->text,
                   before->kind == VYRE__BIND_BUFFER  ? "a buffer"
                   : before->kind == VYRE__BIND_FIELD ? "a field of the item"
                                                      : "a local");
    return;
  }
  if (symbol->import) {
    vyre__p_error(p, vyre__p_span(name), "V032",
                  "use another name; a name can have only one meaning",
                  "'%.*s' would hide the import with this name",
                  (int)symbol->length, symbol->text);
  }
  if (!symbol->item) return;
  const vyre__item *item = &p->items[symbol->item - 1];
  if (item->kind == VYRE__T_KERNEL || item->nested) return;
  vyre__p_error2(p, vyre__p_span(name), "V032", item->span, "declared here",
                 "use another name; a name can have only one meaning",
                 "'%.*s' would hide the %s with this name", (int)symbol->length,
                 symbol->text, vyre__token_text(item->kind));
}

void vyre__p_bind(vyre__parser *p, const vyre__token *name, unsigned kind,
                  uint32_t index) {
  void *bindings = p->bindings;
  if (!vyre__reserve(p->allocator, &bindings, &p->binding_capacity,
                     p->binding_count + 1, sizeof *p->bindings, false)) {
    p->out_of_memory = true;
    return;
  }
  p->bindings = bindings;
  vyre__symbol *symbol = vyre__p_symbol(p, name);
  p->bindings[p->binding_count++] = (vyre__binding){.kind = (uint8_t)kind,
                                                    .symbol = name->symbol,
                                                    .index = index,
                                                    .previous = symbol->local,
                                                    .span = vyre__p_span(name)};
  symbol->local = (uint32_t)p->binding_count;
  if (p->index && p->now.lexer.file == 0) {
    vyre__binding *binding = &p->bindings[p->binding_count - 1];
    binding->number = vyre__index_bind(p, name, binding);
  }
}

void vyre__p_unbind(vyre__parser *p, size_t mark) {
  while (p->binding_count > mark) {
    const vyre__binding *binding = &p->bindings[--p->binding_count];
    if (p->index && p->now.lexer.file == 0) vyre__index_unbind(p, binding);
    p->symbols.items[binding->symbol].local = binding->previous;
  }
}

void vyre__p_bind_word(vyre__parser *p, const vyre__token *name) {
  if (name->kind != VYRE__T_NAME || !name->symbol) return; /* a keyword */
  vyre__p_bind(p, name, VYRE__BIND_WRONG, 0);
}

/* Returns the declared name most similar to @p name. */
static vyre__guess nearest(const vyre__parser *p, const vyre__token *name,
                           bool is_call) {
  const vyre__symbol *own = vyre__p_symbol(p, name);
  vyre__guess guess = vyre__guess_begin(own->text, own->length);
  for (size_t i = 1; i < p->symbols.count; i++) {
    const vyre__symbol *symbol = &p->symbols.items[i];
    bool known =
        symbol->local || symbol->word == VYRE__WORD_OP ||
        symbol->word == VYRE__WORD_FLOAT || symbol->word == VYRE__WORD_ATOMIC ||
        (is_call && (symbol->word != VYRE__WORD_PLAIN || symbol->value));
    if (symbol->item && !vyre__p_is_hidden(p, (uint32_t)i)) {
      known = known || p->items[symbol->item - 1].kind != VYRE__T_KERNEL;
    }
    if (known && symbol != own) {
      vyre__guess_try(&guess, symbol->text, symbol->length);
    }
  }
  return guess;
}

/* Returns the fix for an undeclared name that is similar to no other. */
static const char *undeclared_fix(const vyre__parser *p, unsigned next) {
  if (next == VYRE__T_LPAREN) return "declare a fn with this name";
  if (next != VYRE__T_LBRACKET) return "declare it first: let name = value;";
  return p->ir.kernel ? "declare a buffer in the kernel's header: "
                        "buffer name : read_write u32[] @0;"
                      : "give the fn a parameter for the element, and call it "
                        "with buffer[i]";
}

vyre__id vyre__p_unknown(vyre__parser *p, const vyre__token *name,
                         unsigned next) {
  const vyre__symbol *symbol = vyre__p_symbol(p, name);
  bool is_call = next == VYRE__T_LPAREN;
  /* Searching for similar names is slow in a file with many names. */
  bool wanted =
      vyre__diagnostics_wants(p->diagnostics, name->line, name->column);
  const bool is_type = vyre__foreign_type(symbol->text, symbol->length) != NULL;
  if (is_type && p->wrong_calls > 0) return 0; /* sizeof(float) */
  if (!p->now.panic) {
    char fix[VYRE__FIX_TEXT];
    if (symbol->import) {
      snprintf(fix, sizeof fix, "write %.*s.name, with a name that it declares",
               (int)symbol->length, symbol->text);
    } else if (!(wanted && vyre__p_import_fix(p, name, fix, sizeof fix)) &&
               !vyre__p_foreign_value(p, name, next, fix)) {
      vyre__guess guess = {.best = NULL};
      if (wanted) guess = nearest(p, name, is_call);
      if (guess.best) {
        vyre__p_edit(p, vyre__p_span(name), "%.*s", (int)guess.best_length,
                     guess.best);
      }
      vyre__p_did_you_mean(&guess, undeclared_fix(p, next), fix);
    }
    vyre__p_error(p, vyre__p_span(name), "V030", fix,
                  symbol->import ? "'%.*s' is an imported file, not a value"
                  : is_call      ? "function '%.*s' is not declared"
                                 : "'%.*s' is not declared",
                  (int)symbol->length, symbol->text);
  }
  /* Report each name once. */
  if (name->symbol && !symbol->local) {
    vyre__p_bind(p, name, VYRE__BIND_WRONG, 0);
  }
  return 0;
}
