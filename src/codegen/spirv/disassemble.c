/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a module as text, with the names in ops.def. */
#include <string.h>

#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "codegen/spirv/internal.h"

typedef struct op_row {
  uint16_t number;
  const char *name, *operands;
} op_row;

static const op_row op_rows[] = {
#define SPV_OP(name, number, operands) {(number), "Op" #name, (operands)},
#define SPV_ENUM(kind, name, number)
#include "codegen/spirv/ops.def"
#undef SPV_OP
#undef SPV_ENUM
};

typedef enum enum_kind {
  CAPABILITY,
  ADDRESSING,
  MEMORY_MODEL,
  EXECUTION_MODEL,
  EXECUTION_MODE,
  STORAGE,
  DECORATION,
  BUILTIN,
  MEMORY_ACCESS,
  GLSL,
} enum_kind;

static const struct enum_row {
  uint8_t kind;
  uint16_t number;
  const char *name;
} enum_rows[] = {
#define SPV_OP(name, number, operands)
#define SPV_ENUM(kind, name, number) {(kind), (number), #name},
#include "codegen/spirv/ops.def"
#undef SPV_OP
#undef SPV_ENUM
};

/* Names and types of an id. */
typedef struct id_note {
  uint32_t name; /* word index of its OpName text; 0: none */
  uint32_t text; /* OpString: word index of its text */
  uint32_t type; /* word index of its OpType if it is a simple one; 0: none */
} id_note;

typedef struct dump {
  vyre__printer out;
  const uint32_t *words;
  size_t count;
  id_note *notes;
  uint32_t bound; /* upper bound of ids */
  const char *problem;
  size_t at; /* word index of the instruction */
  unsigned depth;
} dump;

static const op_row *row_of(uint32_t op) {
  for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++) {
    if (op_rows[i].number == op) return &op_rows[i];
  }
  return NULL;
}

static const char *enum_name(enum_kind kind, uint32_t number) {
  for (size_t i = 0; i < sizeof enum_rows / sizeof enum_rows[0]; i++) {
    if (enum_rows[i].kind == kind && enum_rows[i].number == number) {
      return enum_rows[i].name;
    }
  }
  return NULL;
}

/* --- ids ------------------------------------------------------------------ */

static char text_byte(const dump *d, size_t word, size_t i) {
  return (char)(d->words[word + i / 4] >> (8 * (i % 4)));
}

/* Returns the number of words of the text at @p word; 0 if it has no end. */
static size_t text_words(const dump *d, size_t word, size_t end) {
  for (size_t i = 0; word + i / 4 < end; i++) {
    if (text_byte(d, word, i) == '\0') return i / 4 + 1;
  }
  return 0;
}

static bool is_plain_name(const dump *d, size_t word) {
  for (size_t i = 0;; i++) {
    char c = text_byte(d, word, i);
    if (c == '\0') return i > 0;
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && c != '_' && (c < '0' || c > '9')) return false;
  }
}

static void print_text(dump *d, size_t word) {
  for (size_t i = 0; text_byte(d, word, i) != '\0'; i++) {
    char c = text_byte(d, word, i);
    if (c == '"' || c == '\\') vyre__print(&d->out, "\\");
    vyre__print(&d->out, "%c", (unsigned char)c < ' ' ? '?' : c);
  }
}

/* Prints simple types by description, named ids by name and number. */
static void print_id(dump *d, uint32_t id) {
  const id_note *note = id < d->bound ? &d->notes[id] : NULL;
  if (!note) {
    d->problem = "an id at or above the bound";
    return;
  }
  if (note->type && (d->words[note->type] & 0xFFFF) <= SPV_OpTypeFloat) {
    uint32_t op = d->words[note->type] & 0xFFFF;
    uint32_t bits = op >= SPV_OpTypeInt ? d->words[note->type + 2] : 0;
    if (op == SPV_OpTypeVoid) vyre__print(&d->out, "%%void");
    if (op == SPV_OpTypeBool) vyre__print(&d->out, "%%bool");
    if (op == SPV_OpTypeInt) vyre__print(&d->out, "%%u%u", (unsigned)bits);
    if (op == SPV_OpTypeFloat) vyre__print(&d->out, "%%f%u", (unsigned)bits);
  } else if (note->name && is_plain_name(d, note->name)) {
    vyre__print(&d->out, "%%");
    print_text(d, note->name);
    vyre__print(&d->out, "_%u", (unsigned)id);
  } else {
    vyre__print(&d->out, "%%%u", (unsigned)id);
  }
}

/* --- operands ------------------------------------------------------------- */

static void print_enum(dump *d, enum_kind kind, uint32_t number) {
  const char *name = enum_name(kind, number);
  if (name) {
    vyre__print(&d->out, " %s", name);
  } else {
    d->problem = "an enumerant that is not in the table";
  }
}

static void print_access(dump *d, uint32_t mask) {
  const char *between = " ";
  for (uint32_t bit = 1; bit && bit <= mask; bit <<= 1) {
    if (!(mask & bit)) continue;
    const char *name = enum_name(MEMORY_ACCESS, bit);
    if (!name) d->problem = "an access that is not in the table";
    vyre__print(&d->out, "%s%s", between, name ? name : "?");
    between = "|";
  }
}

/* Prints all bits in hexadecimal. Infinities and NaNs have an exponent out of
 * range. */
static void print_float(dump *d, uint64_t bits, unsigned width) {
  unsigned digits = width == 32 ? 23 : 52;
  int bias = width == 32 ? 127 : 1023;
  uint64_t fraction = bits & ((UINT64_C(1) << digits) - 1);
  int exponent = (int)(bits >> digits) & (2 * bias + 1);
  const char *sign = bits >> (width - 1) & 1 ? "-" : "";
  char text[16];
  unsigned count = 0;
  bool is_zero = exponent == 0 && fraction == 0;
  if (exponent == 0 && fraction != 0) { /* normalised, as other tools print
                                         * it */
    for (exponent = 1; !(fraction >> digits & 1); exponent--) fraction <<= 1;
    fraction &= (UINT64_C(1) << digits) - 1;
  }
  for (uint64_t rest = fraction << (64 - digits); rest != 0; rest <<= 4) {
    text[count++] = "0123456789abcdef"[rest >> 60];
  }
  text[count] = '\0';
  vyre__print(&d->out, " %s0x%d%s%sp%+d", sign, !is_zero, count ? "." : "",
              text, is_zero ? 0 : exponent - bias);
}

static void print_constant(dump *d, uint32_t type, const uint32_t *from,
                           size_t count) {
  uint32_t at = type < d->bound ? d->notes[type].type : 0;
  uint32_t op = at ? d->words[at] & 0xFFFF : 0;
  if ((op != SPV_OpTypeInt && op != SPV_OpTypeFloat) ||
      count != (d->words[at + 2] > 32 ? 2u : 1u)) {
    d->problem = "a constant that is not of its type";
    return;
  }
  uint64_t bits = from[0] | (count > 1 ? (uint64_t)from[1] << 32 : 0);
  if (op == SPV_OpTypeFloat) {
    print_float(d, bits, d->words[at + 2]);
  } else {
    vyre__print(&d->out, " %llu", (unsigned long long)bits);
  }
}

static bool enum_of_letter(char letter, enum_kind *kind) {
  static const char letters[] = "CamXMKDG";
  static const uint8_t kinds[] = {
      CAPABILITY,     ADDRESSING, MEMORY_MODEL, EXECUTION_MODEL,
      EXECUTION_MODE, STORAGE,    DECORATION,   GLSL};
  const char *found = strchr(letters, letter);
  if (!found) return false;
  *kind = (enum_kind)kinds[found - letters];
  return true;
}

/* Prints one operand at d->words[*at]; T and R are printed before. */
static void print_operand(dump *d, char letter, size_t *at, size_t end) {
  uint32_t word = d->words[*at];
  enum_kind kind;
  size_t took = 1;
  if (letter == 'I' || letter == 'i') {
    vyre__print(&d->out, " ");
    print_id(d, word);
  } else if (letter == 'S') {
    took = text_words(d, *at, end);
    if (!took) d->problem = "a text without end";
    vyre__print(&d->out, " \"");
    if (took) print_text(d, *at);
    vyre__print(&d->out, "\"");
  } else if (letter == 'V') {
    took = end - *at;
    print_constant(d, d->words[d->at + 1], d->words + *at, took);
  } else if (letter == 'A') {
    print_access(d, word);
  } else if (letter == '0') {
    vyre__print(&d->out, " None");
    if (word != 0) d->problem = "a control mask";
  } else if (enum_of_letter(letter, &kind)) {
    print_enum(d, kind, word);
    if (letter == 'D' && word == SPV_DECORATION_BuiltIn && *at + 1 < end) {
      print_enum(d, BUILTIN, d->words[*at + 1]);
      took = 2;
    }
  } else {
    vyre__print(&d->out, " %u", (unsigned)word);
  }
  *at += took ? took : end - *at;
}

static bool is_repeated(char letter) {
  return letter == 'i' || letter == 'l';
}

/* --- instructions --------------------------------------------------------- */

static void print_line(dump *d) {
  uint32_t file = d->words[d->at + 1];
  uint32_t text = file < d->bound ? d->notes[file].text : 0;
  vyre__print(&d->out, "%s; ", d->depth ? "  " : "");
  if (text && text_byte(d, text, 0)) {
    print_text(d, text);
    vyre__print(&d->out, ":%u\n", (unsigned)d->words[d->at + 2]);
  } else {
    vyre__print(&d->out, "line %u\n", (unsigned)d->words[d->at + 2]);
  }
}

static void print_op(dump *d, const op_row *row, size_t end) {
  const char *letters = row->operands;
  size_t at = d->at + 1, result = 0;
  for (const char *l = letters; *l == 'T' || *l == 'R'; l++) {
    if (*l == 'R') result = at;
    at++;
  }
  if (at > end) {
    d->problem = "an instruction that is too short";
    return;
  }
  bool is_edge = row->number == SPV_OpLabel || row->number == SPV_OpFunction ||
                 row->number == SPV_OpFunctionEnd;
  if (d->depth && !is_edge) vyre__print(&d->out, "  ");
  if (result) {
    print_id(d, d->words[result]);
    vyre__print(&d->out, " = ");
  }
  vyre__print(&d->out, "%s", row->name);
  if (letters[0] == 'T') {
    vyre__print(&d->out, " ");
    print_id(d, d->words[d->at + 1]);
  }
  while (*letters == 'T' || *letters == 'R') letters++;
  for (; *letters && !d->problem; letters++) {
    bool is_optional = is_repeated(*letters) || *letters == 'A';
    if (at >= end && !is_optional) {
      d->problem = "an instruction that is too short";
    }
    while (at < end && !d->problem) {
      print_operand(d, *letters, &at, end);
      if (!is_repeated(*letters)) break;
    }
  }
  if (at < end && !d->problem) d->problem = "an instruction that is too long";
  vyre__print(&d->out, "\n");
}

/* Visits all instructions. With @p prints false it collects names and types. */
static void walk(dump *d, bool prints) {
  size_t size;
  for (d->at = SPV_HEADER; d->at < d->count && !d->problem; d->at += size) {
    const uint32_t *words = d->words + d->at;
    uint32_t op = words[0] & 0xFFFF;
    const op_row *row = row_of(op);
    size = words[0] >> 16;
    if (!row || size == 0 || size > d->count - d->at) {
      d->problem = "an instruction that is not in the table";
      return;
    }
    bool has_text = op == SPV_OpName || op == SPV_OpString;
    bool is_type = op >= SPV_OpTypeVoid && op <= SPV_OpTypeFloat;
    if (prints && op == SPV_OpLine && size == 4) {
      print_line(d);
    } else if (prints) {
      if (op == SPV_OpFunction) d->depth = 1;
      print_op(d, row, d->at + size);
    } else if ((has_text || is_type) && size > 1) {
      if (words[1] >= d->bound ||
          (has_text && !text_words(d, d->at + 2, d->at + size)) ||
          (op >= SPV_OpTypeInt && is_type && size < 3)) {
        d->problem = "an invalid name, text or type";
        return;
      }
      id_note *note = &d->notes[words[1]];
      if (op == SPV_OpName) note->name = (uint32_t)d->at + 2;
      if (op == SPV_OpString) note->text = (uint32_t)d->at + 2;
      if (is_type) note->type = (uint32_t)d->at;
    }
  }
}

static vyre_code fail_at_word(const dump *d, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"word", d->at}, {"words", d->count}),
      "pass the words of a module from vyre__emit_spirv",
      "word %llu of %llu begins %s: the printer cannot read it",
      (unsigned long long)d->at, (unsigned long long)d->count, d->problem);
}

vyre_code vyre__spirv_print(const uint32_t *words, size_t count,
                            vyre_allocator allocator, vyre_writer writer,
                            vyre_status *st) {
  dump d = {.out = vyre__printer_make(writer), .words = words, .count = count};
  size_t capacity = 0;
  if (count < SPV_HEADER || count > UINT32_MAX || words[0] != SPV_MAGIC ||
      words[3] > count) {
    d.problem = "no module";
    return fail_at_word(&d, st);
  }
  d.bound = words[3];
  if (!vyre__reserve(allocator, &d.notes, &capacity, (size_t)d.bound + 1,
                     sizeof *d.notes, true)) {
    return vyre__no_memory(st, "vyre__spirv_print", "ids", d.bound);
  }
  memset(d.notes, 0, ((size_t)d.bound + 1) * sizeof *d.notes);
  walk(&d, false);
  vyre__print(&d.out, "; SPIR-V %u.%u, %u ids, %llu words\n",
              (unsigned)(words[1] >> 16 & 0xFF),
              (unsigned)(words[1] >> 8 & 0xFF), (unsigned)d.bound - 1,
              (unsigned long long)count);
  if (!d.problem) walk(&d, true);
  vyre__reserve_free(allocator, &d.notes, &capacity, sizeof *d.notes);
  if (d.problem) return fail_at_word(&d, st);
  if (d.out.ok) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "return true from the writer for the full text",
                   "vyre__spirv_print: the writer failed");
}

vyre_code vyre__spirv_write(const vyre__spirv_module *module, bool is_text,
                            vyre_allocator allocator, vyre_writer writer,
                            vyre_status *st) {
  if (is_text) {
    return vyre__spirv_print(module->words, module->word_count, allocator,
                             writer, st);
  }
  for (size_t i = 0; i < module->word_count; i++) {
    uint32_t word = module->words[i];
    const char bytes[4] = {(char)word, (char)(word >> 8), (char)(word >> 16),
                           (char)(word >> 24)};
    if (writer.write(writer.self, bytes, 4)) continue;
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                     "return true from the writer for the full module",
                     "the writer refused word %zu of a SPIR-V module of %zu", i,
                     module->word_count);
  }
  return VYRE_OK;
}
