/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A backend for vyre in a shared object: it compiles kernels with the C compiler
 * of the system, and runs them on the calling thread.
 *
 * It needs the installed headers of vyre only, and does not link to the
 * library. docs/how-to/write-a-backend.md goes through it. */
#define _XOPEN_SOURCE 700
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vyre/backend.h>

extern char **environ;

enum { PATH_BYTES = 512, MAX_PATH_BYTES = PATH_BYTES - 32 };

/* Options of the table, in its order. */
enum { OPTION_COMMAND, OPTION_LEVEL, OPTION_COUNT };

typedef struct cc_device {
  char command[PATH_BYTES]; /* of the compiler */
  char level[8];            /* "-O1" */
  char folder[PATH_BYTES];  /* temporary files of this device */
  pthread_mutex_t lock;     /* guards kernel_count */
  unsigned long kernel_count;
} cc_device;

typedef int cc_phase(const void *launch, uint64_t first_group,
                     uint64_t group_count, void *scratch);

typedef struct cc_kernel {
  void *library;
  const uint64_t *scratch_bytes; /* one per phase */
  cc_phase *phases[];
} cc_kernel;

/* --- devices ---------------------------------------------------------------*/

/* Returns true if a folder of $PATH has the program `cc`. */
static bool has_compiler(void) {
  const char *path = getenv("PATH");
  while (path && *path) {
    char file[PATH_BYTES];
    size_t length = strcspn(path, ":");
    int size = snprintf(file, sizeof file, "%.*s/cc", (int)length, path);
    if (size > 0 && (size_t)size < sizeof file && access(file, X_OK) == 0) {
      return true;
    }
    path += length + (path[length] == ':');
  }
  return false;
}

static bool describe(const vyre_backend *table, uint32_t index,
                     vyre_device_info *out) {
  (void)table;
  if (index > 0) return false;
  out->description = "C compiler of the system";
  out->driver = "cc backend 1";
  out->note = "an example: compiles with cc, and runs on one thread";
  if (has_compiler()) return true;
  out->note = "no program cc in $PATH";
  out->fix = "apt-get install gcc";
  return false;
}

static void device_close(void *self) {
  cc_device *device = self;
  if (device->folder[0]) (void)rmdir(device->folder);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

static vyre_code device_open(const vyre_backend *table, uint32_t index,
                             const vyre_backend_option_value *options,
                             vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index;
  const vyre_backend_option_value *level = &options[OPTION_LEVEL];
  const char *command = options[OPTION_COMMAND].text;
  const char *temporary = getenv("TMPDIR");
  cc_device *device = calloc(1, sizeof *device);
  if (!device) {
    return vyre_backend_fail(st, VYRE_OUT_OF_MEMORY, VYRE_KIND_NONE,
                             "free memory", "no memory for a device");
  }
  pthread_mutex_init(&device->lock, NULL);
  (void)snprintf(device->command, sizeof device->command, "%s",
                 command ? command : "cc");
  (void)snprintf(device->level, sizeof device->level, "-O%u",
                 level->is_set ? (unsigned)level->number : 1);
  (void)snprintf(device->folder, sizeof device->folder, "%.400s/vyre-cc-XXXXXX",
                 temporary && temporary[0] ? temporary : "/tmp");
  if (!mkdtemp(device->folder)) {
    int error = errno;
    device->folder[0] = '\0';
    device_close(device);
    st->native_code = error;
    return vyre_backend_fail(st, VYRE_UNSUPPORTED_FEATURE,
                             VYRE_KIND_DEVICE_UNAVAILABLE,
                             "set TMPDIR to a folder that can be written",
                             "no temporary folder: %s", strerror(error));
  }
  out->device = device;
  out->caps = (vyre_device_caps){.max_workgroup = {1024, 1024, 1024},
                                 .max_workgroup_invocations = 1024,
                                 .max_shared_bytes = 256 << 10,
                                 .max_buffer_bytes = SIZE_MAX / 2,
                                 .host_alignment = 1,
                                 .borrows_host_memory = true,
                                 .has_f64 = true,
                                 .has_u64 = true,
                                 .has_atomics64 = true};
  return VYRE_OK;
}

/* --- kernels ---------------------------------------------------------------*/

/* Names of the files of one kernel. */
typedef struct kernel_files {
  char source[PATH_BYTES], library[PATH_BYTES], log[PATH_BYTES];
} kernel_files;

static kernel_files name_files(cc_device *device) {
  kernel_files out;
  pthread_mutex_lock(&device->lock);
  unsigned long number = device->kernel_count++;
  pthread_mutex_unlock(&device->lock);
  const char *folder = device->folder;
  (void)snprintf(out.source, PATH_BYTES, "%.450s/k%lu.c", folder, number);
  (void)snprintf(out.library, PATH_BYTES, "%.450s/k%lu.so", folder, number);
  (void)snprintf(out.log, PATH_BYTES, "%.450s/k%lu.log", folder, number);
  return out;
}

static void remove_files(const kernel_files *files) {
  (void)unlink(files->source);
  (void)unlink(files->library);
  (void)unlink(files->log);
}

static bool write_source(const char *path, const vyre_backend_kernel *kernel) {
  FILE *file = fopen(path, "wx");
  if (!file) return false;
  bool is_written =
      fwrite(kernel->code, 1, kernel->code_bytes, file) == kernel->code_bytes;
  return fclose(file) == 0 && is_written;
}

/* Runs the compiler. Returns 0, or its exit status or error number. */
static int run_compiler(const cc_device *device, const kernel_files *files) {
  const char *words[] = {device->command,
                         "-std=c11",
                         device->level,
                         "-fPIC",
                         "-shared",
                         "-w",
                         "-ffp-contract=off",
                         "-fno-math-errno",
                         "-o",
                         files->library,
                         files->source,
                         "-lm",
                         NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 0;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, files->log,
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int error = posix_spawnp(&child, device->command, &actions, NULL,
                           (char *const *)(void *)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return error;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static vyre_code load_failed(vyre_status *st) {
  const char *why = dlerror();
  return vyre_backend_fail(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                           "set TMPDIR to a folder from which programs may run",
                           "a compiled kernel cannot be loaded: %.200s",
                           why ? why : "no memory");
}

static vyre_code compile_failed(const cc_device *device, const char *log,
                                int error, vyre_status *st) {
  char line[160] = "";
  FILE *file = fopen(log, "r");
  if (file) {
    if (!fgets(line, sizeof line, file)) line[0] = '\0';
    (void)fclose(file);
  }
  line[strcspn(line, "\n")] = '\0';
  st->native_code = error;
  return vyre_backend_fail(
      st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
      "set the option cc.command to a C11 compiler, and make sure that the "
      "temporary folder has space",
      "'%.100s' failed with status %d: %s", device->command, error, line);
}

/* Finds the functions of a compiled kernel. */
static cc_kernel *find_phases(void *library, uint32_t count) {
  cc_kernel *kernel =
      calloc(1, sizeof *kernel + count * sizeof *kernel->phases);
  if (!kernel) return NULL;
  kernel->library = library;
  kernel->scratch_bytes = dlsym(library, "entry_scratch");
  bool is_complete = kernel->scratch_bytes != NULL;
  for (uint32_t i = 0; i < count; i++) {
    char name[40];
    (void)snprintf(name, sizeof name, "entry_phase%u", (unsigned)i);
    void *address = dlsym(library, name);
    memcpy(&kernel->phases[i], &address, sizeof address);
    is_complete = is_complete && address;
  }
  if (is_complete) return kernel;
  free(kernel);
  return NULL;
}

static vyre_code kernel_load(void *self, const vyre_backend_kernel *kernel,
                             void **out, vyre_status *st) {
  cc_device *device = self;
  const kernel_files files = name_files(device);
  int error = EIO;
  void *library = NULL;
  if (write_source(files.source, kernel)) {
    error = run_compiler(device, &files);
    if (error == 0) library = dlopen(files.library, RTLD_NOW | RTLD_LOCAL);
  }
  if (library) *out = find_phases(library, kernel->phase_count);
  vyre_code code = VYRE_OK;
  if (error) {
    code = compile_failed(device, files.log, error, st);
  } else if (!*out) {
    code = load_failed(st);
  }
  if (library && !*out) (void)dlclose(library);
  remove_files(&files);
  return code;
}

static void kernel_unload(void *self, void *kernel) {
  (void)self;
  (void)dlclose(((cc_kernel *)kernel)->library);
  free(kernel);
}

/* --- launches --------------------------------------------------------------*/

static vyre_code launch(void *self, void *loaded, vyre_backend_launch *launch,
                        vyre_status *st) {
  (void)self;
  const cc_kernel *kernel = loaded;
  size_t bytes = (size_t)kernel->scratch_bytes[launch->phase];
  void *scratch = NULL;
  if (bytes > 0) {
    scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!scratch) {
      return vyre_backend_fail(st, VYRE_OUT_OF_MEMORY, VYRE_KIND_NONE,
                               "use a smaller workgroup, or free memory",
                               "no memory for %zu bytes of scratch", bytes);
    }
  }
  launch->is_out_of_fuel =
      kernel->phases[launch->phase](launch->arguments, launch->first_group,
                                    launch->group_count, scratch) != 0;
  free(scratch);
  return VYRE_OK;
}

/* --- the table -------------------------------------------------------------*/

static const vyre_device_option options[OPTION_COUNT] = {
    [OPTION_COMMAND] = {.name = "command",
                        .type = VYRE_OPTION_PATH,
                        .help = "C11 compiler"},
    [OPTION_LEVEL] = {
        .name = "level", .max = 3, .help = "optimisation level, as in -O1"}};

static const vyre_backend table = {
    .abi = VYRE_BACKEND_ABI,
    .struct_size = sizeof(vyre_backend),
    .name = "cc",
    .precedence = 90, /* below "ref", which starts no compiler */
    .form = VYRE_BACKEND_FORM_C,
    .is_exact = true, /* C of this machine computes as IEEE 754 says */
    .options = options,
    .option_count = OPTION_COUNT,
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .kernel_load = kernel_load,
    .kernel_unload = kernel_unload,
    .launch = launch};

VYRE_BACKEND_PLUGIN(table)
