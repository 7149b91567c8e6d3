/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/command_table.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const sync_choices[] = {"final", "participates", NULL};
static const char *const target_choices[] = {
    "ir", "bin", "lowered", "c", "llvm", "asm", "spirv", "spirv-text", NULL};
static const char *const float_mode_choices[] = {"native", "corrected", "soft",
                                                 NULL};
static const char *const math_choices[] = {"f64", "f64-nofma", "u32", NULL};

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
    JSON_FLAG,
};

static const flag_doc run_flags[] = {
    KERNEL_FLAG,
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "initial contents of a buffer or uniform",
     .type = FLAG_LIST},
    {.name = "--out",
     .value = "NAME=FILE",
     .help = "write a buffer after the run: .npy, .png, .ppm, .pgm, or\n"
             "raw bytes; raw:FILE writes raw bytes whatever the name",
     .type = FLAG_LIST},
    {.name = "--grid",
     .value = "X[,Y[,Z]]",
     .help = "number of workgroups; by default enough on x to cover the data",
     .type = FLAG_TEXT},
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "workgroup size to use instead of the kernel's",
     .type = FLAG_TEXT},
    {.name = "--backend",
     .value = "NAME",
     .help = "device: auto (default: the best available, ref with --check)\n"
             "or a name listed by 'vyre devices'",
     .type = FLAG_DEVICE},
    {.name = "--check",
     .help = "find races, order dependence and out-of-bounds accesses",
     .type = FLAG_SWITCH},
    {.name = "--schedules",
     .value = "N",
     .help = "execution orders that --check tries (default 4);\n"
             "it stops at the first that changes an output",
     .type = FLAG_U64},
    {.name = "--seed",
     .value = "N",
     .help = "seed of the orders that --check tries (default 1)",
     .type = FLAG_U64},
    {.name = "--max-loop-iterations",
     .value = "N",
     .help = "loop iterations allowed per invocation (default 4294967295)",
     .type = FLAG_U64,
     .min = 1},
    {.name = "--values",
     .help = "print every value of every output",
     .type = FLAG_SWITCH},
    {.name = "--trace",
     .value = "FILE",
     .help = "write a trace that Perfetto can show",
     .type = FLAG_TEXT},
    {.name = "--time",
     .help = "print the time for compiling and running",
     .type = FLAG_SWITCH},
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
     .help = "time limit of a dispatch, such as 0.5; compiling does not\n"
             "count. With --replay it applies to each dispatch and replay.\n"
             "Some drivers cannot stop a running workgroup",
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
    {.name = "--replay",
     .value = "N",
     .help = "after the first run, time N dispatches and N replays of a\n"
             "recording, and compare (1 to 1000000)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1000000},
    JSON_FLAG,
};

#define SWITCH_FLAG(flag, text) \
  {.name = (flag), .help = (text), .type = FLAG_SWITCH}

static const flag_doc emit_flags[] = {
    KERNEL_FLAG,
    {.name = "--to",
     .value = "FORM",
     .help = "ir: program text with every default written out; bin: binary\n"
             "form; lowered: LIR, the input of code generators; c: C11;\n"
             "llvm, asm: code that device cpu runs on this machine;\n"
             "spirv: Vulkan module; spirv-text: its disassembly, with names",
     .type = FLAG_CHOICE,
     .choices = target_choices,
     .required = true},
    {.name = "--dump-after",
     .value = "PASS",
     .help = "LIR after a pass: inline, build, legalize-floats,\n"
             "legalize-memory, cse-dce or legalize-control (the last)",
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
     .help = "vector width of llvm and asm: 1, 4, 8, 16 or 32\n"
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
     .value = "BACKEND.KEY=NUMBER",
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

static const flag_doc bindings_flags[] = {KERNEL_FLAG, JSON_FLAG};

#define BACKEND_FLAG                                      \
  {.name = "--backend",                                   \
   .value = "NAME",                                       \
   .help =                                                \
       "device: auto (the default) or a name listed by\n" \
       "'vyre devices'",                                  \
   .type = FLAG_DEVICE}

static const flag_doc cache_flags[] = {JSON_FLAG};

static const flag_doc compile_flags[] = {
    KERNEL_FLAG,
    BACKEND_FLAG,
    {.name = "--workgroup",
     .value = "X[,Y[,Z]]",
     .help = "workgroup size to use instead of the kernel's",
     .type = FLAG_TEXT},
    {.name = "--ulp-budget",
     .value = "N",
     .help = "ULP budget to compile for (0 to 255, default 0)",
     .type = FLAG_U64,
     .max = UINT8_MAX},
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

static const char cache_where[] =
    "The cache is the directory VYRE_CACHE_DIR, or vyre in XDG_CACHE_HOME, or\n"
    "~/.cache/vyre. It holds at most VYRE_CACHE_BYTES bytes (256 MiB). It is "
    "used\n"
    "only if the directory belongs to you and has mode 700.\n";

static const char cache_explain_body[] =
    "Reports whether compiling the kernel would hit the cache. On a miss, "
    "names the\n"
    "field of the key in which the nearest entry of the same program differs, "
    "and\n"
    "prints the whole key. Compiles nothing.\n";

static const char check_body[] =
    "Parses every FILE (- is standard input), checks names and types, and "
    "proves\n"
    "that barriers are reached by all invocations of a workgroup or by none. "
    "Each\n"
    "diagnostic has a position, a fix and the id of a rule ('vyre explain "
    "ID'). A\n"
    "file without a kernel is an error.\n"
    "\n"
    "--accesses lists the buffer accesses of each kernel. An access that is "
    "not\n"
    "proven in bounds gets a run-time check, which costs one comparison.\n";

static const char fmt_body[] =
    "Changes white space only; comments, names and literals stay. Without a "
    "flag,\n"
    "prints the formatted text. -w rewrites only files that change. A file "
    "with\n"
    "syntax errors is reported and left alone; the exit code is then 1.\n";

static const char run_body[] =
    "SPEC, for a buffer of N elements:\n"
    "  data.npy         a NumPy file of the same element type, any shape\n"
    "  photo.png        the samples of a picture; also .ppm, .pgm and .pnm\n"
    "  FILE             raw bytes, little endian; - is standard input\n"
    "  raw:FILE         raw bytes, whatever the name of the file\n"
    "  zeros:N          N zeros\n"
    "  iota:N           0, 1, 2, ... N-1\n"
    "  fill:V:N         N times V\n"
    "  random:SEED:N    N values that depend on the seed only: integers over\n"
    "                   their whole range, floats in [0, 1)\n"
    "  values:V,V,...   these values\n"
    "  text:WORDS       the bytes of WORDS (u8 and bytes only)\n"
    "  V                one value, for a uniform\n"
    "Write ./zeros:4 for a file of that name.\n"
    "\n"
    "Every buffer that the kernel reads must be set. An output (declared "
    "write, or\n"
    "with the attribute output) starts as zeros. An output without a fixed "
    "size has\n"
    "as many elements as the buffer in over(...), or else as the largest "
    "input;\n"
    "--set NAME=zeros:N chooses another size.\n"
    "\n"
    "Without --out, outputs are printed as a table, long ones shortened. The "
    "device\n"
    "and the grid are printed to standard error.\n"
    "\n"
    "A picture of width W, height H and C channels (1 grey, 2 grey and alpha,\n"
    "3 RGB, 4 RGBA) has W x H x C elements, row by row: u8 for 8 bits per "
    "sample,\n"
    "u16 for 16, f32 from 0 to 1; or W x H elements u32, red in the lowest "
    "byte.\n"
    "--out NAME=FILE.png:WxHxC writes one; :WxH derives the channels from the "
    "size\n"
    "of the buffer (.pgm: 1, .ppm: 3). If the size of the buffer follows from\n"
    "another buffer, more than 1 channel must be given. Without a shape, the "
    "shape\n"
    "is that of the picture that the buffer was read from, or of a "
    "two-dimensional\n"
    "--grid; otherwise the flag is refused.\n"
    "--set NAME=FILE.png:WxHxC refuses a file of any other shape.\n"
    "\n"
    "Exit codes: 0 success, 1 error in the kernel or its data (findings of "
    "--check\n"
    "too), 2 error in the command line (a missing --set too), 3 device "
    "failure.\n";

static const char run_example[] =
    "example:\n"
    "  vyre run examples/saxpy.vyre --set a=2 --set x=iota:8 \\\n"
    "           --set y=fill:0.5:8\n";

static const char emit_body[] =
    "FILE is a kernel file or the binary form of one kernel. The output is "
    "one\n"
    "kernel; -k selects it if the file has several. LIR gives the same bits "
    "for\n"
    "every target. --json adds counts: instructions, buffer accesses, accesses "
    "that\n"
    "need no check, and the vector width of llvm and asm.\n"
    "\n"
    "With --float-mode, --math, --no-u64 or --no-narrow, llvm prints code for\n"
    "another machine and does not compile it. If LLVM is missing, nothing is\n"
    "compiled either, and a note says so.\n";

static const char inspect_body[] =
    "Compiles the kernel for the device without running it. Prints workgroup "
    "and\n"
    "grid, shared memory, the launches of one dispatch (grid barriers split "
    "it),\n"
    "bytes that an invocation keeps between them, the bindings and, for "
    "devices\n"
    "that compile, vector width and code size. Values that a device does not "
    "have\n"
    "are left out.\n";

static const char embed_body[] =
    "The header contains every kernel of FILE and, for each, functions that "
    "take its\n"
    "data as C types and run it, so that an application ships one file. It "
    "includes\n"
    "<vyre/vyre.h> only and is valid C11 and C++11. Kernels of up to 4000 "
    "bytes are\n"
    "stored as text, longer ones in binary form. Equal input gives equal "
    "output.\n"
    "\n"
    "Names: KERNEL_run, KERNEL_pipeline, KERNEL_dispatch and KERNEL_program, "
    "with\n"
    "parameters named after the buffers. A parameter that is a keyword of C or "
    "C++\n"
    "gets the suffix _. The prefix k_ is added to names that begin with _, "
    "vyre_ or\n"
    "VYRE_, and to parameters of two or more letters that begin with a "
    "capital.\n";

static const char generate_body[] =
    "Generated programs are valid, free of races and independent of the order "
    "of\n"
    "atomics, so that each has exactly one result. Equal flags give the same "
    "program\n"
    "and data on every machine.\n";

static const char devices_body[] =
    "--backend accepts these names; auto selects the first that is available. "
    "A\n"
    "backend without a device says what is missing. Float operations are "
    "native\n"
    "(exact in hardware), corrected (repaired by extra instructions) or soft "
    "(done\n"
    "by integer arithmetic); all give the same bits.\n";

static const char doctor_body[] =
    "Compiles two kernels on every device, runs one, compares its result with "
    "one\n"
    "computed on the processor, and prints the time taken. Says what is "
    "missing and\n"
    "how to install it.\n"
    "\n"
    "--probe feeds a million edge cases and random numbers to every float "
    "operation\n"
    "of every device and compares the results with exact ones. A device that "
    "is not\n"
    "exact by definition is probed when it is first opened; the cache keeps "
    "the\n"
    "result.\n"
    "\n"
    "Exit codes: 0 success, 2 error in the command line, 3 if no device opens, "
    "if\n"
    "the device that auto selects runs no kernel, or if a result was wrong.\n";

static const char conform_body[] =
    "Each case runs in a process of its own, so that a crash, hang or leak "
    "fails\n"
    "that case alone. --jobs processes load the libraries once and fork for "
    "each\n"
    "case. A case reports how many kernels it ran on which device; a run "
    "without\n"
    "any fails. Failing random programs are reduced before they are reported.\n"
    "\n"
    "A line of the expectations file has a case, then 'unsupported' (not run) "
    "or\n"
    "'fails' (must fail), then a reason. The case may end in *. A listed case "
    "that\n"
    "passes is a failure, and so is a line that matches no case.\n";

static const char queue_example[] =
    "example: 64Ki items of 16 bytes, drained 8Ki at a time\n"
    "  vyre plan queue --initial 4096 --capacity 65536 --entry-bytes 16 \\\n"
    "                  --control-bytes 128 --budget 2097152 --drain 8192\n";

static const char expansion_body[] =
    "The queue should hold initial + expansion items. If the budget is "
    "smaller, the\n"
    "capacity is reduced, but never below the initial items.\n";

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
    "exist; it is ignored. The printed table numbers the intervals from 0 in "
    "the\n"
    "order of the input; JSON, CSV and SVG use ids.\n";

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
    {.name = "run",
     .summary = "run a kernel on data and print the result",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = run_flags,
     .flag_count = COUNT(run_flags),
     .body = run_body,
     .example = run_example},
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
     .flags = compile_flags,
     .flag_count = COUNT(compile_flags),
     .body = inspect_body,
     .example = "example:\n"
                "  vyre inspect examples/saxpy.vyre --backend cpu\n"},
    {.name = "embed",
     .summary = "generate a C header with kernels and functions to run them",
     .operand_kind = OPERAND_FILE,
     .operand = "FILE|-",
     .flags = embed_flags,
     .flag_count = COUNT(embed_flags),
     .body = embed_body,
     .example = "example:\n"
                "  vyre embed examples/saxpy.vyre -o saxpy.h\n"},
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
    {.name = "plan",
     .summary = "plan bindings, queues, waves and memory without a device",
     .title = "plan bindings, queues, waves and memory",
     .noun = "subject",
     .upper = "SUBJECT",
     .body = "Planning opens no device. Equal input gives equal plans.\n",
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
