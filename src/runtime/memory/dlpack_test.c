/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the exchange of DLPack tensors: the published layout, ownership, and
 * invalid tensors. */
#include <unistd.h>

#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel twice workgroup(8) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = y[global_id.x] * 2; }\n";

/* Layout as published, for pointers of 8 bytes. */
TEST(the_layout_is_the_published_one) {
  if (sizeof(void *) != 8) return;
  CHECK_U64(sizeof(DLTensor), 48);
  CHECK_U64(offsetof(DLTensor, data), 0);
  CHECK_U64(offsetof(DLTensor, device), 8);
  CHECK_U64(offsetof(DLTensor, ndim), 16);
  CHECK_U64(offsetof(DLTensor, dtype), 20);
  CHECK_U64(offsetof(DLTensor, shape), 24);
  CHECK_U64(offsetof(DLTensor, strides), 32);
  CHECK_U64(offsetof(DLTensor, byte_offset), 40);
  CHECK_U64(sizeof(DLManagedTensor), 64);
  CHECK_U64(offsetof(DLManagedTensor, manager_ctx), 48);
  CHECK_U64(offsetof(DLManagedTensor, deleter), 56);
  CHECK_U64(sizeof(DLManagedTensorVersioned), 80);
  CHECK_U64(offsetof(DLManagedTensorVersioned, manager_ctx), 8);
  CHECK_U64(offsetof(DLManagedTensorVersioned, deleter), 16);
  CHECK_U64(offsetof(DLManagedTensorVersioned, flags), 24);
  CHECK_U64(offsetof(DLManagedTensorVersioned, dl_tensor), 32);
}

/* Tensor of another library. */
typedef struct producer {
  DLManagedTensorVersioned tensor;
  DLManagedTensor old;
  int64_t shape[4], strides[4];
  _Alignas(64) uint32_t data[32];
  int deleted;
} producer;

static void deleted(DLManagedTensorVersioned *self) {
  ((producer *)self->manager_ctx)->deleted++;
}

static void deleted_old(DLManagedTensor *self) {
  ((producer *)self->manager_ctx)->deleted++;
}

/* 2 x 3 x 4 of u32. */
static void produce(producer *p) {
  *p = (producer){.shape = {2, 3, 4}, .strides = {12, 4, 1}};
  for (uint32_t i = 0; i < 32; i++) p->data[i] = i;
  p->tensor = (DLManagedTensorVersioned){
      .version = {1, 1},
      .manager_ctx = p,
      .deleter = deleted,
      .dl_tensor = {.data = p->data,
                    .device = {.device_type = kDLCPU},
                    .ndim = 3,
                    .dtype = {kDLUInt, 32, 1},
                    .shape = p->shape,
                    .strides = p->strides}};
  p->old = (DLManagedTensor){.dl_tensor = p->tensor.dl_tensor,
                             .manager_ctx = p,
                             .deleter = deleted_old};
}

static vyre_code double_it(const rig *r, vyre_buffer buffer, vyre_status *st) {
  vyre_input in = vyre_input_buffer(buffer);
  vyre_output out = {0}; /* updated in place */
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .require_zero_copy = true};
  return vyre_dispatch(r->pipeline, &desc, st);
}

TEST(an_imported_tensor_is_used_in_place) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  static producer p;
  for (int is_old = 0; is_old < 2; is_old++) {
    produce(&p);
    p.tensor.dl_tensor.byte_offset = p.old.dl_tensor.byte_offset = 8;
    vyre_buffer buffer;
    vyre_dlpack_info info;
    CHECK_OK(is_old
                 ? vyre_dlpack_import_unversioned(r.device, &p.old, &info,
                                                  &buffer, &st)
                 : vyre_dlpack_import(r.device, &p.tensor, &info, &buffer, &st),
             st);
    CHECK(info.element == VYRE_ELEMENT_U32 && !info.is_read_only);
    CHECK_U64(info.count, 24);
    CHECK_OK(double_it(&r, buffer, &st), st);
    for (uint32_t i = 0; i < 32; i++) {
      CHECK_U64(p.data[i], i >= 2 && i < 26 ? 2 * i : i);
    }
    CHECK_U64(p.deleted, 0);
    CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
    CHECK_U64(p.deleted, 1);
  }
  rig_close(&r);
}

TEST(the_deleter_is_called_once_by_the_last_user) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  static producer with_device, without;
  produce(&with_device);
  produce(&without);
  without.tensor.deleter = NULL; /* allowed: no deleter */
  vyre_buffer a, b;
  CHECK_OK(vyre_dlpack_import(r.device, &with_device.tensor, NULL, &a, &st),
           st);
  CHECK_OK(vyre_dlpack_import(r.device, &without.tensor, NULL, &b, &st), st);
  CHECK_OK(vyre_buffer_destroy(r.device, b, &st), st);
  CHECK_U64(with_device.deleted, 0);
  rig_close(&r); /* the device is freed with its buffers */
  CHECK_U64(with_device.deleted, 1);
}

TEST(a_read_only_tensor_is_no_persistent_buffer_that_is_written) {
  static const char kept_text[] =
      "kernel kept workgroup(8) over(y)\n"
      "buffer y : persistent read_write u32[] @0;\n"
      "{ y[global_id.x] = y[global_id.x] + 1; }\n";
  vyre_status st = {0};
  rig r = rig_open(kept_text, NULL);
  static producer p;
  produce(&p);
  p.tensor.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  vyre_buffer buffer;
  CHECK_OK(vyre_dlpack_import(r.device, &p.tensor, NULL, &buffer, &st), st);
  vyre_input resource = vyre_input_buffer(buffer);
  const vyre_dispatch_desc desc = {
      .resources = &resource, .resource_count = 1, .grid = {3, 1, 1}};
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_READ_ONLY);
  CHECK_HAS(st.message, "'y'");
  for (uint32_t i = 0; i < 32; i++) CHECK_U64(p.data[i], i);
  st = (vyre_status){0};
  CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
  rig_close(&r);
}

TEST(a_read_only_tensor_is_not_written) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  static producer p;
  produce(&p);
  p.tensor.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  vyre_buffer buffer;
  vyre_dlpack_info info;
  CHECK_OK(vyre_dlpack_import(r.device, &p.tensor, &info, &buffer, &st), st);
  CHECK(info.is_read_only);
  CHECK_FAILS(double_it(&r, buffer, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_READ_ONLY);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_buffer_upload(r.device, buffer, 0, &p, 4, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY);
  st = (vyre_status){0};
  vyre_recording *rec;
  uint32_t slot;
  CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "y", 0, &slot, &st), st);
  vyre_slot_range place = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {
      .inputs = &place, .input_count = 1, .outputs = &place, .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipeline, &d, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  vyre_slot_binding resource = {.buffer = buffer};
  CHECK_OK(vyre_recording_bind_slot(rec, slot, &resource, &st), st);
  CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY);
  CHECK_HAS(st.message, "'y'");
  vyre_recording_release(rec);
  for (uint32_t i = 0; i < 32; i++) CHECK_U64(p.data[i], i);
  /* It may be read, and an export of it is read-only too. */
  uint32_t got[24];
  vyre_buffer copy;
  vyre_input in = vyre_input_buffer(buffer);
  vyre_output out = vyre_output_bytes(got, sizeof got);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  st = (vyre_status){0};
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_READ_ONLY); /* it would be updated in place */
  out.new_buffer = &copy;
  st = (vyre_status){0};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_U64(got[23], 46);
  CHECK_OK(vyre_buffer_destroy(r.device, copy, &st), st);
  DLManagedTensorVersioned *tensor;
  DLManagedTensor *old;
  CHECK_OK(vyre_dlpack_export(r.device, buffer, VYRE_ELEMENT_U32,
                              (const int64_t[]){24}, 1, 0, &tensor, &st),
           st);
  CHECK(tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY);
  tensor->deleter(tensor);
  CHECK_FAILS(
      vyre_dlpack_export_unversioned(r.device, buffer, VYRE_ELEMENT_U32,
                                     (const int64_t[]){24}, 1, &old, &st),
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY);
  rig_close(&r);
  CHECK_U64(p.deleted, 1);
}

/* --- invalid tensors ---------------------------------------------------- */

typedef struct lie {
  const char *name;
  void (*tell)(producer *p);
  vyre_kind kind;
} lie;

#define LIE(name, statement)            \
  static void name(producer *p) {       \
    DLTensor *t = &p->tensor.dl_tensor; \
    (void)t;                            \
    statement;                          \
  }

LIE(major_version, p->tensor.version.major = 2)
LIE(no_version, p->tensor.version.major = 0)
LIE(on_cuda, t->device.device_type = kDLCUDA)
LIE(on_vulkan, t->device.device_type = kDLVulkan)
LIE(nowhere, memset(&t->device.device_type, 0, sizeof t->device.device_type))
LIE(negative_extent, p->shape[1] = -3)
LIE(min_extent, p->shape[0] = INT64_MIN)
LIE(two_negatives, (p->shape[0] = -2, p->shape[1] = -3))
LIE(negative_beside_empty, (p->shape[0] = 0, p->shape[1] = -3))
LIE(product_overflows, (p->shape[0] = INT64_MAX, p->shape[1] = INT64_MAX))
LIE(bytes_overflow, (p->shape[0] = INT64_MAX / 4 + 1, t->ndim = 1))
LIE(product_wraps_to_0, (p->shape[0] = p->shape[1] = (int64_t)1 << 32))
LIE(no_data, t->data = NULL)
LIE(offset_beyond, t->byte_offset = UINT64_MAX - 3)
LIE(end_beyond, t->byte_offset = UINT64_MAX - (uintptr_t)t->data - 15)
LIE(no_shape, t->shape = NULL)
LIE(many_dimensions, t->ndim = INT32_MAX)
LIE(negative_dimensions, t->ndim = -1)
LIE(four_lanes, t->dtype.lanes = 4)
LIE(no_lanes, t->dtype.lanes = 0)
LIE(complex_numbers, (t->dtype.code = kDLComplex, t->dtype.bits = 64))
LIE(four_bits, t->dtype.bits = 4)
LIE(unknown_code, t->dtype.code = 200)
LIE(float_of_8_bits, (t->dtype.code = kDLFloat, t->dtype.bits = 8))
LIE(transposed, (p->strides[0] = 1, p->strides[2] = 12))
LIE(gaps, p->strides[1] = 8)
LIE(backwards, p->strides[2] = -1)
LIE(all_one_element, p->strides[0] = p->strides[1] = p->strides[2] = 0)
LIE(misaligned, t->byte_offset = 2)

static const lie lies[] = {
#define ROW(name, kind) {#name, name, kind}
    ROW(major_version, VYRE_KIND_TENSOR_REFUSED),
    ROW(no_version, VYRE_KIND_TENSOR_REFUSED),
    ROW(on_cuda, VYRE_KIND_TENSOR_REFUSED),
    ROW(on_vulkan, VYRE_KIND_TENSOR_REFUSED),
    ROW(nowhere, VYRE_KIND_TENSOR_REFUSED),
    ROW(negative_extent, VYRE_KIND_TENSOR_REFUSED),
    ROW(min_extent, VYRE_KIND_TENSOR_REFUSED),
    ROW(two_negatives, VYRE_KIND_TENSOR_REFUSED),
    ROW(negative_beside_empty, VYRE_KIND_TENSOR_REFUSED),
    ROW(product_overflows, VYRE_KIND_TENSOR_REFUSED),
    ROW(bytes_overflow, VYRE_KIND_TENSOR_REFUSED),
    ROW(product_wraps_to_0, VYRE_KIND_TENSOR_REFUSED),
    ROW(no_data, VYRE_KIND_TENSOR_REFUSED),
    ROW(offset_beyond, VYRE_KIND_TENSOR_REFUSED),
    ROW(end_beyond, VYRE_KIND_TENSOR_REFUSED),
    ROW(no_shape, VYRE_KIND_TENSOR_REFUSED),
    ROW(many_dimensions, VYRE_KIND_TENSOR_REFUSED),
    ROW(negative_dimensions, VYRE_KIND_TENSOR_REFUSED),
    ROW(four_lanes, VYRE_KIND_TENSOR_REFUSED),
    ROW(no_lanes, VYRE_KIND_TENSOR_REFUSED),
    ROW(complex_numbers, VYRE_KIND_TENSOR_REFUSED),
    ROW(four_bits, VYRE_KIND_TENSOR_REFUSED),
    ROW(unknown_code, VYRE_KIND_TENSOR_REFUSED),
    ROW(float_of_8_bits, VYRE_KIND_TENSOR_REFUSED),
    ROW(transposed, VYRE_KIND_COPY_NEEDED),
    ROW(gaps, VYRE_KIND_COPY_NEEDED),
    ROW(backwards, VYRE_KIND_COPY_NEEDED),
    ROW(all_one_element, VYRE_KIND_COPY_NEEDED),
    ROW(misaligned, VYRE_KIND_COPY_NEEDED),
};

TEST(invalid_tensors_are_refused_and_stay_owned_by_the_caller) {
  rig r = rig_open(text, NULL);
  static producer p;
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    vyre_status st = {0};
    vyre_buffer buffer;
    vyre_dlpack_info info;
    produce(&p);
    lies[i].tell(&p);
    vyre_code code =
        vyre_dlpack_import(r.device, &p.tensor, &info, &buffer, &st);
    if (code != VYRE_INVALID_ARGUMENT || st.kind != lies[i].kind) {
      printf("    %s: %s\n", lies[i].name, st.message);
    }
    CHECK(code == VYRE_INVALID_ARGUMENT && st.kind == lies[i].kind);
    CHECK(st.message[0] && st.fix[0]);
    CHECK(buffer.owner == 0 && info.count == 0);
    CHECK_U64(p.deleted, 0);
  }
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.live_device_buffers, 0);
  rig_close(&r);
}

TEST(unusual_valid_tensors_are_imported) {
  static const struct {
    const char *name;
    int32_t ndim;
    int64_t shape[3], strides[3];
    bool has_strides;
    uint64_t count;
  } cases[] = {
      {"a scalar", 0, {0}, {0}, true, 1},
      {"no strides", 2, {3, 4}, {0}, false, 12},
      {"an axis of one", 3, {3, 1, 4}, {4, -77, 1}, true, 12},
      {"empty", 2, {0, 4}, {999, 999}, true, 0},
      {"empty and too large", 3, {INT64_MAX, INT64_MAX, 0}, {0}, true, 0},
  };
  rig r = rig_open(text, NULL);
  static producer p;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_buffer buffer;
    vyre_dlpack_info info;
    uint64_t size;
    produce(&p);
    DLTensor *t = &p.tensor.dl_tensor;
    memcpy(p.shape, cases[i].shape, sizeof cases[i].shape);
    memcpy(p.strides, cases[i].strides, sizeof cases[i].strides);
    t->ndim = cases[i].ndim;
    if (!cases[i].has_strides) t->strides = NULL;
    if (cases[i].count == 0) t->data = NULL; /* as required by the standard */
    CHECK_OK(vyre_dlpack_import(r.device, &p.tensor, &info, &buffer, &st), st);
    CHECK_U64(info.count, cases[i].count);
    CHECK_OK(vyre_buffer_size(r.device, buffer, &size, &st), st);
    CHECK_U64(size, 4 * cases[i].count);
    CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
    CHECK_U64(p.deleted, 1);
  }
  rig_close(&r);
}

/* --- export ------------------------------------------------------------- */

TEST(every_element_type_is_exported_and_imported) {
  static const struct {
    vyre_element element, back;
    uint8_t code, bits;
  } cases[] = {
      {VYRE_ELEMENT_BOOL, VYRE_ELEMENT_BOOL, 6, 8},
      {VYRE_ELEMENT_U8, VYRE_ELEMENT_U8, 1, 8},
      {VYRE_ELEMENT_I8, VYRE_ELEMENT_I8, 0, 8},
      {VYRE_ELEMENT_U16, VYRE_ELEMENT_U16, 1, 16},
      {VYRE_ELEMENT_I16, VYRE_ELEMENT_I16, 0, 16},
      {VYRE_ELEMENT_U32, VYRE_ELEMENT_U32, 1, 32},
      {VYRE_ELEMENT_I32, VYRE_ELEMENT_I32, 0, 32},
      {VYRE_ELEMENT_U64, VYRE_ELEMENT_U64, 1, 64},
      {VYRE_ELEMENT_I64, VYRE_ELEMENT_I64, 0, 64},
      {VYRE_ELEMENT_F16, VYRE_ELEMENT_F16, 2, 16},
      {VYRE_ELEMENT_BF16, VYRE_ELEMENT_BF16, 4, 16},
      {VYRE_ELEMENT_F32, VYRE_ELEMENT_F32, 2, 32},
      {VYRE_ELEMENT_F64, VYRE_ELEMENT_F64, 2, 64},
      {VYRE_ELEMENT_BYTES, VYRE_ELEMENT_U8, 1, 8},
  };
  CHECK_U64(sizeof cases / sizeof *cases, VYRE_ELEMENT_SUM_F32);
  rig r = rig_open(text, NULL), other = rig_open(text, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_buffer buffer, back;
    vyre_dlpack_info info;
    CHECK_OK(vyre_buffer_create(r.device, 64, &buffer, &st), st);
    DLManagedTensorVersioned *tensor;
    const int64_t shape[] = {2, 4};
    CHECK_OK(vyre_dlpack_export(r.device, buffer, cases[i].element, shape, 2, 0,
                                &tensor, &st),
             st);
    const DLTensor *t = &tensor->dl_tensor;
    CHECK(t->dtype.code == cases[i].code && t->dtype.bits == cases[i].bits);
    CHECK(t->dtype.lanes == 1 && t->ndim == 2 && t->byte_offset == 0);
    CHECK(t->shape[0] == 2 && t->shape[1] == 4);
    CHECK(t->strides[0] == 4 && t->strides[1] == 1);
    CHECK(t->device.device_type == kDLCPU && t->device.device_id == 0);
    CHECK(tensor->version.major == 1 && tensor->flags == 0);
    CHECK_OK(vyre_dlpack_import(other.device, tensor, &info, &back, &st), st);
    CHECK(info.element == cases[i].back && info.count == 8);
    CHECK_OK(vyre_buffer_destroy(other.device, back, &st), st);
    CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
  }
  rig_close(&r);
  rig_close(&other);
}

/* An exported tensor keeps the memory and the device alive. */
TEST(a_tensor_outlives_the_handle_and_the_device) {
  vyre_status st = {0};
  test_heap heap = {.left = -1};
  rig r = rig_open(text, &heap);
  vyre_buffer buffer;
  DLManagedTensorVersioned *tensor;
  DLManagedTensor *old;
  const int64_t shape[] = {8};
  CHECK_OK(vyre_buffer_create(r.device, 32, &buffer, &st), st);
  CHECK_OK(
      vyre_buffer_upload(r.device, buffer, 0,
                         (const uint32_t[8]){1, 2, 3, 4, 5, 6, 7, 8}, 32, &st),
      st);
  CHECK_OK(vyre_dlpack_export(r.device, buffer, VYRE_ELEMENT_U32, shape, 1,
                              DLPACK_FLAG_BITMASK_READ_ONLY, &tensor, &st),
           st);
  CHECK_OK(vyre_dlpack_export_unversioned(r.device, buffer, VYRE_ELEMENT_U32,
                                          shape, 1, &old, &st),
           st);
  CHECK(tensor->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK_OK(double_it(&r, buffer, &st), st);
  CHECK_OK(vyre_buffer_destroy(r.device, buffer, &st), st);
  rig_close(&r);
  const uint32_t *data = tensor->dl_tensor.data;
  for (uint32_t i = 0; i < 8; i++) CHECK(data[i] == 2 * (i + 1));
  CHECK(heap.live_bytes > 0);
  tensor->deleter(tensor);
  data = old->dl_tensor.data;
  CHECK_U64(data[7], 16);
  old->deleter(old);
  CHECK_U64(heap.live_bytes, 0);
}

TEST(bad_exports_are_refused) {
  rig r = rig_open(text, NULL), other = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_buffer buffer, dead;
  CHECK_OK(vyre_buffer_create(r.device, 32, &buffer, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 32, &dead, &st), st);
  CHECK_OK(vyre_buffer_destroy(r.device, dead, &st), st);
  static const int64_t eight[] = {8}, nine[] = {9}, negative[] = {-1},
                       huge[] = {INT64_MAX, INT64_MAX, 4};
  const struct {
    vyre_device *device;
    vyre_buffer buffer;
    vyre_element element;
    const int64_t *shape;
    int32_t ndim;
    uint64_t flags;
    vyre_kind kind;
  } cases[] = {
      {r.device, dead, VYRE_ELEMENT_U32, eight, 1, 0, VYRE_KIND_STALE_HANDLE},
      {other.device, buffer, VYRE_ELEMENT_U32, eight, 1, 0,
       VYRE_KIND_FOREIGN_HANDLE},
      {r.device, buffer, VYRE_ELEMENT_U32, nine, 1, 0,
       VYRE_KIND_BINDING_MISMATCH},
      {r.device, buffer, VYRE_ELEMENT_U64, eight, 1, 0,
       VYRE_KIND_BINDING_MISMATCH},
      {r.device, buffer, VYRE_ELEMENT_U32, negative, 1, 0,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_U32, huge, 3, 0,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_U32, NULL, 1, 0,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_U32, eight, -1, 0,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_U32, eight, 65, 0,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_U32, eight, 1, 2,
       VYRE_KIND_TENSOR_REFUSED},
      {r.device, buffer, VYRE_ELEMENT_COUNT, eight, 1, 0,
       VYRE_KIND_TENSOR_REFUSED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    DLManagedTensorVersioned *tensor;
    st = (vyre_status){0};
    CHECK_FAILS(vyre_dlpack_export(cases[i].device, cases[i].buffer,
                                   cases[i].element, cases[i].shape,
                                   cases[i].ndim, cases[i].flags, &tensor, &st),
                st, VYRE_INVALID_ARGUMENT, cases[i].kind);
    CHECK(!tensor);
  }
  st = (vyre_status){0}; /* empty, with strides that would overflow */
  DLManagedTensorVersioned *tensor;
  static const int64_t empty[] = {0, INT64_MAX, INT64_MAX};
  CHECK_OK(vyre_dlpack_export(r.device, buffer, VYRE_ELEMENT_U32, empty, 3, 0,
                              &tensor, &st),
           st);
  tensor->deleter(tensor);
  rig_close(&r);
  rig_close(&other);
}

/* Imports a tensor and exports it again with @p allocator, which may fail. */
static vyre_code there_and_back(vyre_allocator allocator, vyre_status *st) {
  static producer p;
  produce(&p);
  vyre_context *context;
  vyre_device *device = NULL;
  vyre_context_options options = {.allocator = allocator,
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  vyre_code code = vyre_context_create(&options, &context, st);
  if (code == VYRE_OK) code = vyre_device_open(context, "ref", &device, st);
  vyre_buffer buffer = {0};
  DLManagedTensorVersioned *tensor = NULL;
  if (code == VYRE_OK) {
    code = vyre_dlpack_import(device, &p.tensor, NULL, &buffer, st);
  }
  int taken = buffer.owner != 0;
  if (code == VYRE_OK) {
    code = vyre_dlpack_export(device, buffer, VYRE_ELEMENT_U32, p.shape, 3, 0,
                              &tensor, st);
  }
  if (tensor) tensor->deleter(tensor);
  vyre_device_release(device);
  vyre_context_release(context);
  CHECK_U64(p.deleted, (unsigned)taken);
  return code;
}

TEST(a_failed_allocation_is_reported_and_nothing_leaks) {
  CHECK(sweep_allocations(there_and_back) > 3);
}

/* --- recordings ----------------------------------------------------------- */

/* A replay is the last user of the buffer: its print callback frees the
 * handle. The deleter then uses the recording. */
typedef struct parting {
  producer p;
  vyre_device *device;
  vyre_recording *rec;
  uint32_t slot;
  vyre_buffer buffer;
  vyre_code freed, unbound;
  bool is_printed;
} parting;

static bool free_it(void *self, const char *bytes, size_t length) {
  parting *a = self;
  (void)bytes, (void)length;
  if (a->buffer.owner == 0) return true;
  a->freed = vyre_buffer_destroy(a->device, a->buffer, NULL);
  a->buffer = (vyre_buffer){0};
  return true;
}

static bool take_any(void *self, const char *bytes, size_t length) {
  (void)self, (void)bytes, (void)length;
  return true;
}

static void ask_and_unbind(DLManagedTensorVersioned *tensor) {
  parting *a = tensor->manager_ctx;
  a->is_printed = vyre_recording_print(a->rec, (vyre_writer){take_any, NULL});
  a->unbound = vyre_recording_bind_slot(a->rec, a->slot, NULL, NULL);
  a->p.deleted++;
}

static void part(parting *a, rig *r, bool with_fence) {
  static uint32_t told;
  vyre_status st = {0};
  vyre_fence *fence = NULL;
  *a = (parting){.device = r->device, .unbound = VYRE_UNKNOWN};
  produce(&a->p);
  a->p.tensor.manager_ctx = a;
  a->p.tensor.deleter = ask_and_unbind;
  CHECK_OK(vyre_dlpack_import(r->device, &a->p.tensor, NULL, &a->buffer, &st),
           st);
  CHECK_OK(vyre_recording_create(r->device, &a->rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(a->rec, "y", 0, &a->slot, &st), st);
  uint32_t to;
  vyre_slot_binding out = {.data = &told, .size = sizeof told};
  CHECK_OK(vyre_recording_add_fixed_slot(a->rec, &out, &to, &st), st);
  vyre_slot_range in = vyre_slot_range_all(a->slot),
                  place = vyre_slot_range_all(to);
  vyre_recorded_dispatch d = {.inputs = &in,
                              .input_count = 1,
                              .outputs = &place,
                              .output_count = 1,
                              .print = {free_it, a}};
  CHECK_OK(vyre_recording_add_dispatch(a->rec, r->pipeline, &d, &st), st);
  CHECK_OK(vyre_recording_seal(a->rec, &st), st);
  vyre_slot_binding bound = {.buffer = a->buffer};
  CHECK_OK(vyre_recording_bind_slot(a->rec, a->slot, &bound, &st), st);
  CHECK_OK(vyre_recording_replay(a->rec, NULL, with_fence ? &fence : NULL, &st),
           st);
  if (fence) CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
}

TEST(a_deleter_called_by_a_replay_may_use_the_recording) {
  static const char says[] =
      "kernel says workgroup(1)\nbuffer y : read u32[] @0;\n"
      "buffer z : write u32[1] @1;\n{ z[0] = y[1]; print(\"y\", y[1]); }\n";
  static parting a;
  rig r = rig_open(says, NULL);
  for (int with_fence = 0; with_fence < 2; with_fence++) {
    vyre_status st = {0};
    alarm(20); /* a wait would never end */
    part(&a, &r, with_fence);
    alarm(0);
    CHECK(a.freed == VYRE_OK && a.is_printed);
    CHECK_U64(a.p.deleted, 1);
    /* The replay still runs, with the memory that it started with. */
    CHECK(a.unbound == VYRE_OK);
    CHECK_OK(vyre_recording_bind_slot(a.rec, a.slot, NULL, &st), st);
    vyre_recording_release(a.rec);
  }
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(the_layout_is_the_published_one),
    TEST_ENTRY(an_imported_tensor_is_used_in_place),
    TEST_ENTRY(the_deleter_is_called_once_by_the_last_user),
    TEST_ENTRY(a_read_only_tensor_is_no_persistent_buffer_that_is_written),
    TEST_ENTRY(a_read_only_tensor_is_not_written),
    TEST_ENTRY(invalid_tensors_are_refused_and_stay_owned_by_the_caller),
    TEST_ENTRY(unusual_valid_tensors_are_imported),
    TEST_ENTRY(every_element_type_is_exported_and_imported),
    TEST_ENTRY(a_tensor_outlives_the_handle_and_the_device),
    TEST_ENTRY(bad_exports_are_refused),
    TEST_ENTRY(a_deleter_called_by_a_replay_may_use_the_recording),
    TEST_ENTRY(a_failed_allocation_is_reported_and_nothing_leaks))
