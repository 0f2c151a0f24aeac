#version 460
// SPDX-License-Identifier: MIT
// Positions of a recurrent layer: a product of w and the state of the position before, by tiles of
// ROWS x UNITS, and then the gates of each unit. OP_back: the derivative, from the last position
// on, whose product is one of w and the gradients of the gates of the position behind.
//
//   LSTM, GRU  the kind; without either one gate, tanh or (RELU) relu
//   IN         the dtype in memory; everything is computed in f32
//
// A workgroup has one position, or, where it has all units of its rows, `count` of them: then
// the state of one position stays in shared memory for the next. Invocations are UNITS units of GATES gates
// in PARTS parts of the terms of a sum.
#define NEED_EXP
#define NEED_TANH
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/functions.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 256; // UNITS * GATES * PARTS
layout(constant_id = 1) const uint UNITS = 16;
layout(constant_id = 2) const uint PARTS = 4;
layout(constant_id = 3) const uint ROWS = 4;
layout(constant_id = 4) const uint DEPTH = 64; // terms in shared memory, a multiple of 4 * PARTS
layout(constant_id = 5) const uint STAGE = 64; // vectors of these
layout(constant_id = 6) const uint SUMS = 1024; // GROUP * ROWS
layout(constant_id = 7) const uint RELU = 0;

#if defined(LSTM)
const uint GATES = 4u;
#elif defined(GRU)
const uint GATES = 3u;
#else
const uint GATES = 1u;
#endif
#ifdef OP_back
const uint SOURCES = GATES; // rows of terms: of each gate its own
#else
const uint SOURCES = 1u;
#endif

#define ELEMENT PASTE(S_, IN)
#define READ(name, at) PASTE(FROM_, IN)(PASTE(W_, IN)(name.d[args.name##_offset + (at)]))
#define WRITE(name, at, value) name.d[args.name##_offset + (at)] = ELEMENT(PASTE(TO_, IN)(value))

#ifdef OP_back
layout(std430, binding = 0) readonly buffer Gradient { ELEMENT d[]; } gradient;
layout(std430, binding = 1) readonly buffer W { ELEMENT d[]; } w;
layout(std430, binding = 2) buffer Slopes { ELEMENT d[]; } slopes; // of gates
layout(std430, binding = 3) buffer OfH { ELEMENT d[]; } of_h;
layout(std430, binding = 4) readonly buffer Made { ELEMENT d[]; } made; // gates, or h
#ifdef LSTM
layout(std430, binding = 5) readonly buffer Cells { ELEMENT d[]; } cells;
layout(std430, binding = 6) readonly buffer First { ELEMENT d[]; } first; // c
layout(std430, binding = 7) readonly buffer OfLast { ELEMENT d[]; } of_last;
layout(std430, binding = 8) buffer OfC { ELEMENT d[]; } of_c;
#endif
#ifdef GRU
layout(std430, binding = 5) readonly buffer Cells { ELEMENT d[]; } cells; // what w gives n
layout(std430, binding = 6) readonly buffer First { ELEMENT d[]; } first; // h
layout(std430, binding = 7) readonly buffer Out { ELEMENT d[]; } hidden;
layout(std430, binding = 8) buffer OfC { ELEMENT d[]; } of_c; // of what w gives n
#endif
layout(push_constant) uniform Args {
    uint rows, units, slices, count;
    uint flags, at, step;
    uint begin; // the position that nothing is before
    uint gradient_offset, w_offset, slopes_offset, of_h_offset, made_offset;
    uint cells_offset, first_offset, of_last_offset, hidden_offset, of_c_offset;
} args;
#else
layout(std430, binding = 0) readonly buffer Given { ELEMENT d[]; } given;
layout(std430, binding = 1) readonly buffer W { ELEMENT d[]; } w; // turned
layout(std430, binding = 2) readonly buffer First { ELEMENT d[]; } first; // h
layout(std430, binding = 3) readonly buffer Bias { ELEMENT d[]; } bias;
layout(std430, binding = 4) buffer Out { ELEMENT d[]; } hidden;
#ifdef LSTM
layout(std430, binding = 5) writeonly buffer Cells { ELEMENT d[]; } cells;
layout(std430, binding = 6) writeonly buffer Made { ELEMENT d[]; } made; // gates
layout(std430, binding = 7) readonly buffer FirstC { ELEMENT d[]; } first_c;
layout(std430, binding = 8) buffer LastC { ELEMENT d[]; } last_c;
#endif
#ifdef GRU
layout(std430, binding = 5) writeonly buffer Cells { ELEMENT d[]; } cells; // what w gives n
layout(std430, binding = 6) writeonly buffer Made { ELEMENT d[]; } made;
#endif
layout(push_constant) uniform Args {
    uint rows, units, slices, count;
    uint flags, at, step;
    uint given_offset, w_offset, first_offset, bias_offset, hidden_offset;
    uint cells_offset, made_offset, first_c_offset, last_c_offset;
} args;
#endif

const uint BEGINS = 1u;    // at the first position: nothing is before it
const uint ENDS = 2u;      // OP_back: the last position of `count` is none, before the first one
const uint KEEPS = 4u;     // writes cells and gates
const uint HAS_BIAS = 8u;  // or OP_back: of_last is given

shared vec4 stage[STAGE]; // rows of terms, of each source
shared float sums[SUMS];  // of parts, gates, rows, units

uint lane, first_row, first_unit, at, before;
bool begins, stays; // stays: `stage` has the state of the position before

// An element of the product's other operand, of row `row` of the position before.
float term(uint source, uint row, uint k)
{
    row += first_row;
    if (row >= args.rows || k >= args.units)
        return 0.0;
#ifdef OP_back
    uint position = before * args.rows + row;
#ifdef GRU
    if (source == 2u)
        return READ(of_c, position * args.units + k);
#endif
    return READ(slopes, (position * GATES + source) * args.units + k);
#else
    return begins ? READ(first, row * args.units + k)
                  : READ(hidden, (before * args.rows + row) * args.units + k);
#endif
}

void read_terms(uint from)
{
    uint fours = DEPTH / 4u;
    for (uint i = lane; i < SOURCES * ROWS * fours; i += GROUP) {
        uint row = i / fours, k = from + i % fours * 4u, source = row / ROWS;
        row -= source * ROWS;
        stage[i] = vec4(term(source, row, k), term(source, row, k + 1u), term(source, row, k + 2u),
                        term(source, row, k + 3u));
    }
}

// Writes the sums of this invocation's gate, unit and part.
void multiply()
{
    uint unit = lane % UNITS, gate = lane / UNITS % GATES, part = lane / (UNITS * GATES);
    uint column = min(first_unit + unit, args.units - 1u), fours = DEPTH / 4u;
#ifdef OP_back
    uint begin = args.w_offset + gate * args.units * args.units + column, stride = args.units;
    uint source = gate * ROWS * fours;
#else
    uint begin = args.w_offset + gate * args.units + column, stride = GATES * args.units;
    uint source = 0u;
#endif
    float own[ROWS];
    [[unroll]] for (uint i = 0u; i < ROWS; i++)
        own[i] = 0.0;
    for (uint from = 0u; from < args.units; from += DEPTH) {
        if (!stays) {
            barrier();
            read_terms(from);
        }
        barrier();
        uint end = min((part + 1u) * (fours / PARTS), (args.units - from + 3u) / 4u);
        for (uint k = part * (fours / PARTS); k < end; k++) {
            vec4 weights = vec4(0.0);
            uint term = from + k * 4u;
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                if (term + i < args.units)
                    weights[i] = PASTE(FROM_, IN)(PASTE(W_, IN)(w.d[begin + (term + i) * stride]));
            [[unroll]] for (uint i = 0u; i < ROWS; i++)
                own[i] += dot(weights, stage[source + i * fours + k]);
        }
    }
    [[unroll]] for (uint i = 0u; i < ROWS; i++)
        sums[((part * GATES + gate) * ROWS + i) * UNITS + unit] = own[i];
}

// The sum of a gate, over all parts.
float sum_of(uint gate, uint row, uint unit)
{
    float sum = 0.0;
    for (uint part = 0u; part < PARTS; part++)
        sum += sums[((part * GATES + gate) * ROWS + row) * UNITS + unit];
    return sum;
}

void hand_on(uint source, uint row, uint unit, float value)
{
    stage[(source * ROWS + row) * (DEPTH / 4u) + unit / 4u][unit % 4u] = value;
}

float sigmoid(float x)
{
    return 1.0 / (1.0 + op_EXP(-x));
}

#ifndef OP_back
// The input of a unit's gate, and its sum with the product with w.
float given_of(uint position, uint gate, uint unit)
{
    float x = READ(given, (position * GATES + gate) * args.units + unit);
    return (args.flags & HAS_BIAS) != 0u ? x + READ(bias, gate * args.units + unit) : x;
}

void make_unit(uint row, uint unit)
{
    uint own_row = row, own_unit = unit;
    row += first_row;
    unit += first_unit;
    uint position = at * args.rows + row, element = position * args.units + unit;
    uint state = row * args.units + unit;
    float x[GATES];
    [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
        x[gate] = given_of(position, gate, unit);
#if defined(LSTM)
    [[unroll]] for (uint gate = 0u; gate < GATES; gate++) {
        float sum = x[gate] + sum_of(gate, own_row, own_unit);
        x[gate] = gate == 2u ? op_TANH(sum) : sigmoid(sum);
    }
    float c = begins ? READ(first_c, state) : READ(last_c, state);
    c = x[1] * c + x[0] * x[2];
    float h = x[3] * op_TANH(c);
    WRITE(last_c, state, c);
    float kept = c;
#elif defined(GRU)
    [[unroll]] for (uint gate = 0u; gate < 2u; gate++)
        x[gate] = sigmoid(x[gate] + sum_of(gate, own_row, own_unit));
    float kept = sum_of(2u, own_row, own_unit);
    if ((args.flags & HAS_BIAS) != 0u)
        kept += READ(bias, 3u * args.units + unit);
    x[2] = op_TANH(x[2] + x[0] * kept);
    float h = begins ? READ(first, state)
                     : READ(hidden, (before * args.rows + row) * args.units + unit);
    h = x[2] + x[1] * (h - x[2]);
#else
    float h = x[0] + sum_of(0u, own_row, own_unit);
    h = RELU == 0u ? op_TANH(h) : h <= 0.0 ? 0.0 : h;
#endif
    WRITE(hidden, element, h);
#if defined(LSTM) || defined(GRU)
    if ((args.flags & KEEPS) != 0u) {
        WRITE(cells, element, kept);
        [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
            WRITE(made, (position * GATES + gate) * args.units + unit, x[gate]);
    }
#endif
    hand_on(0u, own_row, own_unit, h);
}
#else
// The gradient of h that comes back from the position computed before: through w, and of a GRU
// also by z.
float handed_back(uint row, uint unit, uint state)
{
    float sum = 0.0;
    if (!begins)
        [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
            sum += sum_of(gate, row, unit);
#ifdef GRU
    if (!begins)
        sum += READ(of_h, state);
#endif
    return sum;
}

void make_unit(uint row, uint unit)
{
    uint own_row = row, own_unit = unit;
    row += first_row;
    unit += first_unit;
    uint position = at * args.rows + row, element = position * args.units + unit;
    uint state = row * args.units + unit, gates = position * GATES * args.units + unit;
    float d = handed_back(own_row, own_unit, state);
    if (at == ~0u) {
        WRITE(of_h, state, d);
        return;
    }
    d += READ(gradient, element);
    float slope[GATES];
#if defined(LSTM) || defined(GRU)
    float gate[GATES];
    [[unroll]] for (uint i = 0u; i < GATES; i++)
        gate[i] = READ(made, gates + i * args.units);
    uint earlier = ((at + args.step) * args.rows + row) * args.units + unit;
#endif
#if defined(LSTM)
    float old = at == args.begin ? READ(first, state) : READ(cells, earlier);
    float of_c_sum = !begins                            ? READ(of_c, state)
                     : (args.flags & HAS_BIAS) != 0u ? READ(of_last, state)
                                                     : 0.0;
    float t = op_TANH(READ(cells, element)), all = of_c_sum + d * gate[3] * (1.0 - t * t);
    slope[0] = all * gate[2] * gate[0] * (1.0 - gate[0]);
    slope[1] = all * old * gate[1] * (1.0 - gate[1]);
    slope[2] = all * gate[0] * (1.0 - gate[2] * gate[2]);
    slope[3] = d * t * gate[3] * (1.0 - gate[3]);
    WRITE(of_c, state, all * gate[1]);
#elif defined(GRU)
    float old = at == args.begin ? READ(first, state) : READ(hidden, earlier);
    slope[2] = d * (1.0 - gate[1]) * (1.0 - gate[2] * gate[2]);
    slope[1] = d * (old - gate[2]) * gate[1] * (1.0 - gate[1]);
    slope[0] = slope[2] * READ(cells, element) * gate[0] * (1.0 - gate[0]);
    WRITE(of_c, element, slope[2] * gate[0]);
    WRITE(of_h, state, d * gate[1]);
#else
    float h = READ(made, element);
    slope[0] = RELU == 0u ? d * (1.0 - h * h) : h <= 0.0 ? 0.0 : d;
#endif
    [[unroll]] for (uint i = 0u; i < GATES; i++) {
        WRITE(slopes, gates + i * args.units, slope[i]);
#ifdef GRU
        hand_on(i, own_row, own_unit, i == 2u ? slope[2] * gate[0] : slope[i]);
#else
        hand_on(i, own_row, own_unit, slope[i]);
#endif
    }
}
#endif

void main()
{
    lane = gl_LocalInvocationIndex;
    uint number = group_number(), block = number / args.slices;
    first_row = block * ROWS;
    first_unit = (number - block * args.slices) * UNITS;
    if (first_row >= args.rows)
        return;
    at = args.at;
    before = at - args.step;
    for (uint i = 0u; i < args.count; i++) {
        begins = i == 0u && (args.flags & BEGINS) != 0u;
        stays = i > 0u;
#ifdef OP_back
        if (i + 1u == args.count && (args.flags & ENDS) != 0u)
            at = ~0u;
        if (begins)
            for (uint k = lane; k < STAGE; k += GROUP)
                stage[k] = vec4(0.0);
        else
            multiply();
#else
        multiply();
#endif
        barrier();
        for (uint item = lane; item < ROWS * UNITS; item += GROUP) {
            uint row = item / UNITS, unit = item % UNITS;
            if (first_row + row < args.rows && first_unit + unit < args.units)
                make_unit(row, unit);
        }
        barrier();
        before = at;
        at += args.step;
    }
}
