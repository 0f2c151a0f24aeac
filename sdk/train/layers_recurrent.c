// SPDX-License-Identifier: MIT
// Recurrent layers over x [batch, time, inputs]; they begin with a state of zeros.
#include <math.h>
#include <stdio.h>
#include "common.h"

// Common part of LSTM, GRU and RNN: weights of x and of the output of the position before,
// and two biases, with `gates` rows for each of `width` outputs.
static tn_array *recurrent_layers_recurrent(tn_net *net, const char *kind, int64_t gates,
                                            const char *name, tn_array *x, int64_t width)
{
    if (!layer_fits(net, kind + 3, name, x, 3, 3))
        return NULL;
    double bound = width > 0 ? 1 / sqrt((double)width) : 0;
    int64_t rows;
    if (__builtin_mul_overflow(gates, width, &rows))
        rows = -1; // an extent that no parameter has
    tn_net_enter(net, name, 0);
    tn_array *wi =
        tn_net_param(net, "weight_ih", TN_SHAPE(rows, layer_width(x)), "uniform", bound);
    tn_array *wh = tn_net_param(net, "weight_hh", TN_SHAPE(rows, width), "uniform", bound);
    tn_array *bi = tn_net_param(net, "bias_ih", TN_SHAPE(rows), "uniform", bound);
    tn_array *bh = tn_net_param(net, "bias_hh", TN_SHAPE(rows), "uniform", bound);
    tn_net_leave(net);
    tn_array *out[3] = {NULL};
    char id[16];
    snprintf(id, sizeof(id), "%s/1", kind);
    tn_op_n(net->scope, id, TN_IN(x, wi, wh, bi, bh), tn_attrs("batch_first", 1), out,
            gates == 4 ? 3 : 2);
    return out[0];
}

tn_array *tn_net_lstm(tn_net *net, const char *name, tn_array *x, int64_t width)
{
    return recurrent_layers_recurrent(net, "nn.lstm", 4, name, x, width);
}

tn_array *tn_net_gru(tn_net *net, const char *name, tn_array *x, int64_t width)
{
    return recurrent_layers_recurrent(net, "nn.gru", 3, name, x, width);
}

tn_array *tn_net_rnn(tn_net *net, const char *name, tn_array *x, int64_t width)
{
    return recurrent_layers_recurrent(net, "nn.rnn", 1, name, x, width);
}
