/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/command_table.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const sync_choices[] = {"final", "participates", NULL};
static const char *const target_choices[] = {
    "ir", "bin", "lowered", "c", "llvm", "asm", "spirv", "spirv-text", NULL};
static const char *const numbers_choices[] = {"native", "corrected", "soft",
                                              NULL};
static const char *const math_choices[] = {"f64", "f64-nofma", "u32", NULL};

#define JSON_FLAG \
  {.name = "--json", .help = "answer in JSON", .type = FLAG_SWITCH}
#define KERNEL_FLAG                                             \
  {.name = "--kernel",                                          \
   .letter = "-k",                                              \
   .value = "NAME",                                             \
   .help = "which kernel; not needed if the file has only one", \
   .type = FLAG_TEXT}
#define NUMBER_FLAG(flag, must, text) \
  {.name = (flag),                    \
   .value = "N",                      \
   .help = (text),                    \
   .type = FLAG_U64,                  \
   .required = (must)}

static const flag_doc check_flags[] = {
    {.name = "--accesses",
     .help = "which accesses to buffers are proven to be inside, and why not",
     .type = FLAG_SWITCH},
    JSON_FLAG,
};

static const flag_doc fmt_flags[] = {
    {.name = "--check",
     .help = "write nothing; exit with 1 if the layout would change",
     .type = FLAG_SWITCH},
    {.name = "--write",
     .letter = "-w",
     .help = "write the files in place instead of to standard output",
     .type = FLAG_SWITCH},
    JSON_FLAG,
};

static const flag_doc run_flags[] = {
    KERNEL_FLAG,
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "what a buffer or uniform holds before the run",
     .type = FLAG_LIST},
    {.name = "--out",
     .value = "NAME=FILE",
     .help = "write a buffer after the run: .npy, .png, .ppm, .pgm, or\n"
             "raw bytes; raw:FILE for these, whatever the name",
     .type = FLAG_LIST},
    {.name = "--grid",
     .value = "X[,Y[,Z]]",
     .help = "workgroups; without it, as many on x as cover the data",
     .type = FLAG_TEXT},
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "invocations of a workgroup, instead of the kernel's own",
     .type = FLAG_TEXT},
    {.name = "--backend",
     .value = "NAME",
     .help = "the device: auto (the default: the best there is, and ref\n"
             "with --check), or a name of those that 'vyre devices' lists",
     .type = FLAG_DEVICE},
    {.name = "--check",
     .help = "find races, dependence on order, accesses out of bounds",
     .type = FLAG_SWITCH},
    {.name = "--schedules",
     .value = "N",
     .help = "orders of execution that --check tries (default 4);\n"
             "the first in which an output differs is the last",
     .type = FLAG_U64},
    {.name = "--seed",
     .value = "N",
     .help = "of the orders that --check tries (default 1)",
     .type = FLAG_U64},
    {.name = "--max-loop-iterations",
     .value = "N",
     .help = "most loop turns of one invocation (default 4294967295)",
     .type = FLAG_U64,
     .least = 1},
    {.name = "--values",
     .help = "all values of all outputs, however long",
     .type = FLAG_SWITCH},
    {.name = "--trace",
     .value = "FILE",
     .help = "write what happened when, to look at in Perfetto",
     .type = FLAG_TEXT},
    {.name = "--time",
     .help = "tell how long compiling and running took",
     .type = FLAG_SWITCH},
    {.name = "--threads",
     .value = "N",
     .help = "of device cpu (default: as many as there are); other\n"
             "devices take no notice of it, nor of --width",
     .type = FLAG_U64},
    {.name = "--width",
     .value = "W",
     .help = "of device cpu: invocations side by side in a vector, 1, 4,\n"
             "8, 16 or 32 (default: chosen for the kernel)",
     .type = FLAG_U64},
    {.name = "--timeout",
     .value = "SECONDS",
     .help = "end a dispatch with an error when it takes longer, as in\n"
             "0.5; the time to compile is not counted. With --replay\n"
             "it is of each dispatch and each replay, not of all",
     .type = FLAG_TEXT},
    {.name = "--option",
     .value = "BACKEND.KEY=NUMBER",
     .help = "what the backend lets be chosen; more of them\n"
             "with commas, as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    {.name = "--ulp-budget",
     .value = "N",
     .help = "above 0: the device may round less often where that is\n"
             "faster, so that others give other bits (0 to 255, default 0)",
     .type = FLAG_U64,
     .most = UINT8_MAX},
    {.name = "--replay",
     .value = "N",
     .help = "then N times more, plainly and as a recording:\n"
             "what each takes, and whether that is a gain\n"
             "(1 to 1000000)",
     .type = FLAG_U64,
     .least = 1,
     .most = 1000000},
    JSON_FLAG,
};

#define SWITCH_FLAG(flag, text) \
  {.name = (flag), .help = (text), .type = FLAG_SWITCH}

static const flag_doc emit_flags[] = {
    KERNEL_FLAG,
    {.name = "--to",
     .value = "FORM",
     .help = "ir: text, all written out; bin: the binary form;\n"
             "lowered: what a device gets; c: the same in C11; llvm and\n"
             "asm: what device cpu compiles and runs on this machine;\n"
             "spirv: a module for Vulkan; spirv-text: the same to read,\n"
             "with the kernel's names, which the module leaves out",
     .type = FLAG_CHOICE,
     .choices = target_choices,
     .required = true},
    {.name = "--dump-after",
     .value = "PASS",
     .help = "lowered so far: inline, build, numbers, memory, tidy or\n"
             "control, the last",
     .type = FLAG_TEXT},
    {.name = "--float-mode",
     .value = "FORM",
     .help = "f32 operations of a device that does them right (native,\n"
             "the default), nearly right (fixed), or not at all (soft)",
     .type = FLAG_CHOICE,
     .choices = numbers_choices},
    {.name = "--math",
     .value = "FORM",
     .help = "functions such as exp by f64 with fma (f64, the default),\n"
             "without (f64-nofma), or by integers (u32)",
     .type = FLAG_CHOICE,
     .choices = math_choices},
    {.name = "--width",
     .value = "W",
     .help = "of llvm and asm: invocations side by side in a vector, 1, 4,\n"
             "8, 16 or 32; without it, chosen for the kernel",
     .type = FLAG_U64},
    SWITCH_FLAG("--no-u64", "the device has no 64-bit types"),
    SWITCH_FLAG("--no-narrow", "the device has no 8- and 16-bit accesses"),
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "invocations of a workgroup, instead of the kernel's own",
     .type = FLAG_TEXT},
    {.name = "--output",
     .letter = "-o",
     .value = "FILE",
     .help = "where to; without it, standard output",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc embed_flags[] = {
    {.name = "--output",
     .letter = "-o",
     .value = "FILE",
     .help = "where to; without it, standard output",
     .type = FLAG_TEXT},
    {.name = "--prefix",
     .value = "NAME",
     .help = "what all names begin with: NAME_kernel",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc explain_flags[] = {JSON_FLAG};

static const flag_doc devices_flags[] = {JSON_FLAG};

static const flag_doc doctor_flags[] = {
    {.name = "--probe",
     .help = "test every operation on floats, a second a device",
     .type = FLAG_SWITCH},
    JSON_FLAG,
};

static const flag_doc generate_flags[] = {
    NUMBER_FLAG("--seed", false, "which program (default 0)"),
    NUMBER_FLAG("--size", false, "about how many statements (default 24)"),
    NUMBER_FLAG("--count", false, "programs, of one seed after the other"),
    {.name = "--output",
     .letter = "-o",
     .value = "DIR",
     .help = "write seed-N.vyre and its data there, and say how to run it",
     .type = FLAG_TEXT},
    SWITCH_FLAG("--run", "run it, and print a hash of all outputs"),
    {.name = "--backend",
     .value = "NAME",
     .help = "the device of --run, as vyre run has it",
     .type = FLAG_DEVICE},
    SWITCH_FLAG("--math", "with exp, sin, pow and other functions"),
    SWITCH_FLAG("--no-f64", "without f64"),
    SWITCH_FLAG("--no-int64", "without u64 and i64"),
    SWITCH_FLAG("--no-narrow", "without elements below 32 bits, but bool"),
    SWITCH_FLAG("--no-shared", "without shared buffers"),
    SWITCH_FLAG("--no-barriers", "without barrier() and uniform()"),
    SWITCH_FLAG("--no-grid-barriers", "without grid_barrier()"),
    SWITCH_FLAG("--no-atomics", "without atomics"),
    SWITCH_FLAG("--no-atomics64", "without atomics on u64 and i64"),
    SWITCH_FLAG(
        "--only-add64",
        "of atomics on u64 and i64, only atomic_add whose result is not "
        "used"),
    SWITCH_FLAG("--no-out-of-range", "without accesses outside of buffers"),
    SWITCH_FLAG("--no-loops", "without loops"),
    SWITCH_FLAG("--no-functions", "without fn"),
    JSON_FLAG,
};

static const flag_doc conform_flags[] = {
    {.name = "--backend",
     .value = "NAME",
     .help = "the device: ref, null, ... as in vyre run",
     .type = FLAG_TEXT,
     .required = true},
    {.name = "--option",
     .value = "BACKEND.KEY=NUMBER",
     .help = "what the backend lets be chosen; more of them\n"
             "with commas, as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    NUMBER_FLAG("--programs", false,
                "random programs after the cases, held\n"
                "against ref (default 0)"),
    NUMBER_FLAG("--seed", false, "of random data, and of the first program"),
    {.name = "--filter",
     .value = "TEXT",
     .help = "only cases that have TEXT in their name",
     .type = FLAG_TEXT},
    SWITCH_FLAG("--list", "the names of cases and what is expected of them"),
    {.name = "--case",
     .value = "NAME",
     .help = "run this one case in this process, as for a debugger",
     .type = FLAG_TEXT},
    NUMBER_FLAG("--jobs", false, "cases at once (default: one a processor)"),
    NUMBER_FLAG("--timeout", false, "seconds for a case (default 60)"),
    {.name = "--expectations",
     .value = "FILE",
     .help = "what is expected, instead of the list that is built in",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc queue_flags[] = {
    NUMBER_FLAG("--initial", true, "items in the queue before the launch"),
    NUMBER_FLAG("--capacity", true, "most items it can hold"),
    NUMBER_FLAG("--entry-bytes", true, "bytes of one item"),
    NUMBER_FLAG("--control-bytes", true, "bytes of head, tail and flags"),
    NUMBER_FLAG("--budget", true, "bytes of device memory that may be used"),
    NUMBER_FLAG("--drain", false, "drain in windows of at most N items"),
    {.name = "--host-sync",
     .value = "WHEN",
     .help = "final (the default): the host looks once, at the end;\n"
             "participates: during draining, which is refused",
     .type = FLAG_CHOICE,
     .choices = sync_choices},
    JSON_FLAG,
};

static const flag_doc expansion_flags[] = {
    NUMBER_FLAG("--initial", true, "items in the queue before the launch"),
    NUMBER_FLAG("--expansion", true, "items that the kernel may add"),
    NUMBER_FLAG("--entry-bytes", true, "bytes of one item"),
    NUMBER_FLAG("--control-bytes", true, "bytes of head, tail and flags"),
    NUMBER_FLAG("--budget", true, "bytes of device memory that may be used"),
    JSON_FLAG,
};

static const flag_doc frontier_flags[] = {
    {.name = "--place",
     .help = "also place every part of every wave, and say whether it fits",
     .type = FLAG_SWITCH},
    NUMBER_FLAG("--alignment", false,
                "of these offsets, in bytes (default 256)"),
    {.name = "--svg",
     .value = "FILE",
     .help = "draw the groups against the budget, and the placement",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc place_flags[] = {
    {.name = "--csv",
     .help = "answer with MiniMalloc's CSV: id,lower,upper,size,offset",
     .type = FLAG_SWITCH},
    {.name = "--svg",
     .value = "FILE",
     .help = "draw the placement",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc bindings_flags[] = {KERNEL_FLAG, JSON_FLAG};

#define BACKEND_FLAG                                               \
  {.name = "--backend",                                            \
   .value = "NAME",                                                \
   .help =                                                         \
       "the device: auto (the default), or a name of those that\n" \
       "'vyre devices' lists",                                     \
   .type = FLAG_DEVICE}

static const flag_doc cache_flags[] = {JSON_FLAG};

static const flag_doc compile_flags[] = {
    KERNEL_FLAG,
    BACKEND_FLAG,
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "invocations of a workgroup, instead of the kernel's own",
     .type = FLAG_TEXT},
    {.name = "--ulp-budget",
     .value = "N",
     .help = "as the program asks for (0 to 255, default 0)",
     .type = FLAG_U64,
     .most = UINT8_MAX},
    JSON_FLAG,
};

static const flag_doc cache_prune_flags[] = {
    SWITCH_FLAG("--all", "remove every entry"),
    {.name = "--bytes",
     .value = "N",
     .help = "keep the last used up to N bytes",
     .type = FLAG_U64,
     .least = 1},
    JSON_FLAG,
};

static const char cache_where[] =
    "The cache is the directory VYRE_CACHE_DIR, else vyre in XDG_CACHE_HOME "
    "or in\n"
    "~/.cache, of at most VYRE_CACHE_BYTES bytes (256 MiB). It must belong to "
    "you,\n"
    "with mode 700; else it is off.\n";

static const char cache_explain_body[] =
    "Says whether compiling the kernel would find it in the cache, and if not, "
    "in\n"
    "which field of the key the nearest entry of the same program differs. "
    "Shows\n"
    "the whole key. Compiles nothing.\n";

static const char check_body[] =
    "Parses every FILE (- is standard input), checks names and types, and "
    "proves\n"
    "that barriers are reached by all invocations or by none. All findings "
    "are\n"
    "told, with their place, a fix and the rule that they break. A file "
    "without\n"
    "a kernel is wrong too: it would do nothing.\n"
    "\n"
    "--accesses tells of each kernel how many of its accesses to buffers are\n"
    "inside whatever happens, and of the others what is known about the "
    "index.\n"
    "Those get a check, which costs a compare; nothing is wrong with them.\n";

static const char fmt_body[] =
    "Only white space changes; comments, names and literals stay. Without a\n"
    "flag the results go to standard output, one after the other. -w leaves a\n"
    "file alone that is laid out already. A file that is wrong is told and "
    "left\n"
    "as it is; the others are laid out all the same, and the exit code is 1.\n";

static const char run_body[] =
    "SPEC, for a buffer of N elements:\n"
    "  data.npy         a NumPy file of the same element type, any shape\n"
    "  photo.png        the samples of a picture; also .ppm, .pgm and .pnm\n"
    "  FILE             raw bytes, little endian; - is standard input\n"
    "  raw:FILE         raw bytes, whatever the name of the file\n"
    "  zeros:N          N zeros\n"
    "  iota:N           0, 1, 2, ... N-1\n"
    "  fill:V:N         N times V\n"
    "  random:SEED:N    the same N values for the same seed: integers over\n"
    "                   their whole range, floats in [0, 1)\n"
    "  values:V,V,...   these values\n"
    "  text:WORDS       the bytes of WORDS (u8 and bytes only)\n"
    "  V                one value, for a uniform\n"
    "Write ./zeros:4 for a file of that name.\n"
    "\n"
    "Every buffer that the kernel takes data from must be set. An output\n"
    "(declared write, or with the attribute output) starts as zeros; if its\n"
    "size is left to the run, it has as many elements as the buffer that the\n"
    "kernel is over(...), else as the largest input, unless --set "
    "NAME=zeros:N\n"
    "says otherwise.\n"
    "\n"
    "Without --out, outputs are printed as a table; long ones are cut. What\n"
    "ran, and on which device, is printed to standard error.\n"
    "\n"
    "A picture of width W, height H and C channels (1 grey, 2 grey and alpha,\n"
    "3 RGB, 4 RGBA) is W x H x C elements, row by row: u8 for 8 bits a "
    "sample,\n"
    "u16 for 16, f32 from 0 to 1; or W x H elements u32, red in the lowest "
    "byte.\n"
    "--out NAME=FILE.png:WxHxC writes one, or :WxH for as many channels as "
    "the\n"
    "buffer has (.pgm: 1, .ppm: 3). If the size of the buffer is that of "
    "another\n"
    "one, channels above 1 must be given. Without a shape, it is that of the\n"
    "picture that the same buffer was read from, or of a --grid of two axes;\n"
    "else it is refused.\n"
    "--set NAME=FILE.png:WxHxC demands that shape of the file.\n"
    "\n"
    "Exit codes: 0 fine, 1 the kernel or its data is wrong (also what --check\n"
    "finds), 2 the command line is wrong (also a --set that is missing), 3 "
    "the\n"
    "device.\n";

static const char run_example[] =
    "example:\n"
    "  vyre run examples/saxpy.vyre --set a=2 --set x=iota:8 \\\n"
    "           --set y=fill:0.5:8\n";

static const char emit_body[] =
    "FILE is a kernel file, or the binary form of one kernel. What comes out "
    "is\n"
    "one kernel: if the file has several, -k says which. Whatever a device "
    "lacks,\n"
    "the lowered kernel gives the same bits. With --json, the answer has "
    "counts:\n"
    "instructions, accesses to buffers, and how many of these need no check; "
    "and\n"
    "of llvm and asm the width.\n"
    "\n"
    "With --float-mode, --math, --no-u64 or --no-narrow, llvm prints code for\n"
    "another machine, which is not compiled. Without LLVM nothing is compiled\n"
    "either, and a note says so.\n";

static const char inspect_body[] =
    "The kernel is compiled for the device, and nothing runs. Workgroup and "
    "grid,\n"
    "bytes that a workgroup shares, launches that grid barriers cut a "
    "dispatch\n"
    "into, what an invocation keeps across them, what is bound where; and, of "
    "a\n"
    "device that compiles, how many invocations go side by side and how large "
    "the\n"
    "code is. What a device does not have is left out.\n";

static const char embed_body[] =
    "The header has every kernel of FILE inside, and for each a function that "
    "takes\n"
    "its data as C types and runs it: an application ships one file. It "
    "includes\n"
    "<vyre/vyre.h> only, and is C11 and C++11. A kernel of up to 4000 bytes is "
    "in it\n"
    "as text, a longer one in the binary form. The same FILE gives the same "
    "header.\n"
    "\n"
    "Names: KERNEL_run, KERNEL_pipeline, KERNEL_dispatch and KERNEL_program, "
    "and\n"
    "parameters as buffers are called. A parameter that is a word of C or C++ "
    "gets "
    "_\n"
    "behind it. k_ goes before a name that begins with _, vyre_ or VYRE_, and "
    "before a\n"
    "parameter that begins with a capital letter, as macros do, and is longer "
    "than "
    "it.\n";

static const char generate_body[] =
    "A program is valid, has no race and does not depend on the order of\n"
    "atomics: it has one result. The same flags give the same program and\n"
    "data everywhere.\n";

static const char devices_body[] =
    "Names are what --backend takes; auto takes the first that is there. A\n"
    "backend without a device says what was looked for. Of floats, it says "
    "how\n"
    "each operation is done: native (the device is right), fixed (a few\n"
    "instructions more make it right) or soft (by integers). Results are the\n"
    "same bits in all of them.\n";

static const char doctor_body[] =
    "Every device compiles two kernels, runs one and is held against what the\n"
    "processor computes; how long that took is told. What is missing, and how\n"
    "to install it, stands beside it.\n"
    "\n"
    "--probe sends a million edges and random numbers through every\n"
    "operation of every device, and holds the results against exact ones. A\n"
    "device that is not exact by definition is tested so when it is opened\n"
    "first; what was found is remembered in the cache.\n"
    "\n"
    "Exit codes: 0 fine, 2 the command line is wrong, 3 no device opens, the\n"
    "one that auto takes runs no kernel, one gave a wrong result, or a probe\n"
    "failed.\n";

static const char conform_body[] =
    "Each case runs in a process of its own: one that crashes, hangs or leaks\n"
    "fails alone. A process for each of --jobs loads once what they need, and\n"
    "forks for each case. A case says how many kernels it ran on which "
    "device,\n"
    "so that a run that did nothing is no good run, and gives all memory "
    "back.\n"
    "Programs that fail are made smaller before they are told.\n"
    "\n"
    "A list of expectations has lines of CASE, then 'unsupported' (is not "
    "run)\n"
    "or 'fails' (is run, and must fail), then the reason. CASE may end in *. "
    "A\n"
    "case that passes although it is on the list fails, and so does a line "
    "for\n"
    "a case that does not exist.\n";

static const char queue_example[] =
    "example: 64Ki items of 16 bytes, drained 8Ki at a time\n"
    "  vyre plan queue --initial 4096 --capacity 65536 --entry-bytes 16 \\\n"
    "                  --control-bytes 128 --budget 2097152 --drain 8192\n";

static const char expansion_body[] =
    "The queue should hold initial + expansion items. If the budget is too\n"
    "small for that, it is cut, but never below the initial items.\n";

static const char expansion_example[] =
    "example:\n"
    "  vyre plan expansion --initial 4 --expansion 100 --entry-bytes 8 \\\n"
    "                      --control-bytes 16 --budget 96\n";

static const char frontier_body[] =
    "FILE (- is standard input) is a JSON object:\n"
    "  {\"resident_graph_bytes\": 16000, \"budget_bytes\": 131072,\n"
    "   \"readback_bytes\": 0,\n"
    "   \"waves\": [[1024, 512, 256], [2048, 1024, 512]],\n"
    "   \"dependencies\": [[0, 1]]}\n"
    "A wave is [frontier, scratch, output] bytes and holds frontier +\n"
    "4 * scratch + output while it runs. A dependency [before, after] puts\n"
    "wave `after` in a later group than wave `before`.\n";

static const char frontier_example[] =
    "example:\n"
    "  vyre plan frontier examples/plans/bfs.json --place --svg bfs.svg\n";

static const char place_body[] =
    "FILE (- is standard input) is a JSON object:\n"
    "  {\"alignment\": 256,\n"
    "   \"intervals\": [{\"id\": \"a\", \"size\": 4096, \"first_group\": 0,\n"
    "                  \"last_group\": 2, \"alignment\": 64}]}\n"
    "(both groups included; id and alignment may be left out) or a CSV table:\n"
    "  id,lower,upper,size\n"
    "  a,0,3,4096\n"
    "(lower included, upper not; columns in any order). A column `offset` may\n"
    "be there and is ignored: this plans afresh. The table for people names\n"
    "intervals by their position in the input, from 0; the others by id.\n";

static const char bindings_body[] =
    "FILE (- is standard input) is a kernel file, or a JSON object:\n"
    "  {\"workgroup\": [64, 1, 1],\n"
    "   \"buffers\": [\n"
    "     {\"name\": \"x\", \"binding\": 0, \"access\": \"read\",\n"
    "      \"element\": \"f32\", \"count\": 1024},\n"
    "     {\"name\": \"y\", \"binding\": 1, \"access\": \"read_write\",\n"
    "      \"element\": \"f32\"}],\n"
    "   \"input_lengths\": [4096, {\"bytes\": 8192, \"resident\": true}]}\n"
    "Buffers need name, binding, access (read, write, read_write, uniform,\n"
    "workgroup) and element (bool, u8 ... u64, i8 ... i64, f16, bf16, f32, "
    "f64,\n"
    "bytes). They may have kind (global, shared, uniform, persistent), count\n"
    "(0: sized by what is bound), is_output, pipeline_live_out,\n"
    "preferred_alignment, coalesce_axis (0, 1, 2 or null) and cache_locality\n"
    "(temporal, streaming, random). With input_lengths, in bytes and in input\n"
    "order, inputs are checked and run-time sizes are worked out. JSON begins\n"
    "with a brace and its name does not end in .vyre; -k is for kernel "
    "files.\n";

const command_doc command_table[] = {
    {.name = "check",
     .summary = "whether kernels are right, and what to do if not",
     .operand_kind = OPERAND_FILES,
     .operand = "FILE|-...",
     .flags = check_flags,
     .flag_count = COUNT(check_flags),
     .body = check_body,
     .example = "example:\n"
                "  vyre check examples/saxpy.vyre\n"},
    {.name = "fmt",
     .summary = "lay out kernel files the way everybody's look",
     .operand_kind = OPERAND_FILES,
     .operand = "FILE|-...",
     .flags = fmt_flags,
     .flag_count = COUNT(fmt_flags),
     .body = fmt_body,
     .example = "example:\n"
                "  vyre fmt -w examples/saxpy.vyre\n"},
    {.name = "run",
     .summary = "run a kernel on data and show what came out",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = run_flags,
     .flag_count = COUNT(run_flags),
     .body = run_body,
     .example = run_example},
    {.name = "emit",
     .summary = "a kernel in another form",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = emit_flags,
     .flag_count = COUNT(emit_flags),
     .body = emit_body,
     .example =
         "example:\n"
         "  vyre emit examples/saxpy.vyre --to bin -o saxpy.vyrebin\n"
         "  vyre emit examples/saxpy.vyre --to lowered --float-mode soft\n"
         "  vyre emit examples/saxpy.vyre --to asm --width 16\n"
         "  vyre emit examples/saxpy.vyre --to spirv -o saxpy.spv\n"},
    {.name = "inspect",
     .summary = "what a kernel needs to run on a device",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = compile_flags,
     .flag_count = COUNT(compile_flags),
     .body = inspect_body,
     .example = "example:\n"
                "  vyre inspect examples/saxpy.vyre --backend cpu\n"},
    {.name = "embed",
     .summary =
         "a C header with the kernels of a file and functions to run them",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = embed_flags,
     .flag_count = COUNT(embed_flags),
     .body = embed_body,
     .example = "example:\n"
                "  vyre embed examples/saxpy.vyre -o saxpy.h\n"},
    {.name = "explain",
     .summary = "what a rule or a finding means, with an example of each side",
     .operand_kind = OPERAND_RULE,
     .operand = "[RULE]",
     .flags = explain_flags,
     .flag_count = COUNT(explain_flags),
     .body =
         "RULE is the word in brackets behind an error: a rule of the "
         "language, such\n"
         "as V012, or what 'vyre run --check' finds: race, out_of_bounds or\n"
         "order_dependence. Without it, lists all.\n",
     .example = "example:\n"
                "  vyre explain V012\n"},
    {.name = "generate",
     .summary = "a random program with its data, to test devices",
     .flags = generate_flags,
     .flag_count = COUNT(generate_flags),
     .body = generate_body,
     .example = "example: ten programs that any device must agree on\n"
                "  vyre generate --seed 1 --count 10 --run\n"},
    {.name = "devices",
     .summary = "the devices there are, and what they can do",
     .flags = devices_flags,
     .flag_count = COUNT(devices_flags),
     .body = devices_body,
     .example = "example:\n"
                "  vyre devices\n"},
    {.name = "doctor",
     .summary =
         "what was looked for, what works, and what to do about the rest",
     .flags = doctor_flags,
     .flag_count = COUNT(doctor_flags),
     .body = doctor_body,
     .example = "example:\n"
                "  vyre doctor --probe\n"},
    {.name = "conform",
     .summary = "whether a device does all that it has to",
     .flags = conform_flags,
     .flag_count = COUNT(conform_flags),
     .body = conform_body,
     .example = "example: all cases, and 1000 random programs\n"
                "  vyre conform --backend ref --programs 1000 --seed 1\n"},
    {.name = "plan queue",
     .summary = "the bytes of a device work queue",
     .flags = queue_flags,
     .flag_count = COUNT(queue_flags),
     .body = "N is a whole number from 0 to 18446744073709551615.\n",
     .example = queue_example},
    {.name = "plan expansion",
     .summary = "the largest queue that a budget holds",
     .flags = expansion_flags,
     .flag_count = COUNT(expansion_flags),
     .body = expansion_body,
     .example = expansion_example},
    {.name = "plan frontier",
     .summary = "waves into groups that keep a byte budget",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = frontier_flags,
     .flag_count = COUNT(frontier_flags),
     .body = frontier_body,
     .example = frontier_example},
    {.name = "plan place",
     .summary = "lifetimes and sizes into offsets of one allocation",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = place_flags,
     .flag_count = COUNT(place_flags),
     .body = place_body,
     .example = "example:\n"
                "  vyre plan place examples/plans/minimalloc.csv --csv\n"},
    {.name = "plan bindings",
     .summary = "what is bound where, in which role and order",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = bindings_flags,
     .flag_count = COUNT(bindings_flags),
     .body = bindings_body,
     .example = "example:\n"
                "  vyre plan bindings examples/plans/saxpy.json\n"},
    {.name = "cache list",
     .summary = "what is kept",
     .flags = cache_flags,
     .flag_count = COUNT(cache_flags),
     .body = cache_where,
     .example = "example:\n"
                "  vyre cache list\n"},
    {.name = "cache explain",
     .summary = "whether a kernel is there, and if not, what differs",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = compile_flags,
     .flag_count = COUNT(compile_flags),
     .body = cache_explain_body,
     .example = "example:\n"
                "  vyre cache explain examples/saxpy.vyre\n"},
    {.name = "cache verify",
     .summary = "whether every entry is sound",
     .flags = cache_flags,
     .flag_count = COUNT(cache_flags),
     .body = "Exits with 1 if one is damaged. Such an entry is never used, and "
             "is\n"
             "replaced when its kernel is compiled.\n",
     .example = "example:\n"
                "  vyre cache verify\n"},
    {.name = "cache prune",
     .summary = "remove what is damaged, and what was not used for longest",
     .flags = cache_prune_flags,
     .flag_count = COUNT(cache_prune_flags),
     .body = "Without a flag, what is above VYRE_CACHE_BYTES goes, as with "
             "every entry\n"
             "that is added. Files of others in the directory stay.\n",
     .example = "example: keep a megabyte\n"
                "  vyre cache prune --bytes 1048576\n"},
};

const size_t command_count = COUNT(command_table);

const command_group command_groups[] = {
    {.name = "cache",
     .summary = "compiled kernels that are kept: list, explain, verify, prune",
     .title = "what is kept of compiled kernels",
     .noun = "action",
     .upper = "ACTION",
     .body = cache_where,
     .example = "example:\n"
                "  vyre cache explain examples/saxpy.vyre\n"},
    {.name = "plan",
     .summary = "bindings, queues, waves or memory, before anything runs",
     .title = "what would run, before anything runs",
     .noun = "subject",
     .upper = "SUBJECT",
     .body = "Plans are pure: no device is opened, and equal input gives equal "
             "plans.\n",
     .example = "example:\n"
                "  vyre plan frontier examples/plans/bfs.json --place\n"},
};

const size_t command_group_count = COUNT(command_groups);

const command_group *find_group(const char *name) {
  for (size_t i = 0; i < command_group_count; i++) {
    if (strcmp(command_groups[i].name, name) == 0) return &command_groups[i];
  }
  return NULL;
}

const command_group *group_of(const command_doc *command) {
  for (size_t i = 0; i < command_group_count; i++) {
    size_t length = strlen(command_groups[i].name);
    if (strncmp(command->name, command_groups[i].name, length) == 0 &&
        command->name[length] == ' ') {
      return &command_groups[i];
    }
  }
  return NULL;
}

const command_doc *find_command(const char *name) {
  for (size_t i = 0; i < command_count; i++) {
    if (strcmp(command_table[i].name, name) == 0) return &command_table[i];
  }
  return NULL;
}
