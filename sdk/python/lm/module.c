// SPDX-License-Identifier: MIT
// The module tenon._lm: its types and functions.
#include "lm.h"

const struct py_host *py_host;

static PyMethodDef functions[] = {
    {"infer_batch", infer_batch, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

PyMODINIT_FUNC PyInit__lm(void);

PyMODINIT_FUNC PyInit__lm(void)
{
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "tenon._lm",
                                            "Language models.",
                                            -1,
                                            functions,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
    py_host = PyCapsule_Import(PY_HOST, 0);
    PyObject *module =
        py_host && guard_init(py_host->guard) ? PyModule_Create(&definition) : NULL;
    if (!module)
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    if (!model_init(module) || !sequence_init(module) || !image_init(module) ||
        !grammar_init(module) || !sampler_init(module) || !stream_init(module))
        Py_CLEAR(module);
    return module;
}
