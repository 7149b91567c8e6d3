" Vim syntax file of the kernel language of vyre. Written by `vyre grammar --to vim`.
if exists("b:current_syntax")
  finish
endif
syn keyword vyre0 barrier break buffer case const continue default do else false fn for grid_barrier if kernel let print return shared struct switch true uniform var while
syn keyword vyre1 bool boolx2 boolx3 boolx4 f32 f32x2 f32x3 f32x4 f64 f64x2 f64x3 f64x4 i32 i32x2 i32x3 i32x4 i64 i64x2 i64x3 i64x4 u32 u32x2 u32x3 u32x4 u64 u64x2 u64x3 u64x4
syn keyword vyre2 bf16 bytes f16 i16 i8 u16 u8
syn keyword vyre3 abs acos add_sat all any as_f32 as_f64 as_i32 as_i64 as_u32 as_u64 asin atan atan2 atomic_add atomic_and atomic_compare_exchange atomic_exchange atomic_load atomic_max atomic_merge atomic_min atomic_or atomic_store atomic_xor ballot cbrt ceil clamp clz cos cosh cross ctz distance dot dot4_i8 dot4_u8 exp exp10 exp2 expm1 extract floor fma fract hypot in_window insert len length log log10 log1p log2 max min mix mul_high normalize popcount pow push reduce_add reduce_and reduce_max reduce_min reduce_or reduce_xor reverse rint rotate round rsqrt saturate scan_add scan_add_before select shuffle shuffle_down shuffle_up shuffle_xor sign sin sinh smoothstep sqrt step sub_sat subgroup_add subgroup_all subgroup_and subgroup_any subgroup_max subgroup_min subgroup_or subgroup_scan_add subgroup_scan_add_before subgroup_xor tan tanh trunc
syn keyword vyre4 global_id grid_size item item_index lane local_id subgroup_id window workgroup_id workgroup_size
syn keyword vyre5 inf inf_f64 nan nan_f64
syn keyword vyre6 align any as by coalesce import live_out locality once output over override persistent pull pushes queue random read read_write set streaming sum_f32 sum_f64 temporal type workgroup write
syn match vyreNumber "\<\d\w*\(\.\w*\)\=\>"
syn match vyreBinding "@\s*\d\+"
syn region vyreString start=+"+ skip=+\\\\\|\\"+ end=+"+ oneline
syn match vyreComment "//.*$"
syn region vyreComment start="/\*" end="\*/"
hi def link vyre0 Keyword
hi def link vyre1 Type
hi def link vyre2 Type
hi def link vyre3 Function
hi def link vyre4 Identifier
hi def link vyre5 Constant
hi def link vyre6 StorageClass
hi def link vyreNumber Number
hi def link vyreBinding Number
hi def link vyreString String
hi def link vyreComment Comment
let b:current_syntax = "vyre"
