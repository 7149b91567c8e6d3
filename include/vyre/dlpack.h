/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dlpack.h
 *  DLPack 1: exchange of tensors with NumPy, PyTorch, JAX and other libraries,
 *  without a copy.
 *
 *  The structs are the published, stable binary interface of DLPack. To use
 *  another copy of dlpack.h, include it first or define VYRE_NO_DLPACK_TYPES.
 */
#ifndef VYRE_DLPACK_H
#define VYRE_DLPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/buffer.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/program.h"
#include "vyre/status.h"

VYRE_BEGIN

#if !defined(DLPACK_DLPACK_H_) && !defined(VYRE_NO_DLPACK_TYPES)

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

/** Version of a tensor. Minor versions only add enumerators; the layout after
 *  `flags` depends on the major version. */
typedef struct {
  uint32_t major, minor;
} DLPackVersion;

/** Device of a tensor. vyre supports kDLCPU only. */
typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
} DLDataTypeCode;

typedef struct {
  uint8_t code; /* DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous rows */
  uint64_t byte_offset;
} DLTensor;

/** Tensor of DLPack 0. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to do */
} DLManagedTensor;

/** Tensor of DLPack 1. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Properties of an imported tensor. */
typedef struct vyre_dlpack_info {
  vyre_element element; /* element type */
  uint64_t count;       /* number of elements, over all dimensions */
  /* Uploads, and dispatches and recordings that write to it, are rejected. */
  bool is_read_only;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_dlpack_info;

/** Creates a device buffer from the memory of a tensor, without a copy. Fills
 *  *info, if not NULL.
 *  Ownership: on VYRE_OK the buffer owns the tensor, and the caller owns *out
 *             (vyre_buffer_destroy). The deleter of the tensor is called once,
 *             on any thread, when the buffer is destroyed and no dispatch uses
 *             it, at the latest when the device closes. On failure the caller
 *             keeps the tensor, unchanged.
 *  Threads:   safe.
 *  Blocks:    on the device.
 *  Errors:    VYRE_INVALID_ARGUMENT: tensor_refused for another major version,
 *             a device other than the CPU, an element type without equivalent,
 *             or an invalid shape; copy_needed for rows that are not
 *             contiguous, or memory that is not aligned to its elements or to
 *             host_alignment. VYRE_UNSUPPORTED_FEATURE if the device cannot
 *             use host memory. Those of vyre_buffer_create. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_dlpack_import(vyre_device *device, struct DLManagedTensorVersioned *tensor,
                   vyre_dlpack_info *info, vyre_buffer *out, vyre_status *st);

/** Imports a tensor of DLPack 0, which is never read-only; otherwise as
 *  vyre_dlpack_import. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_import_unversioned(
    vyre_device *device, struct DLManagedTensor *tensor, vyre_dlpack_info *info,
    vyre_buffer *out, vyre_status *st);

/** Creates a CPU tensor from the first bytes of a device buffer, without a
 *  copy. The tensor has @p shape in row-major order. @p flags is 0 or
 *  DLPACK_FLAG_BITMASK_READ_ONLY, which read-only buffers always get.
 *  Ownership: on VYRE_OK the caller owns *out and ends it with its deleter.
 *             The tensor keeps the memory and the device alive; the buffer can
 *             be destroyed earlier. On failure *out is NULL.
 *  Lifetime:  @p shape is copied.
 *  Threads:   safe; the deleter can run on any thread. Writing to the tensor
 *             while a dispatch uses the buffer is a data race.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for an invalid handle, and tensor_refused
 *             for a shape that is invalid or larger than the buffer, or for
 *             other flags; VYRE_UNSUPPORTED_FEATURE for memory that the host
 *             cannot access; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_export(
    vyre_device *device, vyre_buffer buffer, vyre_element element,
    const int64_t *shape, int32_t ndim, uint64_t flags,
    struct DLManagedTensorVersioned **out, vyre_status *st);

/** Exports a tensor of DLPack 0; otherwise as vyre_dlpack_export. DLPack 0 has
 *  no read-only flag, so read-only buffers are rejected (read_only). */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_export_unversioned(
    vyre_device *device, vyre_buffer buffer, vyre_element element,
    const int64_t *shape, int32_t ndim, struct DLManagedTensor **out,
    vyre_status *st);

VYRE_END

#endif
