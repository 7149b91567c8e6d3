/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/backend.h
 *  Backends outside the library: a table of functions that makes a device
 *  run kernels (docs/how-to/write-a-backend.md).
 *
 *  A program registers a table with vyre_backend_register. A shared object
 *  exports one with VYRE_BACKEND_PLUGIN; contexts load the files that
 *  vyre_context_options.backend_path or $VYRE_BACKEND_PATH names. Both give the
 *  context one more backend, whose devices are opened, listed and routed like
 *  those of the library.
 *
 *  The library checks programs, bindings and sizes before it calls a backend.
 *  It queues and batches dispatches, and runs recordings, launch by launch. It
 *  also runs the host side of a kernel: the phases between grid barriers, and
 *  the memory of values that live across them.
 *
 *  The functions of a table never throw a C++ exception and never jump over
 *  their caller. In C++, call code that may throw through vyre_backend_guard.
 *
 *      static const vyre_backend table = {
 *          .abi = VYRE_BACKEND_ABI,
 *          .struct_size = sizeof(vyre_backend),
 *          .name = "mine",
 *          ...};
 *      VYRE_BACKEND_PLUGIN(table)
 */
#ifndef VYRE_BACKEND_H
#define VYRE_BACKEND_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/status.h"

/** Limits of the backend interface. */
enum {
  VYRE_BACKEND_ABI = 1,   /* version of vyre_backend and all that it uses */
  VYRE_BACKEND_NAME = 32, /* size of a name, with the terminator */
  VYRE_MAX_BACKENDS = 64  /* maximum number of backends of a context */
};

/** Forms in which a backend receives a kernel: X(enumerator, name).
 *
 *  BINARY: the program in its binary form (vyre/binary.h). The backend does all
 *  that the language says: bounds, exact floats, barriers, fuel.
 *
 *  C: C11 text of the lowered kernel, as of `vyre emit --to c`. A phase is the
 *  function
 *
 *      int entry_phaseN(const void *launch, uint64_t first_group,
 *                             uint64_t group_count, void *scratch);
 *
 *  It returns 0, or 1 if the fuel runs out. `launch` is
 *  vyre_backend_launch.arguments. `scratch` has
 *  entry_scratch[N] bytes, aligned to 64, for the call; NULL if that is 0.
 *  `const uint64_t entry_scratch[]` is in the text, too. The code runs in
 *  this process, so each buffer must have a host address.
 *
 *  SPIRV: SPIR-V 1.3 words (docs/explanation/spirv.md). A phase is the entry
 *  point "phaseN". The push constants are vyre_backend_launch.arguments. A
 *  descriptor covers full words, and at least eight bytes. */
#define VYRE_BACKEND_FORM_MAP(X)        \
  X(VYRE_BACKEND_FORM_BINARY, "binary") \
  X(VYRE_BACKEND_FORM_C, "c")           \
  X(VYRE_BACKEND_FORM_SPIRV, "spirv")

/** Form of a kernel. */
typedef enum vyre_backend_form {
#define VYRE_X2(name, text) name,
  VYRE_BACKEND_FORM_MAP(VYRE_X2) VYRE_BACKEND_FORM_COUNT
#undef VYRE_X2
} vyre_backend_form;

/** Features of a device that takes SPIR-V. Zeroed: the minimum of Vulkan 1.1.
 *  Sets of float widths are the bits 32 and 64. */
typedef struct vyre_spirv_features {
  bool has_storage8, has_storage16; /* 8- and 16-bit elements in buffers */
  bool has_int8, has_int16;         /* and in workgroup memory */
  bool has_buffer_atomics64, has_shared_atomics64; /* 64-bit atomics */
  bool has_vulkan_memory_model;                    /* else GLSL450 */
  bool has_device_scope;      /* in the Vulkan memory model */
  bool zeroes_workgroup;      /* initial values of workgroup memory */
  uint8_t keeps_signed_zeros; /* widths of SignedZeroInfNanPreserve */
  uint8_t keeps_subnormals;   /* widths of DenormPreserve */
  uint8_t rounds_to_even;     /* widths of RoundingModeRTE */
  uint32_t push_bytes;        /* maximum push constants; 0: 128 */
  bool block_in_storage; /* launch parameters in a storage buffer, without push
                          * constants */
  uint64_t reserved[4];  /* zero; for future fields */
} vyre_spirv_features;

/** Value of an option of the backend when a device is opened. */
typedef struct vyre_backend_option_value {
  bool is_set;      /* false: the default of the backend */
  uint64_t number;  /* of a number or an enum */
  const char *text; /* of a path; else NULL */
} vyre_backend_option_value;

/** Device that vyre_backend.device_open opened. */
typedef struct vyre_backend_device {
  void *device; /* passed to the other functions; may be NULL */
  /* The fields float_ops, float_op_count, has_print, has_checks, has_disk_cache
   * and imports_host_memory are ignored. The texts live as long as the device.
   * With borrows_host_memory, launches get host memory that is aligned to
   * host_alignment; without it, buffers of the backend only. */
  vyre_device_caps caps;
  uint32_t max_groups[3]; /* workgroups of a launch in x, y, z; 0: no limit */
  uint32_t offset_alignment; /* of views of a buffer, in bytes; 0: 1 */
  vyre_spirv_features spirv; /* only for VYRE_BACKEND_FORM_SPIRV */
  uint64_t reserved[4];      /* zero; for future fields */
} vyre_backend_device;

/** Memory that a kernel uses. BINARY: one entry per buffer of the program, in
 *  its order. C: one per pointer of the launch block. SPIRV: one per
 *  descriptor. */
typedef struct vyre_backend_binding {
  const char *name;       /* of the buffer; "" for memory of the library */
  uint32_t binding;       /* SPIRV: number of the descriptor in set 0 */
  uint32_t element_bytes; /* bytes of an element */
  bool is_uniform;        /* read-only, the same for all invocations. SPIRV: a
                           * uniform buffer; else a storage buffer */
  bool is_shared;  /* BINARY: workgroup memory, which a launch leaves out */
  bool is_written; /* the kernel may write it */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_backend_binding;

/** Kernel to load. All of it is borrowed for the call. */
typedef struct vyre_backend_kernel {
  const char *name;       /* of the kernel */
  vyre_backend_form form; /* of `code` */
  /* Bytes of the code, aligned to 16. A NUL that is not counted follows C
   * text. */
  const void *code;
  size_t code_bytes;                    /* size of `code` */
  uint32_t workgroup[3];                /* size of a workgroup */
  uint32_t phase_count;                 /* 1 for BINARY */
  const vyre_backend_binding *bindings; /* memory of a launch */
  size_t binding_count;                 /* entries of `bindings` */
  uint32_t shared_bytes;                /* SPIRV: workgroup memory */
  uint32_t push_bytes;                  /* SPIRV: push constants */
  uint64_t reserved[4];                 /* zero; for future fields */
} vyre_backend_kernel;

/** Memory of a launch: a part of a buffer, or host memory if the device borrows
 *  it. Empty and shared buffers have neither. */
typedef struct vyre_backend_memory {
  void *buffer;    /* from buffer_create, or NULL */
  uint64_t offset; /* of the first byte in `buffer` */
  void *host;      /* host address, or NULL; set for `buffer` if it has one */
  uint64_t bytes;  /* size */
  uint32_t length; /* elements */
} vyre_backend_memory;

/** One phase of a kernel for workgroups of a grid. */
typedef struct vyre_backend_launch {
  uint32_t phase;   /* below phase_count */
  uint32_t grid[3]; /* workgroups of the dispatch in x, y, z */
  /* C: workgroups to run, numbered with x fastest. */
  uint64_t first_group, group_count;
  /* SPIRV, BINARY: workgroups to run. The kernel adds the position of the first
   * one itself. */
  uint32_t groups[3];
  const vyre_backend_memory *memory; /* as vyre_backend_kernel.bindings */
  const void *arguments;        /* C: launch block. SPIRV: push constants */
  size_t argument_bytes;        /* size of `arguments` */
  uint64_t max_loop_iterations; /* fuel of an invocation */
  /* Time on CLOCK_MONOTONIC, in ns, at which the launch should end with
   * is_timed_out; 0: none. The library checks it between calls. */
  uint64_t deadline_ns;
  /* Set by the backend, all after a success. */
  bool is_out_of_fuel; /* an invocation used up its fuel */
  bool is_timed_out;   /* the deadline has passed, and the launch was stopped */
  uint64_t device_ns;  /* time on the device, with has_device_time */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_backend_launch;

/** Table of a backend.
 *
 *  Ownership: strings and the table are static, or outlive the context.
 *  Threads:   all functions may be called from several threads at the same
 *             time, for one device, kernel or buffer as well. A launch has its
 *             written memory for itself. device_close is the last call for a
 *             device: no kernel, buffer or launch is left.
 *  Errors:    a function that fails returns its code after filling the status,
 *             which is never NULL: vyre_backend_fail does both. */
typedef struct vyre_backend {
  uint32_t abi;         /* VYRE_BACKEND_ABI */
  uint32_t struct_size; /* sizeof(vyre_backend) */
  /* Lower-case letters, digits and '_', with a letter first; unique in a
   * context. */
  const char *name;
  /* "auto" takes the available backend with the highest number, and never one
   * with 0. "vulkan" has 300, if there is a GPU; "cpu" has 200, "ref" 100. */
  uint32_t precedence;
  vyre_backend_form form; /* form in which it takes kernels */
  /* All float operations of the device are exact. Otherwise each is probed when
   * a device is opened for the first time, and replaced where it is wrong.
   * BINARY: must be set. */
  bool is_exact;
  /* BINARY: launches end at their deadline. Without it, a dispatch with a
   * timeout is refused. */
  bool has_deadlines;
  const vyre_device_option *options; /* options of its devices; may be NULL */
  size_t option_count;               /* entries of `options` */
  void *user_data;                   /* for the backend; may be NULL */

  /* Describes device @p index: description, driver, note and fix. The driver
   * text names all versions that results, code or speed depend on. Returns
   * false if the device does not exist; for index 0, the note then says what is
   * missing, and the fix how to install it. Fast, and opens nothing. */
  bool (*describe)(const struct vyre_backend *table, uint32_t index,
                   vyre_device_info *out);
  /* Opens device @p index. @p options has one value per option of the table. */
  vyre_code (*device_open)(const struct vyre_backend *table, uint32_t index,
                           const vyre_backend_option_value *options,
                           vyre_backend_device *out, vyre_status *st);
  /* Closes a device that was opened. NULL: there is nothing to free. */
  void (*device_close)(void *device);
  /* Compiles or loads a kernel; *out may be NULL. */
  vyre_code (*kernel_load)(void *device, const vyre_backend_kernel *kernel,
                           void **out, vyre_status *st);
  /* Frees a kernel that was loaded. NULL: there is nothing to free. */
  void (*kernel_unload)(void *device, void *kernel);
  /* Buffers. All four are NULL if the device uses host memory, which
   * needs borrows_host_memory. New memory is zeroed, @p bytes is not 0, and
   * transfers are inside the buffer and not empty. *host is the address of
   * the memory, aligned to 64, or NULL if the host cannot access it: then the
   * library calls buffer_write and buffer_read. */
  vyre_code (*buffer_create)(void *device, uint64_t bytes, void **out,
                             void **host, vyre_status *st);
  void (*buffer_destroy)(void *device, void *buffer); /* frees a buffer */
  vyre_code (*buffer_write)(void *device, void *buffer, uint64_t offset,
                            const void *data, size_t bytes,
                            vyre_status *st); /* copies from the host */
  vyre_code (*buffer_read)(void *device, void *buffer, uint64_t offset,
                           void *data, size_t bytes,
                           vyre_status *st); /* copies to the host */
  /* Runs a launch and waits for it. After a failure, the contents of written
   * memory are unspecified, and the next launch works. */
  vyre_code (*launch)(void *device, void *kernel, vyre_backend_launch *launch,
                      vyre_status *st);
  uint64_t reserved[8]; /* must be zero */
} vyre_backend;

/** Backend of a context, or a file that was refused. */
typedef struct vyre_backend_info {
  const char *name; /* "" if it is not known */
  /* "built in", "registered", or the path of a file or folder. */
  const char *origin;
  bool is_loaded;       /* false: refused, and the fields below say why */
  uint32_t precedence;  /* of the table */
  vyre_code code;       /* VYRE_OK, or class of the failure */
  vyre_kind kind;       /* exact reason */
  const char *message;  /* "" without a failure */
  const char *fix;      /* "" without a failure */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_backend_info;

VYRE_BEGIN

/** Adds the backend of @p table to @p context. Devices of the context can be
 *  opened by its name at once.
 *  Ownership: borrows the table.
 *  Lifetime:  the table outlives the context and its devices.
 *  Threads:   safe.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE if the version or the size of the table
 *             is another one; VYRE_INVALID_ARGUMENT for a NULL argument, a name
 *             that is taken or not valid, a missing function, an invalid
 *             option, or too many backends; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_backend_register(
    vyre_context *context, const vyre_backend *table, vyre_status *st);

/** Fills *out with entry @p index of the backends of @p context: those of the
 *  library, then registered ones and files in the order of loading, with those
 *  that were refused. Returns false after the last entry. Without a context
 *  (NULL), the entries are those of the library.
 *  Ownership: fills *out. Texts live as long as the context.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API bool vyre_backend_info_at(vyre_context *context, size_t index,
                                   vyre_backend_info *out);

/** Returns the name of a form ("c"), or "?" for an unknown value. Static
 *  storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_backend_form_name(vyre_backend_form form);

VYRE_END

/** Fills the status of a failure, and returns @p code. For functions of a
 *  backend. @p fix is an instruction that resolves the failure; the message is
 *  printed like printf.
 *  Ownership: borrows all arguments.
 *  Threads:   as the status.
 *  Blocks:    never.
 *  Errors:    none. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 5, 6)))
#endif
static inline vyre_code
vyre_backend_fail(vyre_status *st, vyre_code code, vyre_kind kind,
                  const char *fix, const char *format, ...) {
  va_list list;
  va_start(list, format);
  st->code = code;
  st->kind = kind;
  (void)vsnprintf(st->message, sizeof st->message, format, list);
  (void)snprintf(st->fix, sizeof st->fix, "%s", fix);
  va_end(list);
  return code;
}

/** Exports a table from a shared object. */
#ifdef __cplusplus
#define VYRE_BACKEND_PLUGIN(table)                                       \
  extern "C" __attribute__((visibility("default"))) const vyre_backend * \
  vyre_backend_plugin(void);                                             \
  extern "C" const vyre_backend *vyre_backend_plugin(void) {             \
    return &(table);                                                     \
  }
#else
#define VYRE_BACKEND_PLUGIN(table)                            \
  __attribute__((visibility("default"))) const vyre_backend * \
  vyre_backend_plugin(void);                                  \
  const vyre_backend *vyre_backend_plugin(void) {             \
    return &(table);                                          \
  }
#endif

#ifdef __cplusplus
#include <exception>
/** Calls @p body, and turns an exception into a failure of @p code. */
template <class Body>
vyre_code vyre_backend_guard(vyre_status *st, vyre_code code, Body body) {
  try {
    return body();
  } catch (const std::exception &e) {
    return vyre_backend_fail(st, code, VYRE_KIND_NONE,
                             "report this to the author of the backend",
                             "the backend threw an exception: %s", e.what());
  } catch (...) {
    return vyre_backend_fail(st, code, VYRE_KIND_NONE,
                             "report this to the author of the backend",
                             "the backend threw an exception");
  }
}
#endif

#endif
