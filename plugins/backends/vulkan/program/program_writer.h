// SPDX-License-Identifier: MIT
// Writes kernels of elementwise programs, and the functions of programs fused into kernels,
// in either language, through a table of functions.
//
// A kernel is a function for one element, straight-line code but for branches
// (program_branches.h), and a main, which computes
// `per_item` elements an invocation: one, or four, where the last invocation may have
// fewer. Each operand has the first of an invocation's elements at a position of its own,
// found from the element's number. A function is the same for one element, whose number it
// gets.
#ifndef VULKAN_PROGRAM_PROGRAM_WRITER_H
#define VULKAN_PROGRAM_PROGRAM_WRITER_H

#include "program.h"

// Where words begin among the arguments (struct program_args), and how many there are.
struct program_words {
    uint32_t first_extent, first_stride, first_param, num_args;
};
struct program_words program_words_of(const tn_expr_program *program,
                                      const struct program_class *class);

// Whether the instruction finds four adjacent elements: the function of one element gets
// what is there.
bool program_takes_four(const tn_expr_program *program, const struct program_class *class,
                        uint32_t position);

// The `lane` of an invocation's element: its number, below PROGRAM_TAIL; PROGRAM_TAIL in
// the tail's loop; PROGRAM_ONLY in a function.
enum { PROGRAM_TAIL = 4, PROGRAM_ONLY = 5 };

// Where an operand has element `lane` of an invocation: at the position of the first one,
// `lane` elements behind it, or `lane` steps behind it.
enum program_index { PROGRAM_AT, PROGRAM_BEHIND, PROGRAM_STEPS };

// How four elements are loaded or stored: at once, one for all, one by one.
enum program_four { PROGRAM_WHOLE, PROGRAM_SAME, PROGRAM_EACH };

// A language to write in. Instructions go by their positions in the program, words by
// their positions among the arguments. The functions of TAKE are NULL in a language whose
// backend gets none.
struct program_language {
    // The function of one element: an instruction's value. `found`: a TAKE of four.
    void (*begin_element)(void *out);
    void (*load)(void *out, uint32_t position);
    void (*constant)(void *out, uint32_t position);
    void (*param)(void *out, uint32_t position, uint32_t word);
    void (*index)(void *out, uint32_t position);
    void (*take)(void *out, uint32_t position, uint32_t word);
    void (*found)(void *out, uint32_t position);
    void (*operation)(void *out, uint32_t position);
    // A SELECT that is a branch: its sides' instructions follow each.
    void (*begin_branch)(void *out, uint32_t position);
    void (*other_side)(void *out, uint32_t position);
    void (*end_branch)(void *out, uint32_t position);
    void (*end_element)(void *out);

    // The function that finds the positions of TAKEs of four: of values as above.
    void (*begin_positions)(void *out);
    void (*operand_position)(void *out, uint32_t position, uint32_t word);
    void (*end_positions)(void *out);

    // Coordinates of an element's number: what is left of it is split by an axis's extent,
    // which is at a word. `divisor`: the first of two words to divide by; 0: there are
    // none.
    void (*begin_axes)(void *out);
    void (*split)(void *out, uint32_t axis, uint32_t extent, uint32_t divisor);
    void (*end_axes)(void *out);
    // An operand's position: a word, the number itself, and coordinates times strides.
    // `step`: the word of the stride to the next element; 0: it is not asked for.
    void (*begin_position)(void *out, uint32_t operand, uint32_t word, bool adds_number);
    void (*add_axis)(void *out, uint32_t operand, uint32_t axis, uint32_t stride);
    void (*end_position)(void *out, uint32_t operand, uint32_t step);

    // A call of the function of one element. Each input is loaded, then passed; one that is
    // gathered from is passed as its position. Then each output is computed, and stored.
    void (*begin_outputs)(void *out, uint32_t lane);
    void (*begin_call)(void *out, uint32_t lane);
    void (*load_input)(void *out, uint32_t input, enum program_index index, uint32_t lane);
    void (*pass_input)(void *out, uint32_t input, enum program_index index, uint32_t lane);
    void (*pass_position)(void *out, uint32_t input, enum program_index index,
                          uint32_t lane);
    void (*end_call)(void *out);
    void (*output)(void *out, uint32_t output);
    void (*store)(void *out, uint32_t output, enum program_index index, uint32_t lane);

    // The same for four elements, by four calls. begin_find .. end_find: the positions of
    // TAKEs of four, by the inputs of the first, and what is there.
    void (*load_four)(void *out, uint32_t input, enum program_four how,
                      enum program_index index);
    void (*begin_four)(void *out);
    void (*begin_find)(void *out);
    void (*end_find)(void *out);
    void (*pass_lane)(void *out, uint32_t input, uint32_t lane);
    void (*pass_found)(void *out, uint32_t position, uint32_t lane);
    void (*output_of_four)(void *out, uint32_t output, uint32_t lane);
    void (*store_four)(void *out, uint32_t output, enum program_four how,
                       enum program_index index);

    // Main, of invocations that have an element; one that has four, else the loop over
    // those that are left. begin_all .. end_all: each has four.
    void (*begin_main)(void *out);
    void (*begin_all)(void *out);
    void (*end_all)(void *out);
    void (*begin_whole)(void *out);
    void (*begin_tail)(void *out);
    void (*end_tail)(void *out);
    void (*end_main)(void *out);

    // The function that a kernel calls: what it is given is passed, or it gives an output.
    void (*begin_function)(void *out);
    void (*pass_given)(void *out, uint32_t input);
    void (*give)(void *out, uint32_t output);
    void (*end_function)(void *out);
};

// Writes the function of one element, whose params begin at a word.
void program_write_element(const struct program_language *language, void *out,
                           const tn_expr_program *program,
                           const struct program_class *class, uint32_t first_param);

// Writes a kernel; for a class with is_function the function.
void program_write_code(const struct program_language *language, void *out,
                        const tn_expr_program *program, const struct program_class *class);

#endif // VULKAN_PROGRAM_PROGRAM_WRITER_H
