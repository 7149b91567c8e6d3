/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Longer texts of --help and the manual page, for command_table.c only. */
#ifndef VYRE_TOOLS_CLI_COMMAND_TEXTS_H
#define VYRE_TOOLS_CLI_COMMAND_TEXTS_H

static const char tune_body[] =
    "Measures the kernel with other workgroup sizes and with other settings of "
    "the\n"
    "device: on cpu the vector width, the number of threads and the tier. "
    "Settings\n"
    "never change a result; the results of all variants are compared.\n"
    "\n"
    "The fastest settings are stored in the cache directory, for the kernel, "
    "the\n"
    "device with its driver and options, and the size of the data. Later "
    "compiles\n"
    "of the kernel use them for data of that size.\n"
    "\n"
    "The workgroup size is changed only if the kernel is proven not to depend "
    "on\n"
    "it: it has over(...), reads no id but global_id, has no shared memory and "
    "no\n"
    "barrier, and compares global_id.x with the length of its over(...) "
    "buffer.\n";

static const char route_body[] =
    "Every device gives the same bits, so a router may run a dispatch on any "
    "of\n"
    "them. The policy 'fastest' measures dispatches of each size, and stores "
    "the\n"
    "times in the cache directory.\n";

static const char route_explain_body[] =
    "Routes a number of dispatches, and prints each device with the median of\n"
    "its times, the choice, and the reason. A device that takes more than "
    "four\n"
    "times as long as the best in its first run is not measured further.\n";

static const char route_replay_body[] =
    "FILE was written by a router that found a difference between two devices\n"
    "(vyre_router_options.shadow_folder). Runs its dispatch on every device "
    "and\n"
    "prints a hash of the outputs of each. Exits with 1 if they differ.\n";

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
    "proven in bounds gets a run-time check, which costs one comparison.\n"
    "\n"
    "For a queue kernel it says whether the kernel is proven deterministic, "
    "and\n"
    "otherwise what stands against the proof ('vyre explain "
    "order_unproven').\n";

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

static const char bench_body[] =
    "Runs the kernel until its time is known. Measures the limits of the\n"
    "machine in the same process: bandwidth from memory and from cache, speed "
    "of\n"
    "arithmetic, and the shortest dispatch. Says which of them limits the "
    "kernel.\n"
    "\n"
    "Inputs without --set are made up: floats and narrow integers are random,\n"
    "wide integers count up from 0, float uniforms are 0.5, integer uniforms "
    "are\n"
    "--size. For workgroups with two or three axes, integer uniforms are the "
    "side\n"
    "of a square or cube of --size elements, and the grid covers it.\n"
    "\n"
    "data        bytes of all inputs and outputs, each moved once, or of the\n"
    "            accesses if these are fewer; GB/s are 10^9 bytes a second\n"
    "operations  arithmetic, comparisons and conversions of all invocations, "
    "but\n"
    "            not of indices; fma counts as 2, functions such as exp as 16\n"
    "accesses    bytes of all loads and stores of buffers\n"
    "divergence  operations that vectors execute, over those that invocations\n"
    "            need\n"
    "\n"
    "A copy of the kernel counts operations and accesses in a run that is not\n"
    "timed. Buffers that are read and written are restored before every run.\n";

static const char bench_example[] =
    "example:\n"
    "  vyre bench examples/saxpy.vyre\n"
    "  vyre bench examples/softmax.vyre --grid 2048 --set width=512 \\\n"
    "             --set x=random:1:1048576 --svg softmax.svg\n";

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
    "are left out. A package without --kernel is listed, and nothing is "
    "loaded.\n"
    "\n"
    "--why prints for device cpu a table of the vector widths with the "
    "estimated\n"
    "cycles of an invocation by kind of work, how many rows run together, the\n"
    "ranges into which rows are split, and the size of the LLVM IR. * marks "
    "the\n"
    "chosen width, and lines below the table give the reasons.\n"
    "\n"
    "  arithmetic, division   operations\n"
    "  contiguous, strided    loads and stores of neighbours, or at distances\n"
    "  gather, scatter        accesses lane by lane\n"
    "  masked                 more for lanes that are inactive\n"
    "  atomic                 atomics, lane by lane\n"
    "  divergence             masks of loops that lanes leave one by one\n"
    "  latency                waiting for results of earlier operations\n"
    "  spills                 values that do not fit into registers\n"
    "  overhead               loops, rows, branches, values of workgroups\n";

static const char build_body[] =
    "A package holds every kernel of FILE with code for several targets. An\n"
    "application loads it without a compiler (vyre/package.h), and so do 'vyre "
    "run'\n"
    "and 'vyre inspect'. The bits are those of code that is compiled on the "
    "device.\n"
    "\n"
    "Targets of cpu: x86-64-v2, x86-64-v3, x86-64-v4; a device takes the best "
    "that\n"
    "the processor has. Targets of vulkan: vulkan-native, vulkan-corrected "
    "and\n"
    "vulkan-soft, by the way floats become exact; vulkan-basic, for devices "
    "without\n"
    "64-bit and narrow types; vulkan-llvmpipe, for Mesa's software device. A "
    "target\n"
    "that is not named itself is left out for a kernel that it does not "
    "support.\n"
    "\n"
    "A package is machine code: load only packages that you trust like a "
    "shared\n"
    "library.\n";

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
    "capital.\n"
    "\n"
    "With --aot, the header holds a package instead ('vyre build --help'), and "
    "the\n"
    "functions load its code. Include such a header in one source file: every "
    "copy of\n"
    "the package takes space.\n";

static const char generate_body[] =
    "Generated programs are valid, free of races and independent of the order "
    "of\n"
    "atomics, so that each has exactly one result. Equal flags give the same "
    "program\n"
    "and data on every machine.\n";

static const char devices_body[] =
    "--backend accepts these names. auto selects a GPU if there is one, "
    "otherwise cpu,\n"
    "otherwise ref; it never selects a Vulkan device that runs on the "
    "processor. A\n"
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

#endif
