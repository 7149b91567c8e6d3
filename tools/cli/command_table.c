/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/command_table.h"

#include <string.h>

#include "cli/command_texts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const sync_choices[] = {"final", "participates", NULL};
static const char *const target_choices[] = {
    "ir",   "bin", "lowered", "schedule",   "c",
    "llvm", "asm", "spirv",   "spirv-text", NULL};
static const char *const float_mode_choices[] = {"native", "corrected", "soft",
                                                 NULL};
static const char *const queue_mode_choices[] = {
    "auto", "windows", "newest", NULL}; /* as in vyre_queue_mode */
static const char *const tier_choices[] = {"auto", "baseline", "optimised",
                                           NULL}; /* as in vyre_tier */
static const char *const math_choices[] = {"f64", "f64-nofma", "u32", NULL};

#define DEFINE_FLAG                                         \
  {.name = "--define",                                      \
   .value = "NAME=VALUE",                                   \
   .help = "value of an override of the file, or its type", \
   .type = FLAG_LIST}
#define IMPORT_FLAG                                                \
  {.name = "--import",                                             \
   .letter = "-I",                                                 \
   .value = "DIR",                                                 \
   .help = "folder for imports that the folder of the file lacks", \
   .type = FLAG_LIST}
#define JSON_FLAG \
  {.name = "--json", .help = "answer in JSON", .type = FLAG_SWITCH}
#define KERNEL_FLAG                                              \
  {.name = "--kernel",                                           \
   .letter = "-k",                                               \
   .value = "NAME",                                              \
   .help = "kernel to use; may be left out if the file has one", \
   .type = FLAG_TEXT}
#define NUMBER_FLAG(flag, must, text) \
  {.name = (flag),                    \
   .value = "N",                      \
   .help = (text),                    \
   .type = FLAG_U64,                  \
   .required = (must)}

static const flag_doc check_flags[] = {
    {.name = "--accesses",
     .help = "list buffer accesses and whether each is proven in bounds",
     .type = FLAG_SWITCH},
    DEFINE_FLAG,
    IMPORT_FLAG,
    JSON_FLAG,
};

static const flag_doc fmt_flags[] = {
    {.name = "--check",
     .help = "write nothing; exit with 1 if a file is not formatted",
     .type = FLAG_SWITCH},
    {.name = "--write",
     .letter = "-w",
     .help = "rewrite the files in place",
     .type = FLAG_SWITCH},
    IMPORT_FLAG,
    JSON_FLAG,
};

static const char *const grammar_choices[] = {"textmate", "vim", NULL};

static const flag_doc grammar_flags[] = {
    {.name = "--to",
     .value = "FORM",
     .help = "textmate (VS Code and others) or vim; default: textmate",
     .type = FLAG_CHOICE,
     .choices = grammar_choices},
    JSON_FLAG,
};

static const flag_doc lsp_flags[] = {
    {.name = "--stdio",
     .help = "use standard input and output, as always",
     .type = FLAG_SWITCH},
    IMPORT_FLAG,
    JSON_FLAG,
};

#define SWITCH_FLAG(flag, text) \
  {.name = (flag), .help = (text), .type = FLAG_SWITCH}
#define UNTUNED_FLAG \
  SWITCH_FLAG("--untuned", "do not use what 'vyre tune' has chosen")

#include "cli/run_flags.h"

static const flag_doc bench_flags[] = {
    KERNEL_FLAG,
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "contents of a buffer or uniform, as in 'vyre run';\n"
             "inputs that are not set are made up",
     .type = FLAG_LIST},
    {.name = "--size",
     .value = "N",
     .help = "elements of buffers that are made up (default 1048576)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1 << 28},
    {.name = "--grid",
     .value = "X[,Y[,Z]]",
     .help = "number of workgroups; by default enough to cover the data",
     .type = FLAG_TEXT},
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "workgroup size to use instead of the kernel's",
     .type = FLAG_TEXT},
    {.name = "--backend",
     .value = "NAME",
     .help = "device: auto (default: the best available) or a name listed\n"
             "by 'vyre devices'",
     .type = FLAG_DEVICE},
    {.name = "--runs",
     .value = "N",
     .help = "timed runs, at most 100000 (default: as many as fit into\n"
             "half a second, at least 5)",
     .type = FLAG_U64,
     .min = 1,
     .max = 100000},
    {.name = "--max-loop-iterations",
     .value = "N",
     .help = "loop iterations allowed per invocation (default 4294967295)",
     .type = FLAG_U64,
     .min = 1},
    {.name = "--svg",
     .value = "FILE",
     .help = "write the roofline as a drawing",
     .type = FLAG_TEXT},
    {.name = "--threads",
     .value = "N",
     .help = "threads of device cpu (default: all processors);\n"
             "other devices ignore this flag and --width",
     .type = FLAG_U64},
    {.name = "--width",
     .value = "W",
     .help = "vector width of device cpu: 1, 4, 8, 16 or 32\n"
             "(default: chosen for the kernel)",
     .type = FLAG_U64},
    {.name = "--timeout",
     .value = "SECONDS",
     .help = "time limit of each run, such as 0.5",
     .type = FLAG_TEXT},
    {.name = "--option",
     .value = "BACKEND.KEY=NUMBER",
     .help = "option of a backend; separate several by commas,\n"
             "as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    {.name = "--ulp-budget",
     .value = "N",
     .help = "above 0: the device may fuse and round less often, so that\n"
             "results differ between devices (0 to 255, default 0)",
     .type = FLAG_U64,
     .max = UINT8_MAX},
    UNTUNED_FLAG,
    DEFINE_FLAG,
    IMPORT_FLAG,
    JSON_FLAG,
};

static const flag_doc emit_flags[] = {
    KERNEL_FLAG,
    {.name = "--to",
     .value = "FORM",
     .help = "ir: program text with every default written out; bin: binary\n"
             "form; lowered: LIR, the input of code generators; schedule:\n"
             "loops and vectors that device cpu runs it with; c: C11;\n"
             "llvm, asm: code that device cpu runs on this machine;\n"
             "spirv: Vulkan module; spirv-text: its disassembly, with names",
     .type = FLAG_CHOICE,
     .choices = target_choices,
     .required = true},
    {.name = "--dump-after",
     .value = "PASS",
     .help = "LIR after a pass: inline, build, legalize-floats,\n"
             "legalize-memory, cse-dce or legalize-control (the last);\n"
             "schedule after a pass: build, range-split, loop-range,\n"
             "unroll-jam, accumulator-split, privatize-atomics,\n"
             "loop-peel, row-loads, row-limit, speculate, row-walk,\n"
             "interleave, prefetch or full-workgroups (the last)",
     .type = FLAG_TEXT},
    {.name = "--float-mode",
     .value = "FORM",
     .help = "how f32 operations become exact: native (default), corrected\n"
             "(native result repaired), soft (integer arithmetic)",
     .type = FLAG_CHOICE,
     .choices = float_mode_choices},
    {.name = "--math",
     .value = "FORM",
     .help = "how functions such as exp are computed: f64 with fma (f64,\n"
             "the default), f64 without fma (f64-nofma), integers (u32)",
     .type = FLAG_CHOICE,
     .choices = math_choices},
    {.name = "--width",
     .value = "W",
     .help = "vector width of schedule, llvm, asm: 1, 4, 8, 16 or 32\n"
             "(default: chosen for the kernel)",
     .type = FLAG_U64},
    SWITCH_FLAG("--no-u64", "target without 64-bit types"),
    SWITCH_FLAG("--no-narrow", "target without 8- and 16-bit accesses"),
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "workgroup size to use instead of the kernel's",
     .type = FLAG_TEXT},
    {.name = "--output",
     .letter = "-o",
     .value = "FILE",
     .help = "output file (default: standard output)",
     .type = FLAG_TEXT},
    DEFINE_FLAG,
    IMPORT_FLAG,
    JSON_FLAG,
};

#define TARGET_FLAG                                                    \
  {.name = "--target",                                                 \
   .value = "NAMES",                                                   \
   .help =                                                             \
       "targets, separated by commas, or backends for all of theirs\n" \
       "(default: all)",                                               \
   .type = FLAG_TEXT}

static const flag_doc build_flags[] = {
    {.name = "--output",
     .letter = "-o",
     .value = "FILE",
     .help = "output file (default: standard output)",
     .type = FLAG_TEXT},
    TARGET_FLAG,
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "also code for this workgroup size",
     .type = FLAG_TEXT},
    {.name = "--ulp-budget",
     .value = "N",
     .help = "also code that may be N ulp off",
     .type = FLAG_U64,
     .max = 255},
    {.name = "--count-iterations",
     .help = "also code that counts every loop iteration",
     .type = FLAG_SWITCH},
    DEFINE_FLAG,
    IMPORT_FLAG,
    JSON_FLAG,
};

static const flag_doc embed_flags[] = {
    {.name = "--output",
     .letter = "-o",
     .value = "FILE",
     .help = "output file (default: standard output)",
     .type = FLAG_TEXT},
    {.name = "--prefix",
     .value = "NAME",
     .help = "prefix of all names: NAME_kernel",
     .type = FLAG_TEXT},
    {.name = "--aot",
     .help = "compile ahead of time: the application needs no compiler",
     .type = FLAG_SWITCH},
    TARGET_FLAG,
    {.name = "--may-compile",
     .help = "with --aot: compile for devices that no code fits",
     .type = FLAG_SWITCH},
    DEFINE_FLAG,
    IMPORT_FLAG,
    JSON_FLAG,
};

static const flag_doc explain_flags[] = {JSON_FLAG};

static const flag_doc devices_flags[] = {JSON_FLAG};

static const flag_doc doctor_flags[] = {
    {.name = "--probe",
     .help = "test every float operation; about a second per device",
     .type = FLAG_SWITCH},
    JSON_FLAG,
};

static const flag_doc generate_flags[] = {
    NUMBER_FLAG("--seed", false, "seed of the program (default 0)"),
    NUMBER_FLAG("--size", false,
                "approximate number of statements (default 24)"),
    NUMBER_FLAG("--count", false, "number of programs, with consecutive seeds"),
    {.name = "--output",
     .letter = "-o",
     .value = "DIR",
     .help = "write seed-N.vyre and its data, and print how to run it",
     .type = FLAG_TEXT},
    SWITCH_FLAG("--run", "run it and print a hash of all outputs"),
    {.name = "--backend",
     .value = "NAME",
     .help = "device for --run, as in 'vyre run'",
     .type = FLAG_DEVICE},
    SWITCH_FLAG("--math", "use exp, sin, pow and other functions"),
    SWITCH_FLAG("--no-f64", "without f64"),
    SWITCH_FLAG("--no-int64", "without u64 and i64"),
    SWITCH_FLAG("--no-narrow",
                "without elements narrower than 32 bits, except bool"),
    SWITCH_FLAG("--no-shared", "without shared buffers"),
    SWITCH_FLAG("--no-barriers", "without barrier() and uniform()"),
    SWITCH_FLAG("--no-grid-barriers", "without grid_barrier()"),
    SWITCH_FLAG("--no-atomics", "without atomics"),
    SWITCH_FLAG("--no-atomics64", "without atomics on u64 and i64"),
    SWITCH_FLAG("--only-add64",
                "64-bit atomics: only atomic_add with an unused result"),
    SWITCH_FLAG("--no-out-of-range", "without out-of-bounds accesses"),
    SWITCH_FLAG("--no-loops", "without loops"),
    SWITCH_FLAG("--no-functions", "without functions"),
    JSON_FLAG,
};

static const flag_doc conform_flags[] = {
    {.name = "--backend",
     .value = "NAME",
     .help = "device to test, as in 'vyre run'",
     .type = FLAG_TEXT,
     .required = true},
    {.name = "--option",
     .value = "BACKEND.KEY=VALUE",
     .help = "option of a backend; separate several by commas,\n"
             "as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    NUMBER_FLAG("--programs", false,
                "number of random programs to compare with ref\n"
                "(default 0)"),
    NUMBER_FLAG("--seed", false,
                "seed of the data and of the first random program"),
    {.name = "--filter",
     .value = "TEXT",
     .help = "run only cases whose name contains TEXT",
     .type = FLAG_TEXT},
    SWITCH_FLAG("--list", "list the cases and their expected outcome"),
    {.name = "--case",
     .value = "NAME",
     .help = "run one case in this process, for debugging",
     .type = FLAG_TEXT},
    NUMBER_FLAG("--jobs", false,
                "cases to run at a time (default: one per processor)"),
    NUMBER_FLAG("--timeout", false,
                "time limit of a case in seconds (default 60)"),
    {.name = "--expectations",
     .value = "FILE",
     .help = "file of expected outcomes; replaces the built-in list",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc queue_flags[] = {
    NUMBER_FLAG("--initial", true, "items in the queue before the launch"),
    NUMBER_FLAG("--capacity", true, "items that the queue can hold"),
    NUMBER_FLAG("--entry-bytes", true, "bytes of one item"),
    NUMBER_FLAG("--control-bytes", true, "bytes of head, tail and flags"),
    NUMBER_FLAG("--budget", true, "device memory available, in bytes"),
    NUMBER_FLAG("--drain", false, "drain in chunks of at most N items"),
    {.name = "--host-sync",
     .value = "WHEN",
     .help = "final (default): the host reads the queue once, at the end;\n"
             "participates: the host reads while draining (refused)",
     .type = FLAG_CHOICE,
     .choices = sync_choices},
    JSON_FLAG,
};

static const flag_doc expansion_flags[] = {
    NUMBER_FLAG("--initial", true, "items in the queue before the launch"),
    NUMBER_FLAG("--expansion", true, "items that the kernel may push"),
    NUMBER_FLAG("--entry-bytes", true, "bytes of one item"),
    NUMBER_FLAG("--control-bytes", true, "bytes of head, tail and flags"),
    NUMBER_FLAG("--budget", true, "device memory available, in bytes"),
    JSON_FLAG,
};

static const flag_doc frontier_flags[] = {
    {.name = "--place",
     .help = "also place every part of every wave in one allocation",
     .type = FLAG_SWITCH},
    NUMBER_FLAG("--alignment", false,
                "alignment of these offsets in bytes (default 256)"),
    {.name = "--svg",
     .value = "FILE",
     .help = "draw the groups, the budget and the placement",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc place_flags[] = {
    {.name = "--csv",
     .help = "answer in MiniMalloc's CSV: id,lower,upper,size,offset",
     .type = FLAG_SWITCH},
    {.name = "--svg",
     .value = "FILE",
     .help = "draw the placement",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc bindings_flags[] = {KERNEL_FLAG, DEFINE_FLAG, IMPORT_FLAG,
                                          JSON_FLAG};

#define BACKEND_FLAG                                      \
  {.name = "--backend",                                   \
   .value = "NAME",                                       \
   .help =                                                \
       "device: auto (the default) or a name listed by\n" \
       "'vyre devices'",                                  \
   .type = FLAG_DEVICE}

#define DEVICES_FLAG                                                   \
  {.name = "--backend",                                                \
   .value = "NAMES",                                                   \
   .help =                                                             \
       "devices in order of preference, separated by commas, or all\n" \
       "(default)",                                                    \
   .type = FLAG_TEXT}

static const flag_doc tune_flags[] = {
    KERNEL_FLAG,
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "contents of a buffer or uniform, as in 'vyre run';\n"
             "inputs that are not set are made up, as in 'vyre bench'",
     .type = FLAG_LIST},
    {.name = "--size",
     .value = "N",
     .help = "elements of buffers that are made up (default 1048576)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1 << 28},
    {.name = "--grid",
     .value = "X[,Y[,Z]]",
     .help = "number of workgroups; by default enough to cover the data.\n"
             "With a given grid, the workgroup size stays",
     .type = FLAG_TEXT},
    BACKEND_FLAG,
    {.name = "--seconds",
     .value = "N",
     .help = "time for compiling and measuring, at most 3600 (default 5)",
     .type = FLAG_U64,
     .min = 1,
     .max = 3600},
    SWITCH_FLAG("--trial", "do not store the choice"),
    SWITCH_FLAG("--forget", "remove what is stored for the kernel"),
    {.name = "--option",
     .value = "BACKEND.KEY=NUMBER",
     .help = "option of a backend; separate several by commas,\n"
             "as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc route_explain_flags[] = {
    KERNEL_FLAG,
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "contents of a buffer or uniform, as in 'vyre run';\n"
             "inputs that are not set are made up, as in 'vyre bench'",
     .type = FLAG_LIST},
    {.name = "--size",
     .value = "N",
     .help = "elements of buffers that are made up (default 1048576)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1 << 28},
    {.name = "--grid",
     .value = "X[,Y[,Z]]",
     .help = "number of workgroups; by default enough to cover the data",
     .type = FLAG_TEXT},
    DEVICES_FLAG,
    {.name = "--policy",
     .value = "POLICY",
     .help = "fixed, capable or fastest (default)",
     .type = FLAG_TEXT},
    {.name = "--runs",
     .value = "N",
     .help = "dispatches to route, at most 100000 (default 200)",
     .type = FLAG_U64,
     .min = 1,
     .max = 100000},
    {.name = "--option",
     .value = "BACKEND.KEY=NUMBER",
     .help = "option of a backend; separate several by commas,\n"
             "as in $VYRE_OPTIONS",
     .type = FLAG_TEXT},
    JSON_FLAG,
};

static const flag_doc route_replay_flags[] = {DEVICES_FLAG, JSON_FLAG};

static const flag_doc cache_flags[] = {JSON_FLAG};

#include "cli/flow_flags.h"
#include "cli/graph_flags.h"

#define COMPILE_FLAGS                                           \
  KERNEL_FLAG, DEFINE_FLAG, IMPORT_FLAG, BACKEND_FLAG,          \
      {.name = "--workgroup",                                   \
       .value = "X[,Y[,Z]]",                                    \
       .help = "workgroup size to use instead of the kernel's", \
       .type = FLAG_TEXT},                                      \
  {                                                             \
    .name = "--ulp-budget", .value = "N",                       \
    .help = "ULP budget to compile for (0 to 255, default 0)",  \
    .type = FLAG_U64, .max = UINT8_MAX                          \
  }

static const flag_doc compile_flags[] = {COMPILE_FLAGS, JSON_FLAG};

static const flag_doc inspect_flags[] = {
    COMPILE_FLAGS,
    SWITCH_FLAG("--why", "explain the vector width and tier of device cpu"),
    JSON_FLAG,
};

static const flag_doc cache_prune_flags[] = {
    SWITCH_FLAG("--all", "remove every entry"),
    {.name = "--bytes",
     .value = "N",
     .help = "keep the most recently used entries, up to N bytes",
     .type = FLAG_U64,
     .min = 1},
    JSON_FLAG,
};

const command_doc command_table[] = {
    {.name = "check",
     .summary = "check kernels and explain every mistake",
     .operand_kind = OPERAND_FILES,
     .operand = "FILE|-...",
     .flags = check_flags,
     .flag_count = COUNT(check_flags),
     .body = check_body,
     .example = "example:\n"
                "  vyre check examples/saxpy.vyre\n"},
    {.name = "fmt",
     .summary = "format kernel files",
     .operand_kind = OPERAND_FILES,
     .operand = "FILE|-...",
     .flags = fmt_flags,
     .flag_count = COUNT(fmt_flags),
     .body = fmt_body,
     .example = "example:\n"
                "  vyre fmt -w examples/saxpy.vyre\n"},
    {.name = "lsp",
     .summary = "serve editors: diagnostics, hover, rename, completion",
     .flags = lsp_flags,
     .flag_count = COUNT(lsp_flags),
     .body = "Speaks the Language Server Protocol on standard input and "
             "output. Editors start\n"
             "it; docs/how-to/set-up-an-editor.md shows how.\n",
     .example = "in Neovim:\n"
                "  vim.lsp.start({name = 'vyre', cmd = {'vyre', 'lsp'}})\n"},
    {.name = "grammar",
     .summary = "print the syntax of kernels for highlighting in editors",
     .flags = grammar_flags,
     .flag_count = COUNT(grammar_flags),
     .body = "The output comes from the tables of the parser. The folder "
             "editors/ has it.\n",
     .example = "example:\n"
                "  vyre grammar --to vim\n"},
    {.name = "run",
     .summary = "run a kernel on data and print the result",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = run_flags,
     .flag_count = COUNT(run_flags),
     .body = run_body,
     .example = run_example},
    {.name = "bench",
     .summary = "time a kernel and say what limits it",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = bench_flags,
     .flag_count = COUNT(bench_flags),
     .body = bench_body,
     .example = bench_example},
    {.name = "tune",
     .summary = "find the fastest settings of a kernel",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = tune_flags,
     .flag_count = COUNT(tune_flags),
     .body = tune_body,
     .example = "example:\n"
                "  vyre tune examples/mandelbrot.vyre --grid 32,32\n"},
    {.name = "emit",
     .summary = "print a kernel as IR, LIR, C, LLVM IR, assembly or SPIR-V",
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
     .summary = "show the resources that a compiled kernel needs",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = inspect_flags,
     .flag_count = COUNT(inspect_flags),
     .body = inspect_body,
     .example = "example:\n"
                "  vyre inspect examples/saxpy.vyre --backend cpu --why\n"},
    {.name = "build",
     .summary = "compile kernels ahead of time, into a package",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = build_flags,
     .flag_count = COUNT(build_flags),
     .body = build_body,
     .example = "example:\n"
                "  vyre build examples/saxpy.vyre -o saxpy.vpk\n"
                "  vyre inspect saxpy.vpk\n"},
    {.name = "embed",
     .summary = "generate a C header with kernels and functions to run them",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = embed_flags,
     .flag_count = COUNT(embed_flags),
     .body = embed_body,
     .example = "example:\n"
                "  vyre embed examples/saxpy.vyre -o saxpy.h\n"
                "  vyre embed examples/saxpy.vyre --aot -o saxpy.h\n"},
    {.name = "explain",
     .summary = "explain a rule or finding, with a bad and a good example",
     .operand_kind = OPERAND_RULE,
     .operand = "[RULE]",
     .flags = explain_flags,
     .flag_count = COUNT(explain_flags),
     .body = "RULE is the word in brackets after an error: a rule of the "
             "language,\n"
             "such as V012, or a finding of 'vyre run --check': race,\n"
             "out_of_bounds or order_dependence. Without RULE, lists all.\n",
     .example = "example:\n"
                "  vyre explain V012\n"},
    {.name = "generate",
     .summary = "generate random programs with data, to test devices",
     .flags = generate_flags,
     .flag_count = COUNT(generate_flags),
     .body = generate_body,
     .example = "example: ten programs that any device must agree on\n"
                "  vyre generate --seed 1 --count 10 --run\n"},
    {.name = "devices",
     .summary = "list the devices and their capabilities",
     .flags = devices_flags,
     .flag_count = COUNT(devices_flags),
     .body = devices_body,
     .example = "example:\n"
                "  vyre devices\n"},
    {.name = "doctor",
     .summary = "test the installation and suggest fixes",
     .flags = doctor_flags,
     .flag_count = COUNT(doctor_flags),
     .body = doctor_body,
     .example = "example:\n"
                "  vyre doctor --probe\n"},
    {.name = "conform",
     .summary = "run the conformance suite on a device",
     .flags = conform_flags,
     .flag_count = COUNT(conform_flags),
     .body = conform_body,
     .example = "example: all cases, and 1000 random programs\n"
                "  vyre conform --backend ref --programs 1000 --seed 1\n"},
    {.name = "flow plan",
     .summary = "plan the groups and the memory of a flow file",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = flow_plan_flags,
     .flag_count = COUNT(flow_plan_flags),
     .body = flow_body,
     .example = "example:\n"
                "  vyre flow plan examples/flow/sharpen.flow --svg plan.svg\n"},
    {.name = "flow run",
     .summary = "run a flow file on one device or several",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = flow_run_flags,
     .flag_count = COUNT(flow_run_flags),
     .body = flow_body,
     .example = "example: the same bits on two devices\n"
                "  vyre flow run examples/flow/sharpen.flow --backend "
                "cpu,ref\n"},
    {.name = "graph bfs",
     .summary = "breadth-first search: the depth of each vertex",
     .operand_kind = OPERAND_FILE,
     .operand = "GRAPH|-",
     .flags = graph_bfs_flags,
     .flag_count = COUNT(graph_bfs_flags),
     .body = graph_body,
     .example = "example: one hash from two devices\n"
                "  vyre graph bfs rmat:16:16 --backend cpu,ref\n"},
    {.name = "graph components",
     .summary = "connected components: the lowest vertex of each",
     .operand_kind = OPERAND_FILE,
     .operand = "GRAPH|-",
     .flags = graph_components_flags,
     .flag_count = COUNT(graph_components_flags),
     .body = graph_body,
     .example = "example:\n"
                "  vyre graph components rmat:16:16\n"},
    {.name = "graph pagerank",
     .summary = "PageRank with equal bits on every device",
     .operand_kind = OPERAND_FILE,
     .operand = "GRAPH|-",
     .flags = graph_pagerank_flags,
     .flag_count = COUNT(graph_pagerank_flags),
     .body = graph_body,
     .example = "example:\n"
                "  vyre graph pagerank rmat:16:16 --iterations 50\n"},
    {.name = "graph sssp",
     .summary = "shortest paths from one vertex, by edge weights",
     .operand_kind = OPERAND_FILE,
     .operand = "GRAPH|-",
     .flags = graph_sssp_flags,
     .flag_count = COUNT(graph_sssp_flags),
     .body = graph_body,
     .example = "example:\n"
                "  vyre graph sssp rmat:16:16 --source 5 --delta 32\n"},
    {.name = "graph triangles",
     .summary = "count triangles",
     .operand_kind = OPERAND_FILE,
     .operand = "GRAPH|-",
     .flags = graph_triangles_flags,
     .flag_count = COUNT(graph_triangles_flags),
     .body = graph_body,
     .example = "example:\n"
                "  vyre graph triangles rmat:16:16\n"},
    {.name = "plan queue",
     .summary = "plan the memory of a device work queue",
     .flags = queue_flags,
     .flag_count = COUNT(queue_flags),
     .body = "N is a whole number from 0 to 18446744073709551615.\n",
     .example = queue_example},
    {.name = "plan expansion",
     .summary = "plan the largest queue that fits a budget",
     .flags = expansion_flags,
     .flag_count = COUNT(expansion_flags),
     .body = expansion_body,
     .example = expansion_example},
    {.name = "plan frontier",
     .summary = "group waves so that each group fits a byte budget",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = frontier_flags,
     .flag_count = COUNT(frontier_flags),
     .body = frontier_body,
     .example = frontier_example},
    {.name = "plan place",
     .summary = "place intervals of memory in one allocation",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = place_flags,
     .flag_count = COUNT(place_flags),
     .body = place_body,
     .example = "example:\n"
                "  vyre plan place examples/plans/minimalloc.csv --csv\n"},
    {.name = "plan bindings",
     .summary = "plan the bindings of a kernel: roles, order and sizes",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = bindings_flags,
     .flag_count = COUNT(bindings_flags),
     .body = bindings_body,
     .example = "example:\n"
                "  vyre plan bindings examples/plans/saxpy.json\n"},
    {.name = "route explain",
     .summary = "measure a kernel on all devices and explain the choice",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = route_explain_flags,
     .flag_count = COUNT(route_explain_flags),
     .body = route_explain_body,
     .example = "example:\n"
                "  vyre route explain examples/saxpy.vyre --backend cpu,ref\n"},
    {.name = "route replay",
     .summary = "run the file of a difference again",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = route_replay_flags,
     .flag_count = COUNT(route_replay_flags),
     .body = route_replay_body,
     .example = "example:\n"
                "  vyre route replay difference-7-0.vyreshadow\n"},
    {.name = "cache list",
     .summary = "list the cached kernels",
     .flags = cache_flags,
     .flag_count = COUNT(cache_flags),
     .body = cache_where,
     .example = "example:\n"
                "  vyre cache list\n"},
    {.name = "cache explain",
     .summary = "tell a hit from a miss, and name the difference",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = compile_flags,
     .flag_count = COUNT(compile_flags),
     .body = cache_explain_body,
     .example = "example:\n"
                "  vyre cache explain examples/saxpy.vyre\n"},
    {.name = "cache verify",
     .summary = "check every entry for corruption",
     .flags = cache_flags,
     .flag_count = COUNT(cache_flags),
     .body = "Exits with 1 if an entry is corrupt. Corrupt entries are never\n"
             "used; compiling their kernel replaces them.\n",
     .example = "example:\n"
                "  vyre cache verify\n"},
    {.name = "cache prune",
     .summary = "remove corrupt and least recently used entries",
     .flags = cache_prune_flags,
     .flag_count = COUNT(cache_prune_flags),
     .body = "Without a flag, removes entries until the rest fits into\n"
             "VYRE_CACHE_BYTES. Other files in the directory stay.\n",
     .example = "example: keep a megabyte\n"
                "  vyre cache prune --bytes 1048576\n"},
};

const size_t command_count = COUNT(command_table);

const command_group command_groups[] = {
    {.name = "cache",
     .summary = "manage cached kernels: list, explain, verify, prune",
     .title = "manage the cache of compiled kernels",
     .noun = "action",
     .upper = "ACTION",
     .body = cache_where,
     .example = "example:\n"
                "  vyre cache explain examples/saxpy.vyre\n"},
    {.name = "flow",
     .summary = "plan and run graphs of kernels from a file",
     .title = "plan and run wave graphs",
     .noun = "action",
     .upper = "ACTION",
     .body = "A flow file names kernels, resources and waves. All waves run in "
             "one\nsubmission: docs/reference/flow-files.md.\n",
     .example = "example:\n"
                "  vyre flow run examples/flow/sharpen.flow --backend "
                "cpu,ref\n"},
    {.name = "graph",
     .summary = "run graph algorithms on files and generated graphs",
     .title = "run graph algorithms",
     .noun = "algorithm",
     .upper = "ALGORITHM",
     .body = "All work runs in kernels of the language: examples/graph.\n",
     .example = "example:\n"
                "  vyre graph components rmat:16:16 --backend cpu,ref\n"},
    {.name = "plan",
     .summary = "plan bindings, queues, waves and memory without a device",
     .title = "plan bindings, queues, waves and memory",
     .noun = "subject",
     .upper = "SUBJECT",
     .body = "Planning opens no device. Equal input gives equal plans.\n",
     .example = "example:\n"
                "  vyre plan frontier examples/plans/bfs.json --place\n"},
    {.name = "route",
     .summary = "choose a device for a kernel: explain, replay",
     .title = "run work on one of several devices",
     .noun = "action",
     .upper = "ACTION",
     .body = route_body,
     .example = "example:\n"
                "  vyre route explain examples/saxpy.vyre\n"},
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
