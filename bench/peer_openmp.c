/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The peer of the pool: OpenMP, as the compiler that builds this brings it. The
 * suite builds it once by each, as a library of its own. */
void peer_for(void (*piece)(void *self, long index), void *self, long count);

void peer_for(void (*piece)(void *self, long index), void *self, long count) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < count; i++) piece(self, i);
}
