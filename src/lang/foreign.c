/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/foreign.h"

#include <string.h>

#include "ir/ir.h"

/* --- types -----------------------------------------------------------------*/

/* A type of another language, as a value and as an element in memory. */
typedef struct type_row {
  const char *name, *value, *element;
} type_row;

static const type_row types[] = {
    {"int", "i32", "i32"},
    {"unsigned", "u32", "u32"},
    {"uint", "u32", "u32"},
    {"signed", "i32", "i32"},
    {"short", "i32", "i16"},
    {"char", "i32", "i8"},
    {"long", "i64", "i64"},
    {"ulong", "u64", "u64"},
    {"ushort", "u32", "u16"},
    {"uchar", "u32", "u8"},
    {"size_t", "u64", "u64"},
    {"float", "f32", "f32"},
    {"double", "f64", "f64"},
    {"half", "f32", "f16"},
    {"int8_t", "i32", "i8"},
    {"int16_t", "i32", "i16"},
    {"int32_t", "i32", "i32"},
    {"int64_t", "i64", "i64"},
    {"uint8_t", "u32", "u8"},
    {"uint16_t", "u32", "u16"},
    {"uint32_t", "u32", "u32"},
    {"uint64_t", "u64", "u64"},
    {"_Bool", "bool", "bool"},
    {"float32_t", "f32", "f32"},
    {"float64_t", "f64", "f64"},
    {"float16_t", "f32", "f16"},
    {"ptrdiff_t", "i64", "i64"},
    {"__half", "f32", "f16"},
    {"int8", "i32", "i8"},
    {"int16", "i32", "i16"},
    {"int32", "i32", "i32"},
    {"int64", "i64", "i64"},
    {"uint8", "u32", "u8"},
    {"uint16", "u32", "u16"},
    {"uint32", "u32", "u32"},
    {"uint64", "u64", "u64"},
    {"__nv_bfloat16", "f32", "bf16"},
};

/* Names of vectors without the number of components at the end. */
static const type_row vector_stems[] = {
    {"float", "f32x", "f32x"},     {"double", "f64x", "f64x"},
    {"int", "i32x", "i32x"},       {"uint", "u32x", "u32x"},
    {"long", "i64x", "i64x"},      {"ulong", "u64x", "u64x"},
    {"longlong", "i64x", NULL},    {"ulonglong", "u64x", NULL},
    {"char", "i32x", "i8x"},       {"uchar", "u32x", "u8x"},
    {"short", "i32x", "i16x"},     {"ushort", "u32x", "u16x"},
    {"half", "f32x", "f16x"},      {"bool", "boolx", NULL},
    {"vec", "f32x", "f32x"},       {"dvec", "f64x", "f64x"},
    {"ivec", "i32x", "i32x"},      {"uvec", "u32x", "u32x"},
    {"bvec", "boolx", NULL},       {"make_float", "f32x", NULL},
    {"make_int", "i32x", NULL},    {"make_uint", "u32x", NULL},
    {"make_double", "f64x", NULL},
};

/* Types of a vector; the text form writes them as one word. */
static const char *const vectors[] = {
    "boolx2", "boolx3", "boolx4", "u32x2", "u32x3", "u32x4", "i32x2", "i32x3",
    "i32x4",  "u64x2",  "u64x3",  "u64x4", "i64x2", "i64x3", "i64x4", "f32x2",
    "f32x3",  "f32x4",  "f64x2",  "f64x3", "f64x4", "u8x2",  "u8x3",  "u8x4",
    "i8x2",   "i8x3",   "i8x4",   "u16x2", "u16x3", "u16x4", "i16x2", "i16x3",
    "i16x4",  "f16x2",  "f16x3",  "f16x4",
};

static bool is_text(const char *name, size_t length, const char *text) {
  return strlen(text) == length && memcmp(name, text, length) == 0;
}

/* Returns the vector type with this stem and number of components. */
static const char *find_vector(const char *stem, char components) {
  const size_t length = strlen(stem);
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
    if (strlen(vectors[i]) == length + 1 &&
        memcmp(vectors[i], stem, length) == 0 &&
        vectors[i][length] == components) {
      return vectors[i];
    }
  }
  return NULL;
}

/* Finds float4, vec4, vec4f and the like. */
static const char *foreign_vector(const char *name, size_t length,
                                  bool element) {
  const char last = name[length - 1];
  if (length == 5 && memcmp(name, "vec", 3) == 0 && name[3] >= '2' &&
      name[3] <= '4') { /* WGSL: vec4f */
    const char *stem = last == 'f'   ? "f32x"
                       : last == 'i' ? "i32x"
                       : last == 'u' ? "u32x"
                                     : NULL;
    return stem ? find_vector(stem, name[3]) : NULL;
  }
  if (length < 2 || last < '2' || last > '4') return NULL;
  for (size_t i = 0; i < sizeof vector_stems / sizeof vector_stems[0]; i++) {
    const type_row *row = &vector_stems[i];
    if (!is_text(name, length - 1, row->name)) continue;
    const char *stem = element ? row->element : row->value;
    return stem ? find_vector(stem, last) : NULL;
  }
  return NULL;
}

static const char *find_type(const char *name, size_t length, bool element) {
  if (length == 0) return NULL;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (is_text(name, length, types[i].name)) {
      return element ? types[i].element : types[i].value;
    }
  }
  return foreign_vector(name, length, element);
}

const char *vyre__foreign_type(const char *name, size_t length) {
  return find_type(name, length, false);
}

const char *vyre__foreign_element(const char *name, size_t length) {
  return find_type(name, length, true);
}

/* --- words -----------------------------------------------------------------*/

/* A function with another name and the same arguments. */
#define ONE(theirs, ours)   {theirs, "use " ours "(x)", ours, 0}
#define TWO(theirs, ours)   {theirs, "use " ours "(x, y)", ours, 0}
#define THREE(theirs, ours) {theirs, "use " ours "(x, y, z)", ours, 0}
/* A value with another name. */
#define SAME(theirs, ours) {theirs, "use " ours, ours, 0}
/* An instruction without an edit. */
#define HINT(theirs, fix) {theirs, fix, NULL, 0}
/* A word that may be removed. */
#define DROP(theirs, kind)   {theirs, "remove it", "", VYRE__FOREIGN_##kind}
#define ATOMIC(theirs, ours) {theirs, "use " ours "(buffer[i], value)", ours, 0}
#define BARRIER(theirs)      {theirs, "use barrier();", "barrier", 0}
#define SUM_FIX                                                                \
  "use reduce_add(x), the sum over the workgroup; it counts as a barrier, so " \
  "call it where all invocations arrive"
#define SUBGROUP(theirs)                                                      \
  {theirs,                                                                    \
   "store the value to shared memory, write barrier();, and read the values " \
   "of others; barrier(); again before the next store",                       \
   NULL, 0}

static const vyre__foreign words[] = {
    /* words of C and of other languages */
    HINT("goto", "use break, continue or return"),
    HINT("class", "declare a struct"),
    HINT("union", "use as_u32(x), as_f32(x) and so on to reinterpret bits"),
    HINT("typedef", "use the types of the language, such as u32, i32 and f32"),
    HINT("using", "use the types of the language, such as u32, i32 and f32"),
    HINT("alias", "use the types of the language, such as u32, i32 and f32"),
    HINT("enum", "write const NAME = value; for each"),
    HINT("namespace", "remove it: write the declarations without it"),
    HINT("template", "write one fn for each type, with its own name"),
    HINT("typename", "write one fn for each type, with its own name"),
    HINT("operator", "write a fn, and call it by its name"),
    HINT("extern", "remove it: a program is one file"),
    HINT("void", "remove the result"),
    HINT("NULL", "use an index; the language has no pointers"),
    HINT("nullptr", "use an index; the language has no pointers"),
    HINT("printf", "use print(...) with strings and values"),
    HINT("debugPrintfEXT", "use print(...) with strings and values"),
    HINT("assert", "write if (!condition) return;"),
    HINT("asm", "write it with operators and functions of the language"),
    HINT("__asm__", "write it with operators and functions of the language"),
    HINT("malloc",
         "declare memory in the kernel's header: buffer x : "
         "read_write f32[] @0;"),
    HINT("function", "write fn name(a: f32) -> f32 { ... }"),
    HINT("def", "write fn name(a: f32) -> f32 { ... }"),
    HINT("func", "write fn name(a: f32) -> f32 { ... }"),
    HINT("ptr", "pass the value instead of a pointer"),
    HINT("mut", "write var x = value;"),
    HINT("elif", "write else if"),
    HINT("elseif", "write else if"),
    {"loop", "write while (true) { ... }", "while (true)", 0},
    HINT("discard", "write return;"),
    HINT("foreach",
         "remove the loop: each invocation has its own global_id.x "
         "and takes one element"),
    SAME("True", "true"),
    SAME("False", "false"),
    {"and", "write &&", "&&", 0},
    {"or", "write ||", "||", 0},
    {"not", "write !", "!", 0},
    DROP("static", QUALIFIER),
    DROP("volatile", QUALIFIER),
    DROP("register", QUALIFIER),
    DROP("restrict", QUALIFIER),
    DROP("__restrict__", QUALIFIER),
    DROP("__restrict", QUALIFIER),
    DROP("varying", QUALIFIER),
    DROP("highp", QUALIFIER),
    DROP("mediump", QUALIFIER),
    DROP("lowp", QUALIFIER),
    DROP("__private", QUALIFIER),
    DROP("private", QUALIFIER),
    DROP("thread", QUALIFIER),
    DROP("in", QUALIFIER),
    DROP("precise", QUALIFIER),
    DROP("coherent", QUALIFIER),
    DROP("readonly", QUALIFIER),
    DROP("writeonly", QUALIFIER),
    {"constexpr", "write const NAME = value;", NULL, VYRE__FOREIGN_QUALIFIER},
    {"inline", "remove it: all calls are inlined", "", VYRE__FOREIGN_FUNCTION},
    {"__inline__", "remove it: all calls are inlined", "",
     VYRE__FOREIGN_FUNCTION},
    {"__forceinline__", "remove it: all calls are inlined", "",
     VYRE__FOREIGN_FUNCTION},
    {"__device__", "write fn name(a: f32) -> f32 { ... }", NULL,
     VYRE__FOREIGN_FUNCTION},
    {"__host__", "write fn name(a: f32) -> f32 { ... }", NULL,
     VYRE__FOREIGN_FUNCTION},
    /* memory */
    {"__shared__", "declare it in the kernel's header: shared tile : f32[64];",
     NULL, VYRE__FOREIGN_SHARED},
    {"__local", "declare it in the kernel's header: shared tile : f32[64];",
     NULL, VYRE__FOREIGN_SHARED},
    {"local", "declare it in the kernel's header: shared tile : f32[64];", NULL,
     VYRE__FOREIGN_SHARED},
    {"groupshared", "declare it in the kernel's header: shared tile : f32[64];",
     NULL, VYRE__FOREIGN_SHARED},
    {"threadgroup", "declare it in the kernel's header: shared tile : f32[64];",
     NULL, VYRE__FOREIGN_SHARED},
    {"__global", "declare it in the kernel's header: buffer x : read f32[] @0;",
     NULL, VYRE__FOREIGN_GLOBAL},
    {"global", "declare it in the kernel's header: buffer x : read f32[] @0;",
     NULL, VYRE__FOREIGN_GLOBAL},
    {"device", "declare it in the kernel's header: buffer x : read f32[] @0;",
     NULL, VYRE__FOREIGN_GLOBAL},
    {"__constant",
     "declare it in the kernel's header: uniform table : f32[3] @0;", NULL,
     VYRE__FOREIGN_CONSTANT},
    {"__constant__",
     "declare it in the kernel's header: uniform table : f32[3] @0;", NULL,
     VYRE__FOREIGN_CONSTANT},
    {"constant",
     "declare it in the kernel's header: uniform table : f32[3] @0;", NULL,
     VYRE__FOREIGN_CONSTANT},
    HINT("StructuredBuffer",
         "declare it in the kernel's header: buffer x : read f32[] @0;"),
    HINT("RWStructuredBuffer",
         "declare it in the kernel's header: buffer x : read_write f32[] @0;"),
    HINT("RWBuffer",
         "declare it in the kernel's header: buffer x : read_write f32[] @0;"),
    HINT("cbuffer",
         "declare each member in the kernel's header: uniform a : f32 @0;"),
    HINT("layout",
         "declare buffers in the kernel's header, as in buffer x : "
         "read f32[] @0;, and its size with workgroup(64)"),
    HINT("precision", "remove it: every operation has one precision"),
    HINT("enable", "remove it"),
    HINT("requires", "remove it"),
    HINT("main", "write kernel main workgroup(64)"),
    {"__kernel", "write kernel name workgroup(64)", NULL, VYRE__FOREIGN_KERNEL},
    {"__global__", "write kernel name workgroup(64)", NULL,
     VYRE__FOREIGN_KERNEL},
    {"export", "write kernel name workgroup(64)", NULL, VYRE__FOREIGN_KERNEL},
    {"task", "write kernel name workgroup(64)", NULL, VYRE__FOREIGN_KERNEL},
    /* ids */
    SAME("threadIdx", "local_id"),
    SAME("blockIdx", "workgroup_id"),
    SAME("blockDim", "workgroup_size"),
    SAME("gridDim", "grid_size"),
    {"get_global_id", "use global_id.%c", "global_id.%c", VYRE__FOREIGN_ID},
    {"get_local_id", "use local_id.%c", "local_id.%c", VYRE__FOREIGN_ID},
    {"get_group_id", "use workgroup_id.%c", "workgroup_id.%c",
     VYRE__FOREIGN_ID},
    {"get_local_size", "use workgroup_size.%c", "workgroup_size.%c",
     VYRE__FOREIGN_ID},
    {"get_num_groups", "use grid_size.%c", "grid_size.%c", VYRE__FOREIGN_ID},
    {"get_global_size", "use grid_size.%c * workgroup_size.%c",
     "(grid_size.%c * workgroup_size.%c)", VYRE__FOREIGN_ID},
    {"get_global_offset", "write 0: a grid begins at 0", "0u",
     VYRE__FOREIGN_ID},
    SAME("gl_GlobalInvocationID", "global_id"),
    SAME("gl_LocalInvocationID", "local_id"),
    SAME("gl_WorkGroupID", "workgroup_id"),
    SAME("gl_WorkGroupSize", "workgroup_size"),
    SAME("gl_NumWorkGroups", "grid_size"),
    HINT("gl_LocalInvocationIndex",
         "use local_id.x, or local_id.y * workgroup_size.x + local_id.x"),
    SAME("global_invocation_id", "global_id"),
    SAME("local_invocation_id", "local_id"),
    HINT("local_invocation_index",
         "use local_id.x, or local_id.y * workgroup_size.x + local_id.x"),
    SAME("num_workgroups", "grid_size"),
    SAME("SV_DispatchThreadID", "global_id"),
    SAME("SV_GroupThreadID", "local_id"),
    SAME("SV_GroupID", "workgroup_id"),
    SAME("programIndex", "local_id.x"),
    SAME("programCount", "workgroup_size.x"),
    SAME("taskIndex", "workgroup_id.x"),
    SAME("taskCount", "grid_size.x"),
    /* barriers */
    BARRIER("__syncthreads"),
    BARRIER("syncthreads"),
    BARRIER("workgroupBarrier"),
    BARRIER("storageBarrier"),
    BARRIER("work_group_barrier"),
    BARRIER("subgroupBarrier"),
    BARRIER("sub_group_barrier"),
    BARRIER("__syncwarp"),
    BARRIER("threadgroup_barrier"),
    BARRIER("memoryBarrierShared"),
    BARRIER("groupMemoryBarrier"),
    BARRIER("GroupMemoryBarrier"),
    BARRIER("GroupMemoryBarrierWithGroupSync"),
    BARRIER("AllMemoryBarrierWithGroupSync"),
    BARRIER("mem_fence"),
    {"__threadfence_block", "use barrier();", "barrier", 0},
    {"__threadfence", "use grid_barrier();", "grid_barrier", 0},
    {"memoryBarrier", "use grid_barrier();", "grid_barrier", 0},
    {"memoryBarrierBuffer", "use grid_barrier();", "grid_barrier", 0},
    {"DeviceMemoryBarrier", "use grid_barrier();", "grid_barrier", 0},
    {"atomic_work_item_fence", "use barrier();", "barrier", 0},
    HINT("this_grid", "use grid_barrier();"),
    HINT("cooperative_groups", "use barrier(); or grid_barrier();"),
    /* atomics */
    ATOMIC("atomicAdd", "atomic_add"),
    ATOMIC("atomicMin", "atomic_min"),
    ATOMIC("atomicMax", "atomic_max"),
    ATOMIC("atomicAnd", "atomic_and"),
    ATOMIC("atomicOr", "atomic_or"),
    ATOMIC("atomicXor", "atomic_xor"),
    ATOMIC("atomicExch", "atomic_exchange"),
    ATOMIC("atomicExchange", "atomic_exchange"),
    ATOMIC("atomicStore", "atomic_store"),
    ATOMIC("atomic_xchg", "atomic_exchange"),
    ATOMIC("atom_add", "atomic_add"),
    ATOMIC("atomic_fetch_add", "atomic_add"),
    ATOMIC("atomic_fetch_min", "atomic_min"),
    ATOMIC("atomic_fetch_max", "atomic_max"),
    ATOMIC("atomic_fetch_or", "atomic_or"),
    ATOMIC("atomic_fetch_and", "atomic_and"),
    ATOMIC("atomic_fetch_xor", "atomic_xor"),
    ATOMIC("atomic_add_global", "atomic_add"),
    ATOMIC("atomic_add_local", "atomic_add"),
    HINT("InterlockedAdd", "use atomic_add(buffer[i], value)"),
    HINT("InterlockedMin", "use atomic_min(buffer[i], value)"),
    HINT("InterlockedMax", "use atomic_max(buffer[i], value)"),
    HINT("InterlockedOr", "use atomic_or(buffer[i], value)"),
    HINT("InterlockedExchange", "use atomic_exchange(buffer[i], value)"),
    HINT("InterlockedCompareExchange",
         "use atomic_compare_exchange(buffer[i], expected, desired)"),
    HINT("atomicSub",
         "use atomic_add(buffer[i], -value) on i32, or "
         "atomic_add(buffer[i], 0 - value) on u32"),
    HINT("atomic_sub",
         "use atomic_add(buffer[i], -value) on i32, or "
         "atomic_add(buffer[i], 0 - value) on u32"),
    HINT("atomic_inc", "use atomic_add(buffer[i], 1)"),
    HINT("atomic_dec",
         "use atomic_add(buffer[i], -1) on i32, or "
         "atomic_add(buffer[i], 0xFFFFFFFF) on u32"),
    HINT("atomicInc", "use atomic_add(buffer[i], 1), and % for the limit"),
    {"atomicCAS", "use atomic_compare_exchange(buffer[i], expected, desired)",
     "atomic_compare_exchange", 0},
    {"atomicCompSwap",
     "use atomic_compare_exchange(buffer[i], expected, desired)",
     "atomic_compare_exchange", 0},
    {"atomic_cmpxchg",
     "use atomic_compare_exchange(buffer[i], expected, desired)",
     "atomic_compare_exchange", 0},
    HINT("atomicCompareExchangeWeak",
         "use atomic_compare_exchange(buffer[i], expected, desired), which "
         "returns the old value"),
    {"atomicLoad", "use atomic_load(buffer[i])", "atomic_load", 0},
    /* subgroups */
    HINT("subgroupAdd", SUM_FIX),
    HINT("subgroup_add", SUM_FIX),
    HINT("sub_group_reduce_add", SUM_FIX),
    ONE("work_group_reduce_add", "reduce_add"),
    ONE("work_group_reduce_min", "reduce_min"),
    ONE("work_group_reduce_max", "reduce_max"),
    ONE("work_group_scan_inclusive_add", "scan_add"),
    ONE("work_group_scan_exclusive_add", "scan_add_before"),
    HINT("WaveActiveSum", SUM_FIX),
    HINT("__reduce_add_sync", SUM_FIX),
    SUBGROUP("subgroupShuffle"),
    SUBGROUP("subgroupShuffleXor"),
    SUBGROUP("subgroupShuffleDown"),
    SUBGROUP("subgroupBroadcast"),
    SUBGROUP("subgroupBroadcastFirst"),
    SUBGROUP("sub_group_broadcast"),
    SUBGROUP("__shfl_sync"),
    SUBGROUP("__shfl_xor_sync"),
    SUBGROUP("__shfl_up_sync"),
    SUBGROUP("__shfl_down_sync"),
    SUBGROUP("__shfl_down"),
    SUBGROUP("__shfl_xor"),
    SUBGROUP("__ballot_sync"),
    SUBGROUP("subgroupBallot"),
    SUBGROUP("__any_sync"),
    SUBGROUP("__all_sync"),
    SUBGROUP("subgroupAny"),
    SUBGROUP("subgroupAll"),
    /* functions of one argument */
    ONE("fabs", "abs"),
    ONE("fabsf", "abs"),
    ONE("sqrtf", "sqrt"),
    ONE("native_sqrt", "sqrt"),
    ONE("half_sqrt", "sqrt"),
    ONE("__fsqrt_rn", "sqrt"),
    ONE("rsqrtf", "rsqrt"),
    ONE("native_rsqrt", "rsqrt"),
    ONE("half_rsqrt", "rsqrt"),
    ONE("inversesqrt", "rsqrt"),
    ONE("inverseSqrt", "rsqrt"),
    ONE("cbrtf", "cbrt"),
    ONE("expf", "exp"),
    ONE("__expf", "exp"),
    ONE("native_exp", "exp"),
    ONE("half_exp", "exp"),
    ONE("exp2f", "exp2"),
    ONE("native_exp2", "exp2"),
    ONE("exp10f", "exp10"),
    ONE("native_exp10", "exp10"),
    ONE("expm1f", "expm1"),
    ONE("logf", "log"),
    ONE("__logf", "log"),
    ONE("native_log", "log"),
    ONE("half_log", "log"),
    ONE("log2f", "log2"),
    ONE("__log2f", "log2"),
    ONE("native_log2", "log2"),
    ONE("log10f", "log10"),
    ONE("native_log10", "log10"),
    ONE("log1pf", "log1p"),
    ONE("sinf", "sin"),
    ONE("__sinf", "sin"),
    ONE("native_sin", "sin"),
    ONE("cosf", "cos"),
    ONE("__cosf", "cos"),
    ONE("native_cos", "cos"),
    ONE("tanf", "tan"),
    ONE("native_tan", "tan"),
    ONE("asinf", "asin"),
    ONE("acosf", "acos"),
    ONE("atanf", "atan"),
    ONE("sinhf", "sinh"),
    ONE("coshf", "cosh"),
    ONE("tanhf", "tanh"),
    ONE("floorf", "floor"),
    ONE("ceilf", "ceil"),
    ONE("truncf", "trunc"),
    ONE("roundf", "round"),
    ONE("rintf", "rint"),
    ONE("nearbyintf", "rint"),
    ONE("roundEven", "rint"),
    ONE("frac", "fract"),
    ONE("__saturatef", "saturate"),
    ONE("bitreverse", "reverse"),
    ONE("reverseBits", "reverse"),
    ONE("reversebits", "reverse"),
    ONE("bitfieldReverse", "reverse"),
    ONE("__brev", "reverse"),
    ONE("popcnt", "popcount"),
    ONE("__popc", "popcount"),
    ONE("__popcll", "popcount"),
    ONE("bitCount", "popcount"),
    ONE("countbits", "popcount"),
    ONE("countOneBits", "popcount"),
    ONE("__clz", "clz"),
    ONE("countLeadingZeros", "clz"),
    ONE("countTrailingZeros", "ctz"),
    HINT("__ffs", "use ctz(x) + 1"),
    HINT("findLSB", "use ctz(x)"),
    HINT("firstTrailingBit", "use ctz(x)"),
    HINT("firstbitlow", "use ctz(x)"),
    HINT("findMSB", "use 31 - clz(x)"),
    HINT("firstLeadingBit", "use 31 - clz(x)"),
    HINT("firstbithigh", "use 31 - clz(x)"),
    HINT("isnan", "write x != x"),
    HINT("isNan", "write x != x"),
    HINT("isinf", "write abs(x) == inf"),
    HINT("isfinite", "write abs(x) < inf"),
    HINT("signbit", "write as_i32(x) < 0"),
    HINT("copysign",
         "write as_f32((as_u32(x) & 0x7FFFFFFF) | (as_u32(y) & "
         "0x80000000))"),
    HINT("copysignf",
         "write as_f32((as_u32(x) & 0x7FFFFFFF) | (as_u32(y) & "
         "0x80000000))"),
    HINT("rcp", "write 1.0 / x"),
    HINT("native_recip", "write 1.0 / x"),
    HINT("__frcp_rn", "write 1.0 / x"),
    HINT("radians", "write x * 0.017453293"),
    HINT("degrees", "write x * 57.29578"),
    HINT("sincosf", "use sin(x) and cos(x)"),
    HINT("sincos", "use sin(x) and cos(x)"),
    /* functions of two arguments */
    TWO("fmin", "min"),
    TWO("fmax", "max"),
    TWO("fminf", "min"),
    TWO("fmaxf", "max"),
    TWO("imin", "min"),
    TWO("imax", "max"),
    TWO("umin", "min"),
    TWO("umax", "max"),
    TWO("powf", "pow"),
    TWO("__powf", "pow"),
    TWO("native_powr", "pow"),
    TWO("powr", "pow"),
    HINT("pown", "use pow(x, f32(n))"),
    TWO("atan2f", "atan2"),
    TWO("hypotf", "hypot"),
    TWO("mul_hi", "mul_high"),
    TWO("__umulhi", "mul_high"),
    TWO("__mulhi", "mul_high"),
    {"rotl", "use rotate(x, n)", "rotate", 0},
    {"rotateLeft", "use rotate(x, n)", "rotate", 0},
    {"__funnelshift_l", "use rotate(x, n) if both words are x", NULL, 0},
    HINT("__dp4a", "use dot4_i8(a, b) or dot4_u8(a, b), and add"),
    {"dot4I8Packed", "use dot4_i8(a, b)", "dot4_i8", 0},
    {"dot4U8Packed", "use dot4_u8(a, b)", "dot4_u8", 0},
    HINT("fmodf", "write x - trunc(x / y) * y"),
    HINT("fmod", "write x - trunc(x / y) * y"),
    HINT("mod", "write x - floor(x / y) * y, or x % y for integers"),
    HINT("__fdividef", "write x / y"),
    HINT("native_divide", "write x / y"),
    HINT("__fadd_rn", "write x + y"),
    HINT("__fmul_rn", "write x * y"),
    HINT("__fdiv_rn", "write x / y"),
    HINT("mul24", "write x * y"),
    HINT("__mul24", "write x * y"),
    HINT("__umul24", "write x * y"),
    HINT("mad24", "write x * y + z"),
    HINT("idiv", "write x / y"),
    HINT("ldexp", "write x * exp2(f32(n))"),
    HINT("ldexpf", "write x * exp2(f32(n))"),
    HINT("fdim", "write max(x - y, 0.0)"),
    /* functions of three and four arguments */
    THREE("fmaf", "fma"),
    THREE("__fmaf_rn", "fma"),
    THREE("mad", "fma"),
    {"lerp", "use mix(a, b, t)", "mix", 0},
    {"bitfieldExtract", "use extract(x, from, count)", "extract", 0},
    {"extractBits", "use extract(x, from, count)", "extract", 0},
    {"bitfieldInsert", "use insert(x, y, from, count)", "insert", 0},
    {"insertBits", "use insert(x, y, from, count)", "insert", 0},
    /* reinterpreted bits */
    ONE("__float_as_int", "as_i32"),
    ONE("__float_as_uint", "as_u32"),
    ONE("__int_as_float", "as_f32"),
    ONE("__uint_as_float", "as_f32"),
    ONE("__double_as_longlong", "as_i64"),
    ONE("__longlong_as_double", "as_f64"),
    ONE("as_int", "as_i32"),
    ONE("as_uint", "as_u32"),
    ONE("as_float", "as_f32"),
    ONE("as_long", "as_i64"),
    ONE("as_ulong", "as_u64"),
    ONE("as_double", "as_f64"),
    ONE("floatBitsToInt", "as_i32"),
    ONE("floatBitsToUint", "as_u32"),
    ONE("intBitsToFloat", "as_f32"),
    ONE("uintBitsToFloat", "as_f32"),
    ONE("asint", "as_i32"),
    ONE("asuint", "as_u32"),
    ONE("asfloat", "as_f32"),
    ONE("intbits", "as_u32"),
    ONE("floatbits", "as_f32"),
    /* conversions of OpenCL C and CUDA */
    ONE("convert_float", "f32"),
    ONE("convert_double", "f64"),
    ONE("convert_int", "i32"),
    ONE("convert_int_rtz", "i32"),
    ONE("convert_int_sat", "i32"),
    ONE("convert_uint", "u32"),
    ONE("convert_uint_sat", "u32"),
    ONE("convert_long", "i64"),
    ONE("convert_ulong", "u64"),
    HINT("convert_int_rte", "write i32(rint(x))"),
    HINT("convert_uchar_sat", "write u32(clamp(x, 0.0, 255.0))"),
    ONE("__float2int_rz", "i32"),
    HINT("__float2int_rn", "write i32(rint(x))"),
    ONE("__int2float_rn", "f32"),
    ONE("__half2float", "f32"),
    HINT("__float2half",
         "store the value to a buffer of f16: it is rounded "
         "there"),
    /* memory */
    {"arrayLength", "use len(buffer)", "len", 0},
    HINT("__ldg", "write buffer[i]"),
    HINT("vload4", "read an element of a buffer of f32x4: x[i]"),
    HINT("vstore4", "write an element of a buffer of f32x4: y[i] = v;"),
    HINT("memcpy", "write a loop that copies one element at a time"),
    HINT("memset", "write a loop that sets one element at a time"),
    /* constants */
    SAME("INFINITY", "inf"),
    SAME("NAN", "nan"),
    SAME("M_PI", "3.14159265358979"),
    SAME("M_PI_F", "3.14159274"),
    SAME("PI", "3.14159274"),
    SAME("M_PI_2", "1.5707963267949"),
    SAME("M_E", "2.71828182845905"),
    SAME("M_SQRT2", "1.4142135623731"),
    SAME("CUDART_PI_F", "3.14159274"),
    SAME("CUDART_INF_F", "inf"),
    SAME("FLT_MAX", "0x1.fffffep127f"),
    SAME("FLT_MIN", "0x1p-126f"),
    SAME("FLT_EPSILON", "0x1p-23f"),
    SAME("DBL_MAX", "0x1.fffffffffffffp1023d"),
    SAME("UINT_MAX", "0xFFFFFFFFu"),
    SAME("UINT32_MAX", "0xFFFFFFFFu"),
    SAME("INT_MAX", "0x7FFFFFFFi"),
    SAME("INT32_MAX", "0x7FFFFFFFi"),
    SAME("INT_MIN", "(-0x7FFFFFFFi - 1i)"),
    {"warpSize",
     "use 32, or workgroup_size.x for all invocations of the "
     "workgroup",
     NULL, 0},
    {"CLK_LOCAL_MEM_FENCE", "remove it", "", 0},
    {"CLK_GLOBAL_MEM_FENCE", "remove it", "", 0},
};

const vyre__foreign *vyre__foreign_find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (is_text(name, length, words[i].name)) return &words[i];
  }
  return NULL;
}
