/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Portable targets of a backend: code for them is generated without a device,
 * and runs on every device that meets the needs stored with it. Packages hold
 * such code (runtime/package). */
#ifndef VYRE_HAL_PORTABLE_H
#define VYRE_HAL_PORTABLE_H

#include "base/bytes.h"
#include "hal/launch.h"
#include "lir/lir.h"

/* Bytes of the text of an unmet need. */
enum { VYRE__NEED_TEXT = 120 };

typedef struct vyre__portable {
  /* Names of the targets, in order of preference; NULL ends the list. */
  const char *const *targets;
  /* Makes @p device describe target @p index, for `target` and `generate` of
   * the backend; it cannot be used otherwise. The device is zeroed, except for
   * backend, context and allocator. Opens nothing. */
  void (*device_describe)(uint32_t index, vyre_device *device);
  /* Appends what a device must have for the code that `generate` made from
   * @p kernel: bytes that only this backend reads. @p artifact is that code. */
  void (*put_needs)(const vyre_pipeline *pipeline,
                    const vyre__lir_kernel *kernel, const vyre__bytes *artifact,
                    vyre__bytes *to);
  /* Returns true if @p device meets the needs. Otherwise @p missing gets the
   * first that it does not meet, as in "needs x-y". The bytes may be corrupt.
   */
  bool (*meets)(const vyre_device *device, const void *needs, size_t size,
                char missing[VYRE__NEED_TEXT]);
} vyre__portable;

#endif
