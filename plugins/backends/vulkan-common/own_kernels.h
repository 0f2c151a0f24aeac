#define OWN_KERNELS_OPS                                                                    \
    {                                                                                      \
        .struct_size = sizeof(tn_ops)                                                      \
    }
