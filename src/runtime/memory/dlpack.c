/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exchanges tensors with other libraries through DLPack, without copying:
 * imports a tensor as a device buffer, and exports a device buffer as a
 * tensor. */
#include "vyre/dlpack.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/launch.h"
#include "ir/ir.h"
#include "runtime/memory/device_buffer.h"

/* Limit of the dimensions. A tensor with more is taken as corrupt. */
enum { MAX_DIMENSIONS = 64 };

static const struct {
  vyre_element element;
  uint8_t code, bits;
} types[] = {
    {VYRE_ELEMENT_BOOL, kDLBool, 8},
    {VYRE_ELEMENT_U8, kDLUInt, 8},
    {VYRE_ELEMENT_I8, kDLInt, 8},
    {VYRE_ELEMENT_U16, kDLUInt, 16},
    {VYRE_ELEMENT_I16, kDLInt, 16},
    {VYRE_ELEMENT_U32, kDLUInt, 32},
    {VYRE_ELEMENT_I32, kDLInt, 32},
    {VYRE_ELEMENT_U64, kDLUInt, 64},
    {VYRE_ELEMENT_I64, kDLInt, 64},
    {VYRE_ELEMENT_F16, kDLFloat, 16},
    {VYRE_ELEMENT_BF16, kDLBfloat, 16},
    {VYRE_ELEMENT_F32, kDLFloat, 32},
    {VYRE_ELEMENT_F64, kDLFloat, 64},
    {VYRE_ELEMENT_BYTES, kDLUInt, 8}, /* export only: import finds U8 first */
};

enum { TYPES = sizeof types / sizeof types[0] };

/* --- import ------------------------------------------------------------- */

static vyre_code find_element(const DLTensor *t, vyre_element *out,
                              vyre_status *st) {
  for (size_t i = 0; i < TYPES && t->dtype.lanes == 1; i++) {
    if (types[i].code != t->dtype.code || types[i].bits != t->dtype.bits) {
      continue;
    }
    *out = types[i].element;
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
      VYRE_NUMBERS({"type_code", t->dtype.code}, {"bits", t->dtype.bits},
                   {"lanes", t->dtype.lanes}),
      "convert the tensor to bool, an integer of 8 to 64 bits, f16, bf16, f32 "
      "or f64, of one lane",
      "vyre has no element of type code %u with %u bits and %u lanes",
      t->dtype.code, t->dtype.bits, t->dtype.lanes);
}

static vyre_code bad_shape(int64_t extent, int32_t axis, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
      VYRE_NUMBERS({"axis", (uint64_t)axis}, {"extent", (uint64_t)extent}),
      "use extents of 0 or more, and fewer than 2^63 bytes in total",
      "the shape of the tensor is invalid: extent %lld on axis %d",
      (long long)extent, (int)axis);
}

/* Computes the number of elements of a shape, each of @p element bytes. A
 * tensor with an extent of 0 is empty; its other extents are not limited. */
static vyre_code count_elements(const int64_t *shape, int32_t ndim,
                                uint64_t element, uint64_t *out,
                                vyre_status *st) {
  if (ndim < 0 || ndim > MAX_DIMENSIONS) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
        VYRE_NUMBERS({"dimensions", (uint64_t)ndim},
                     {"max_dimensions", MAX_DIMENSIONS}),
        "reshape the tensor to at most 64 dimensions; kernels see a flat "
        "buffer",
        "the tensor has %d dimensions; expected 0 to %d", (int)ndim,
        MAX_DIMENSIONS);
  }
  if (!shape && ndim > 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED,
        "set shape to the address of the extents",
        "the shape of the tensor is NULL, but it has %d dimensions", (int)ndim);
  }
  bool is_empty = false;
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0) return bad_shape(shape[i], i, st);
    if (shape[i] == 0) is_empty = true;
  }
  uint64_t bytes = element;
  for (int32_t i = 0; i < ndim && !is_empty; i++) {
    if (!vyre__mul_u64(bytes, (uint64_t)shape[i], &bytes) ||
        bytes > INT64_MAX || bytes > SIZE_MAX) {
      return bad_shape(shape[i], i, st);
    }
  }
  *out = is_empty ? 0 : bytes / element;
  return VYRE_OK;
}

/* Checks that the tensor is dense and in row-major order. The stride of an
 * axis with one element is ignored. */
static vyre_code check_strides(const DLTensor *t, uint64_t count,
                               vyre_status *st) {
  if (!t->strides || count == 0) return VYRE_OK;
  uint64_t dense = 1;
  for (int32_t i = t->ndim; i-- > 0;) {
    if (t->shape[i] != 1 &&
        (t->strides[i] < 0 || (uint64_t)t->strides[i] != dense)) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
          VYRE_NUMBERS({"axis", (uint64_t)i},
                       {"stride", (uint64_t)t->strides[i]}, {"dense", dense}),
          "make the tensor contiguous first (numpy.ascontiguousarray, "
          "tensor.contiguous())",
          "the tensor is not contiguous: its stride on axis %d is %lld, not "
          "%llu",
          (int)i, (long long)t->strides[i], (unsigned long long)dense);
    }
    dense *= (uint64_t)t->shape[i];
  }
  return VYRE_OK;
}

static vyre_code check_data(const vyre_device *device, const DLTensor *t,
                            uint64_t bytes, uint64_t element, vyre_status *st) {
  uintptr_t data = (uintptr_t)t->data;
  if (bytes == 0) return VYRE_OK;
  if (!t->data || t->byte_offset > UINTPTR_MAX - data ||
      bytes > UINTPTR_MAX - data - t->byte_offset) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
        VYRE_NUMBERS({"bytes", bytes}, {"byte_offset", t->byte_offset}),
        "use a tensor whose data lies in the address space",
        "the tensor has %llu bytes at offset %llu, but its data is %s",
        (unsigned long long)bytes, (unsigned long long)t->byte_offset,
        t->data ? "beyond the address space" : "NULL");
  }
  uint64_t alignment = element;
  if (device->caps.host_alignment > alignment) {
    alignment = device->caps.host_alignment;
  }
  uint64_t excess = (data + t->byte_offset) % alignment;
  if (excess == 0) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
      VYRE_NUMBERS({"alignment", alignment}, {"over", excess}),
      "copy the tensor to memory of vyre_host_alloc, or upload it to a device "
      "buffer",
      "the data of the tensor lies %llu bytes after a multiple of %llu",
      (unsigned long long)excess, (unsigned long long)alignment);
}

static vyre_code import(vyre_device *device, const DLTensor *t,
                        bool is_read_only, void (*release)(void *), void *self,
                        vyre_dlpack_info *info, vyre_buffer *out,
                        vyre_status *st) {
  if (t->device.device_type != kDLCPU) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
        VYRE_NUMBERS({"device_type", (uint64_t)t->device.device_type}),
        "move the tensor to the CPU first",
        "the tensor is on a device of type %d; only type 1, the CPU, is "
        "supported",
        (int)t->device.device_type);
  }
  vyre_dlpack_info info_found = {.is_read_only = is_read_only};
  VYRE_TRY(find_element(t, &info_found.element, st));
  uint64_t element = vyre_element_size(info_found.element);
  VYRE_TRY(count_elements(t->shape, t->ndim, element, &info_found.count, st));
  VYRE_TRY(check_strides(t, info_found.count, st));
  uint64_t bytes = info_found.count * element;
  VYRE_TRY(check_data(device, t, bytes, element, st));
  const vyre__imported_memory memory = {
      .data = bytes > 0 ? (unsigned char *)t->data + t->byte_offset : NULL,
      .size = bytes,
      .is_read_only = is_read_only,
      .release = release,
      .release_user_data = self};
  VYRE_TRY(vyre__device_buffer_import(device, &memory, out, st));
  if (info) *info = info_found;
  return VYRE_OK;
}

static void release_versioned(void *self) {
  DLManagedTensorVersioned *tensor = self;
  if (tensor->deleter) tensor->deleter(tensor);
}

static void release_unversioned(void *self) {
  DLManagedTensor *tensor = self;
  if (tensor->deleter) tensor->deleter(tensor);
}

vyre_code vyre_dlpack_import(vyre_device *device,
                             struct DLManagedTensorVersioned *tensor,
                             vyre_dlpack_info *info, vyre_buffer *out,
                             vyre_status *st) {
  vyre__status_begin(st);
  if (info) *info = (vyre_dlpack_info){0};
  VYRE_REQUIRE(st, out);
  *out = (vyre_buffer){0};
  VYRE_REQUIRE_BOTH(st, device, tensor);
  if (tensor->version.major != DLPACK_MAJOR_VERSION) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED, NULL,
        VYRE_NUMBERS({"major", tensor->version.major},
                     {"expected_major", DLPACK_MAJOR_VERSION}),
        "request version 1 from the producer (max_version=(1, 0)), and call "
        "the deleter of this tensor",
        "the tensor has DLPack version %u.%u; expected 1",
        tensor->version.major, tensor->version.minor);
  }
  bool is_read_only = (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return import(device, &tensor->dl_tensor, is_read_only, release_versioned,
                tensor, info, out, st);
}

vyre_code vyre_dlpack_import_unversioned(vyre_device *device,
                                         struct DLManagedTensor *tensor,
                                         vyre_dlpack_info *info,
                                         vyre_buffer *out, vyre_status *st) {
  vyre__status_begin(st);
  if (info) *info = (vyre_dlpack_info){0};
  VYRE_REQUIRE(st, out);
  *out = (vyre_buffer){0};
  VYRE_REQUIRE_BOTH(st, device, tensor);
  return import(device, &tensor->dl_tensor, false, release_unversioned, tensor,
                info, out, st);
}

/* --- export ------------------------------------------------------------- */

/* Exported tensor. One block has both forms of it; the caller gets one of
 * them. */
typedef struct exported {
  DLManagedTensorVersioned versioned;
  DLManagedTensor unversioned;
  vyre_device *device;        /* retained */
  vyre__device_buffer *entry; /* acquired; released by the deleter */
  size_t size;                /* bytes of this block */
  int64_t extents[];          /* shape, then strides */
} exported;

static void destroy(exported *e) {
  vyre_device *device = e->device;
  vyre__device_buffer_release(device, e->entry);
  vyre__resize(device->allocator, e, e->size, 0);
  vyre_device_release(device);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
  if (self) destroy(self->manager_ctx);
}

static void delete_unversioned(DLManagedTensor *self) {
  if (self) destroy(self->manager_ctx);
}

static vyre_code check_export(const vyre_device *device,
                              const vyre__buffer *buffer, vyre_element element,
                              const int64_t *shape, int32_t ndim,
                              vyre_status *st) {
  if (!buffer->host) return vyre__device_buffer_not_visible(device, st);
  if ((unsigned)element >= VYRE_ELEMENT_COUNT) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED,
                          NULL, VYRE_NUMBERS({"element", (uint64_t)element}),
                          "use one of the values of vyre_element",
                          "unknown element type %d", (int)element);
  }
  if (vyre__is_sum(element)) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED,
                          NULL, VYRE_NUMBERS({"element", (uint64_t)element}),
                          "export the buffer as bytes or u64",
                          "DLPack has no type for %s",
                          vyre_element_name(element));
  }
  uint64_t bytes = vyre_element_size(element), count;
  if (bytes == 0) bytes = 1;
  VYRE_TRY(count_elements(shape, ndim, bytes, &count, st));
  if (count * bytes <= buffer->size) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"tensor_bytes", count * bytes},
                   {"buffer_bytes", buffer->size}),
      "use a smaller shape, or a larger buffer",
      "the tensor has %llu bytes, but the buffer has %llu",
      (unsigned long long)(count * bytes), (unsigned long long)buffer->size);
}

/* Creates an exported tensor that owns the acquired @p entry. */
static vyre_code create(vyre_device *device, vyre__device_buffer *entry,
                        vyre_element element, const int64_t *shape,
                        int32_t ndim, exported **out, vyre_status *st) {
  size_t axes = (size_t)ndim;
  size_t size = sizeof(exported) + 2 * axes * sizeof(int64_t);
  exported *e = vyre__alloc_zeroed(device->allocator, size);
  if (!e) return vyre__no_memory(st, "vyre_dlpack_export", "tensors", 1);
  e->device = vyre_device_retain(device);
  e->entry = entry;
  e->size = size;
  if (axes > 0) memcpy(e->extents, shape, axes * sizeof *shape);
  uint64_t dense = 1;
  for (size_t i = axes; i-- > 0;) {
    e->extents[axes + i] = (int64_t)dense;
    /* An overflow is possible only in an empty tensor, whose strides are not
     * used. */
    if (shape[i] == 0 || !vyre__mul_u64(dense, (uint64_t)shape[i], &dense) ||
        dense > INT64_MAX) {
      dense = 1;
    }
  }
  DLTensor tensor = {.data = entry->buffer->host,
                     .device = {.device_type = kDLCPU},
                     .ndim = ndim,
                     .shape = e->extents,
                     .strides = e->extents + axes};
  for (size_t i = 0; i < TYPES; i++) {
    if (types[i].element != element) continue;
    tensor.dtype = (DLDataType){types[i].code, types[i].bits, 1};
  }
  e->versioned = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = e,
      .deleter = delete_versioned,
      .dl_tensor = tensor};
  e->unversioned = (DLManagedTensor){
      .dl_tensor = tensor, .manager_ctx = e, .deleter = delete_unversioned};
  *out = e;
  return VYRE_OK;
}

static vyre_code export_buffer(vyre_device *device, vyre_buffer buffer,
                               vyre_element element, const int64_t *shape,
                               int32_t ndim, bool may_be_read_only,
                               exported **out, vyre_status *st) {
  vyre__device_buffer *entry;
  VYRE_TRY(vyre__device_buffer_acquire(device, buffer, &entry, st));
  vyre_code code =
      check_export(device, entry->buffer, element, shape, ndim, st);
  if (code == VYRE_OK && entry->buffer->is_read_only && !may_be_read_only) {
    code = VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY,
                     "export it with vyre_dlpack_export, which marks the "
                     "tensor as read-only, or copy the buffer first",
                     "the device buffer was imported as read-only, which "
                     "tensors before DLPack 1 cannot express");
  }
  if (code == VYRE_OK)
    code = create(device, entry, element, shape, ndim, out, st);
  if (code != VYRE_OK) vyre__device_buffer_release(device, entry);
  return code;
}

vyre_code vyre_dlpack_export(vyre_device *device, vyre_buffer buffer,
                             vyre_element element, const int64_t *shape,
                             int32_t ndim, uint64_t flags,
                             struct DLManagedTensorVersioned **out,
                             vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  if (flags & ~(uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_TENSOR_REFUSED,
                          NULL, VYRE_NUMBERS({"flags", flags}),
                          "set flags to 0 or DLPACK_FLAG_BITMASK_READ_ONLY",
                          "unsupported tensor flags %llx",
                          (unsigned long long)flags);
  }
  exported *e;
  VYRE_TRY(export_buffer(device, buffer, element, shape, ndim, true, &e, st));
  e->versioned.flags = flags;
  if (e->entry->buffer->is_read_only) {
    e->versioned.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  }
  *out = &e->versioned;
  return VYRE_OK;
}

vyre_code vyre_dlpack_export_unversioned(vyre_device *device,
                                         vyre_buffer buffer,
                                         vyre_element element,
                                         const int64_t *shape, int32_t ndim,
                                         struct DLManagedTensor **out,
                                         vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  exported *e;
  VYRE_TRY(export_buffer(device, buffer, element, shape, ndim, false, &e, st));
  *out = &e->unversioned;
  return VYRE_OK;
}
