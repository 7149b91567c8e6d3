/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dlpack.h
 *  Tensors of other libraries (NumPy, PyTorch, JAX ...) as resident buffers, and
 *  resident buffers as tensors of theirs, without a copy, by DLPack 1.
 *
 *  The structs are the published, stable binary interface. If you include
 *  dlpack.h of your own, include it first, or define VYRE_NO_DLPACK_TYPES. */
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

/** Minor versions only add numbers; another major version has another layout
 *  behind `flags`. */
typedef struct {
  uint32_t major, minor;
} DLPackVersion;

/** Where a tensor is; vyre takes and gives those of the CPU. */
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
  int64_t *strides; /* in elements; NULL: rows one after the other */
  uint64_t byte_offset;
} DLTensor;

/** Before version 1. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to do */
} DLManagedTensor;

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

/** What a tensor turned out to be. */
typedef struct vyre_dlpack_info {
  vyre_element element;
  uint64_t count;    /* of elements, over all dimensions */
  bool is_read_only; /* dispatches, uploads and recordings that would write it
                        are refused */
} vyre_dlpack_info;

/** Makes a resident buffer of a tensor's memory, without a copy.
 *  Ownership: on VYRE_OK the tensor is the buffer's: its deleter is called once,
 *             on whatever thread, when the buffer was freed and no dispatch uses
 *             it any more, at the latest when the device ends. *out is the
 *             caller's (vyre_buffer_destroy). On failure the tensor stays the
 *             caller's, and is not touched.
 *  Lifetime:  fills *info, if not NULL.
 *  Threads:   safe.  Blocks: on the device.
 *  Errors:    VYRE_INVALID_ARGUMENT: tensor_refused for another major version, a
 *             place that is not the CPU, elements that vyre has none like, a
 *             shape that cannot be; copy_needed for rows that do not follow each
 *             other, or memory that is not aligned to its elements or to the
 *             device's host_alignment. VYRE_UNSUPPORTED_FEATURE if the device
 *             cannot use memory of the host. As vyre_buffer_create. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_dlpack_import(vyre_device *device, struct DLManagedTensorVersioned *tensor,
                   vyre_dlpack_info *info, vyre_buffer *out, vyre_status *st);

/** The same for a tensor from before version 1, which is never read-only. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_import_unversioned(
    vyre_device *device, struct DLManagedTensor *tensor, vyre_dlpack_info *info,
    vyre_buffer *out, vyre_status *st);

/** Makes a tensor of the CPU from a resident buffer, without a copy: the first
 *  bytes of it, as @p shape has elements, row after row. @p flags may be 0 or
 *  DLPACK_FLAG_BITMASK_READ_ONLY, which a buffer that is read-only always gets.
 *  Ownership: on VYRE_OK *out is the caller's, and ends by its deleter. The
 *             tensor keeps the buffer's memory and the device: the handle may be
 *             freed before. On failure *out is NULL.
 *  Lifetime:  @p shape is copied.
 *  Threads:   safe; the deleter too, on any thread. Who writes to the tensor
 *             while a dispatch uses the buffer races with it.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT: a dead handle, a shape that is larger than
 *             the buffer or cannot be, other flags (tensor_refused);
 *             VYRE_UNSUPPORTED_FEATURE for memory that only the device sees;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_export(
    vyre_device *device, vyre_buffer buffer, vyre_element element,
    const int64_t *shape, int32_t ndim, uint64_t flags,
    struct DLManagedTensorVersioned **out, vyre_status *st);

/** The same for libraries from before version 1; such a tensor cannot say that
 *  it is read-only, so that buffers which are one are refused (read_only). */
VYRE_API VYRE_NODISCARD vyre_code vyre_dlpack_export_unversioned(
    vyre_device *device, vyre_buffer buffer, vyre_element element,
    const int64_t *shape, int32_t ndim, struct DLManagedTensor **out,
    vyre_status *st);

VYRE_END

#endif
