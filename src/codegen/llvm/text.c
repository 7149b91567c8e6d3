/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits lines of LLVM IR. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

static const char *const names[LL_TYPES] = {"i1",  "i8",    "i16",    "i32",
                                            "i64", "float", "double", "ptr"};
static const uint8_t bytes_of[LL_TYPES] = {4, 1, 2, 4, 8, 4, 8, 8};

unsigned ll_type(unsigned type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return LL_I1;
    case VYRE_TYPE_U64:
      return LL_I64;
    case VYRE_TYPE_F32:
      return LL_F32;
    case VYRE_TYPE_F64:
      return LL_F64;
    default:
      return LL_I32;
  }
}

unsigned ll_memory_type(unsigned width) {
  return width == 1   ? LL_I8
         : width == 2 ? LL_I16
         : width == 8 ? LL_I64
                      : LL_I32;
}

unsigned ll_bytes(unsigned type) {
  return bytes_of[type & LL_NARROW_MASK];
}

unsigned ll_storage_type(unsigned type) {
  return type == LL_I1 ? LL_I32 : type;
}

/* --- pieces of text -------------------------------------------------------------*/

static void put(ll *e, const char *text, size_t length) {
  ll_text *to = e->to;
  if (!vyre__reserve(e->allocator, &to->bytes, &to->capacity,
                     to->length + length + 1, 1, false)) {
    e->no_memory = true;
    return;
  }
  memcpy(to->bytes + to->length, text, length);
  to->length += length;
  to->bytes[to->length] = '\0';
}

static void put_string(ll *e, const char *text) {
  put(e, text, strlen(text));
}

static void put_number(ll *e, uint64_t number) {
  char digits[24];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  put(e, digits + at, sizeof digits - at);
}

static void put_hex(ll *e, uint64_t bits) {
  char text[18] = "0x";
  for (unsigned i = 0; i < 16; i++) {
    text[2 + i] = "0123456789ABCDEF"[bits >> (60 - 4 * i) & 15];
  }
  put(e, text, sizeof text);
}

/* LLVM prints a float as the double of the same value. */
static uint64_t widen_bits(uint32_t bits) {
  uint64_t sign = (uint64_t)(bits >> 31) << 63, low = bits & 0x7FFFFF;
  if ((bits & 0x7F800000) == 0x7F800000) {
    return sign | UINT64_C(0x7FF) << 52 | low << 29;
  }
  float f;
  double d;
  memcpy(&f, &bits, sizeof f);
  d = f;
  memcpy(&low, &d, sizeof low);
  return low;
}

static void put_constant(ll *e, unsigned type, uint64_t bits) {
  switch (type) {
    case LL_I1:
      put_string(e, bits ? "true" : "false");
      break;
    case LL_F32:
      put_hex(e, widen_bits((uint32_t)bits));
      break;
    case LL_F64:
      put_hex(e, bits);
      break;
    case LL_I8:
      put_number(e, bits & 0xFF);
      break;
    case LL_I16:
      put_number(e, bits & 0xFFFF);
      break;
    case LL_I32:
      put_number(e, bits & UINT32_MAX);
      break;
    default:
      put_number(e, bits);
  }
}

static void put_type(ll *e, unsigned type) {
  put_string(e, type & LL_VEC && e->width > 1
                    ? e->vectors[type & LL_NARROW_MASK]
                    : names[type & LL_NARROW_MASK]);
}

static void put_operand(ll *e, unsigned type, ll_op op) {
  switch (op.kind) {
    case LL_TEMP:
      put(e, "%v", 2);
      put_number(e, op.id);
      break;
    case LL_NAMED:
      put(e, "%", 1);
      put_string(e, op.name);
      if (op.id != UINT32_MAX) put_number(e, op.id);
      break;
    default:
      if (!(type & LL_VEC) || e->width == 1) {
        put_constant(e, type & LL_NARROW_MASK, op.bits);
      } else if (op.bits == 0) {
        put_string(e, "zeroinitializer");
      } else {
        put_string(e, "splat (");
        put_string(e, names[type & LL_NARROW_MASK]);
        put(e, " ", 1);
        put_constant(e, type & LL_NARROW_MASK, op.bits);
        put(e, ")", 1);
      }
  }
}

static void put_label(ll *e, uint32_t label) {
  put(e, "%b", 2);
  put_number(e, label);
}

void ll_vprint(ll *e, const char *format, va_list args) {
  while (*format) {
    size_t plain = strcspn(format, "%");
    put(e, format, plain);
    format += plain;
    if (!*format) return;
    unsigned type;
    switch (format[1]) {
      case 't':
        put_type(e, va_arg(args, unsigned));
        break;
      case 'o':
        type = va_arg(args, unsigned);
        put_type(e, type);
        put(e, " ", 1);
        put_operand(e, type, va_arg(args, ll_op));
        break;
      case 'v':
        type = va_arg(args, unsigned);
        put_operand(e, type, va_arg(args, ll_op));
        break;
      case 'b':
        put_label(e, va_arg(args, uint32_t));
        break;
      case 'u':
        put_number(e, va_arg(args, unsigned));
        break;
      case 'l':
        put_number(e, va_arg(args, uint64_t));
        break;
      case 's':
        put_string(e, va_arg(args, const char *));
        break;
      default: /* %% */
        put(e, "%", 1);
    }
    format += 2;
  }
}

void ll_print(ll *e, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ll_vprint(e, format, args);
  va_end(args);
}

ll_op ll_def(ll *e, const char *format, ...) {
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  put(e, " %v", 3);
  put_number(e, op.id);
  put(e, " = ", 3);
  va_list args;
  va_start(args, format);
  ll_vprint(e, format, args);
  va_end(args);
  put(e, "\n", 1);
  return op;
}

void ll_do(ll *e, const char *format, ...) {
  put(e, " ", 1);
  va_list args;
  va_start(args, format);
  ll_vprint(e, format, args);
  va_end(args);
  put(e, "\n", 1);
}

ll_op ll_alloca(ll *e, unsigned type, uint64_t count, unsigned align) {
  ll_text *was = e->to;
  ll_op op;
  e->to = &e->entry;
  if (count == 1) {
    op = ll_def(e, "alloca %t", type);
  } else {
    op = ll_def(e, "alloca [%l x %t], align %u", count, type, align);
  }
  e->to = was;
  return op;
}

/* --- blocks -----------------------------------------------------------------------*/

uint32_t ll_label(ll *e) {
  return e->labels++;
}

void ll_br(ll *e, uint32_t label) {
  if (!e->is_open) return;
  ll_do(e, "br label %b", label);
  e->is_open = false;
}

void ll_cond(ll *e, ll_op condition, uint32_t yes, uint32_t no) {
  if (!e->is_open) return;
  if (condition.kind == LL_CONST) {
    ll_br(e, condition.bits ? yes : no);
    return;
  }
  ll_do(e, "br i1 %v, label %b, label %b", LL_I1, condition, yes, no);
  e->is_open = false;
}

void ll_branch_likely(ll *e, ll_op condition, uint32_t yes, uint32_t no) {
  if (!e->is_open) return;
  if (condition.kind == LL_CONST) {
    ll_br(e, condition.bits ? yes : no);
    return;
  }
  ll_do(e, "br i1 %v, label %b, label %b, !prof !0", LL_I1, condition, yes, no);
  e->is_open = false;
}

void ll_place(ll *e, uint32_t label) {
  ll_br(e, label);
  ll_print(e, "b%u:\n", label);
  e->is_open = true;
}
