/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Helpers for tests of compiled code: hand-written kernels, a growing byte
 * array, and redirection of standard error. */
#ifndef VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_TESTING_H
#define VYRE_BACKEND_CPU_JIT_LLVM_COMPILE_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"

typedef struct code_bytes {
  char *data;
  size_t size;
} code_bytes;

static inline bool code_write(void *self, const char *text, size_t length) {
  code_bytes *to = self;
  char *data = realloc(to->data, to->size + length + 1);
  if (!data) return false;
  to->data = data;
  memcpy(to->data + to->size, text, length);
  to->size += length;
  to->data[to->size] = '\0';
  return true;
}

static inline vyre_writer code_writer(code_bytes *to) {
  return (vyre_writer){code_write, to};
}

/* Supported by every machine that runs these tests. */
#define CODE_CPU      "x86-64"
#define CODE_FEATURES "+sse4.2,+popcnt,+cx16"

/* Element i of the first buffer becomes i * 3 plus an entry of a constant
 * table. Workgroups of 4. */
static const char code_kernel[] =
    "@table = internal unnamed_addr constant [4 x i32] [i32 7, i32 11, i32 13, "
    "i32 17], align 16\n"
    "define i32 @phase0(ptr %launch, i64 %first, i64 %count, ptr %scratch) {\n"
    "entry:\n"
    "  %view = getelementptr i8, ptr %launch, i64 32\n"
    "  %data = load ptr, ptr %view, align 8\n"
    "  %end = add i64 %first, %count\n"
    "  br label %loop\n"
    "loop:\n"
    "  %g = phi i64 [ %first, %entry ], [ %next, %loop ]\n"
    "  %base = mul i64 %g, 4\n"
    "  %low = trunc i64 %base to i32\n"
    "  %b = insertelement <4 x i32> poison, i32 %low, i32 0\n"
    "  %s = shufflevector <4 x i32> %b, <4 x i32> poison, <4 x i32> "
    "zeroinitializer\n"
    "  %i = add <4 x i32> %s, <i32 0, i32 1, i32 2, i32 3>\n"
    "  %x = mul <4 x i32> %i, <i32 3, i32 3, i32 3, i32 3>\n"
    "  %t = load <4 x i32>, ptr @table, align 16\n"
    "  %y = add <4 x i32> %x, %t\n"
    "  %to = getelementptr i32, ptr %data, i64 %base\n"
    "  store <4 x i32> %y, ptr %to, align 1\n"
    "  %next = add i64 %g, 1\n"
    "  %more = icmp ult i64 %next, %end\n"
    "  br i1 %more, label %loop, label %done\n"
    "done:\n"
    "  ret i32 0\n"
    "}\n";

/* A second phase: a table of addresses, which needs a relocation of data, and
 * memory cleared by a call. */
static const char code_second[] =
    "@one = internal constant i32 21, align 4\n"
    "@two = internal constant i32 42, align 4\n"
    "@both = internal constant [2 x ptr] [ptr @one, ptr @two], align 8\n"
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    "define i32 @phase1(ptr %launch, i64 %first, i64 %count, ptr %scratch) {\n"
    "  %at = getelementptr [2 x ptr], ptr @both, i64 0, i64 %first\n"
    "  %p = load volatile ptr, ptr %at, align 8\n"
    "  %v = load i32, ptr %p, align 4\n"
    "  call void @llvm.memset.p0.i64(ptr %scratch, i8 5, i64 %count, i1 0)\n"
    "  ret i32 %v\n"
    "}\n";

/* Redirects standard error to a file; the end returns the bytes written. */
typedef struct quiet {
  int kept;
  FILE *file;
} quiet;

static inline quiet quiet_begin(void) {
  (void)fflush(stderr);
  quiet q = {dup(2), tmpfile()};
  if (q.file) (void)dup2(fileno(q.file), 2);
  return q;
}

static inline long quiet_end(quiet *q) {
  (void)fflush(stderr);
  if (q->kept >= 0) {
    (void)dup2(q->kept, 2);
    (void)close(q->kept);
  }
  if (!q->file) return -1;
  (void)fseek(q->file, 0, SEEK_END);
  long size = ftell(q->file);
  (void)fclose(q->file);
  return size;
}

#endif
