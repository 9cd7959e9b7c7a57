// What surrounds attention: embedding, residual copies, selection, greedy choice. Exact.
#pragma once

#include "kernels/cpu/decoder.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

Reason can_run(const cpu::Embed& p, const Launch& launch);
void run(const cpu::Embed& p, const Launch& launch);

void spread_copies(const cpu::Copies& shape, const cpu::Bf16* x, cpu::Bf16* residual,
                   const Launch& launch);
void first_copy(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x,
                const Launch& launch);
void add_to_copies(const cpu::Copies& shape, const cpu::Bf16* y, cpu::Bf16* residual,
                   const Launch& launch);
void mean_of_copies(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x,
                    const Launch& launch);
/// `rows` is read by this call, on the host: a captured call keeps the rows it was captured with.
void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                 const cpu::Bf16* x, cpu::Bf16* out, const Launch& launch);

/// With scratch memory few rows are shared out among many blocks.
Reason can_run(const cpu::Argmax& p, const Launch& launch);
void run(const cpu::Argmax& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
