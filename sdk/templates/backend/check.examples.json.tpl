{
 "quant.quantized_matmul/1": [
  {"inputs": [{"dtype": "f32", "shape": [2, 3, 64]}, {"dtype": "u8", "shape": [5, 68]}],
   "attrs": {"format": "@ID@.pairs", "exact": true}},
  {"inputs": [{"dtype": "f32", "shape": [32]}, {"dtype": "u8", "shape": [4, 34]}],
   "attrs": {"format": "@ID@.pairs"}}
 ]
}
