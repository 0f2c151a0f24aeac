// SPDX-License-Identifier: MIT
// The type Image: a picture that a model has read.
#include "lm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static PyTypeObject *image_type;

// --- opening and closing ---

struct image_work {
    struct lm_work work;
    tn_lm *lm;
    char *path; // owned; NULL: `pixels`, of an object in work.kept
    const uint8_t *pixels;
    int64_t height, width;
    tn_lm_image *image; // NULL once it was taken
};

static void image_run(struct lm_work *work)
{
    struct image_work *w = (struct image_work *)work;
    work_set(work,
             w->path ? tn_lm_image_open(w->lm, w->path, &w->image)
                     : tn_lm_image_make(w->lm, w->pixels, w->height, w->width, &w->image));
}

static void image_free(struct lm_work *work)
{
    struct image_work *w = (struct image_work *)work;
    free(w->path);
    tn_lm_image_close(w->image);
}

static PyObject *image_wrap(struct lm_model *model, struct image_work *w)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(image_type, Py_tp_alloc);
    struct lm_image *self = (struct lm_image *)alloc(image_type, 0);
    if (!self)
        return NULL;
    self->image = w->image;
    w->image = NULL;
    self->model = (struct lm_model *)Py_NewRef((PyObject *)model);
    self->next = model->images;
    model->images = self;
    return (PyObject *)self;
}

static bool pixels_read(struct image_work *w, PyObject *pixels, int64_t height,
                        int64_t width)
{
    char *bytes = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(pixels, &bytes, &size) != 0)
        return false;
    bool fits = height > 0 && width > 0 && height <= TN_LM_MOST_SIDE &&
                width <= TN_LM_MOST_SIDE && size == 3 * height * width;
    if (!fits)
        PyErr_Format(PyExc_ValueError,
                     "image: %zd bytes of %lld x %lld pixels, expected 3 of each, and at "
                     "most %d a side",
                     size, (long long)height, (long long)width, TN_LM_MOST_SIDE);
    w->pixels = (const uint8_t *)bytes;
    w->height = height;
    w->width = width;
    w->work.kept = Py_NewRef(pixels);
    return fits;
}

// image(path, None, 0, 0), or image(None, pixels: bytes, height, width).
PyObject *model_image(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    const char *path;
    PyObject *pixels;
    long long height, width;
    if (!PyArg_ParseTuple(args, "zOLL:image", &path, &pixels, &height, &width))
        return NULL;
    struct image_work *w = work_new(sizeof(struct image_work), image_run, image_free);
    if (!w)
        return NULL;
    struct lm_work *work = &w->work;
    w->path = path ? strdup(path) : NULL;
    if (!w->path && !pixels_read(w, pixels, height, width)) {
        work_free(work);
        return NULL;
    }
    if (!model_enter_for(self, false, work))
        return NULL;
    w->lm = self->lm;
    PyObject *image = work_do(&work, &self->left) ? image_wrap(self, w) : NULL;
    work_free(work);
    return image;
}

void image_drop(struct lm_image *self)
{
    tn_lm_image_close(self->image);
    self->image = NULL;
}

static void image_dealloc(PyObject *object)
{
    PY_GUARD;
    struct lm_image *self = (struct lm_image *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->model->process == getpid())
        image_drop(self);
    struct lm_image **at = &self->model->images;
    while (*at && *at != self)
        at = &(*at)->next;
    if (*at)
        *at = self->next;
    Py_DECREF((PyObject *)self->model);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

// --- facts of an image ---

static tn_lm_image *image_get(struct lm_image *self)
{
    if (!self->image)
        PyErr_SetString(PyExc_ValueError, "tenon.lm: the image's model is closed");
    return self->image;
}

static PyObject *image_info(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_lm_image *image = image_get((struct lm_image *)object);
    tn_lm_image_info i = {.struct_size = sizeof(i)};
    if (!image)
        return NULL;
    tn_lm_image_describe(image, &i);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "height", (long long)i.height,
                         "width", (long long)i.width, "rows", (long long)i.rows, "columns",
                         (long long)i.columns, "tiles", (long long)i.tiles, "tokens",
                         (long long)i.tokens, "positions", (long long)i.positions);
}

// rows(): bytes of float32, [tokens, width of the model].
static PyObject *image_rows(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_image *self = (struct lm_image *)object;
    const tn_lm_image *image = image_get(self);
    if (!image)
        return NULL;
    tn_lm_image_info i = {.struct_size = sizeof(i)};
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_image_describe(image, &i);
    tn_lm_describe(self->model->lm, &info);
    return floats_bytes(tn_lm_image_rows(image), i.tokens * info.width);
}

PyObject *model_image_mark(PyObject *object, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    struct lm_model *self = (struct lm_model *)object;
    const char *mark = "";
    if (!model_enter(self, false))
        return NULL;
    tn_status status = tn_lm_image_mark(self->lm, &mark);
    model_leave(self, false);
    return status == TN_OK ? PyUnicode_FromString(mark) : lm_raise(status);
}

// vision(path): takes the vision encoder from another file.
PyObject *model_vision(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    const char *path;
    if (!PyArg_ParseTuple(args, "s:vision", &path) || !model_enter(self, true))
        return NULL;
    tn_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_lm_vision_load(self->lm, path);
    Py_END_ALLOW_THREADS;
    model_leave(self, true);
    return status == TN_OK ? Py_NewRef(Py_None) : lm_raise(status);
}

bool images_take(struct lm_model *model, PyObject *images, const tn_lm_image ***out,
                 uint64_t *out_count)
{
    Py_ssize_t count = PyTuple_Check(images) ? PyTuple_Size(images) : -1;
    const tn_lm_image **items =
        count >= 0 ? malloc(sizeof(*items) * (size_t)(count + 1)) : NULL;
    if (!items) {
        PyErr_SetString(count >= 0 ? PyExc_MemoryError : PyExc_TypeError,
                        "images: expected a tuple of Images");
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct lm_image *image = (struct lm_image *)PyTuple_GetItem(images, i);
        bool is_ours = Py_TYPE((PyObject *)image) == image_type && image->model == model;
        if (!is_ours || !image_get(image)) {
            if (!is_ours)
                PyErr_SetString(PyExc_ValueError,
                                "images: expected Images that this model has read");
            free((void *)items);
            return false;
        }
        items[i] = image->image;
    }
    *out = items;
    *out_count = (uint64_t)count;
    return true;
}

// expand(ids, images): the ids that stand for a prompt with images.
PyObject *model_expand(PyObject *object, PyObject *args)
{
    PY_GUARD;
    struct lm_model *self = (struct lm_model *)object;
    PyObject *given, *images, *list = NULL;
    const tn_lm_image **items = NULL;
    uint64_t num_images = 0;
    int32_t *ids = NULL, *expanded = NULL;
    int64_t count = 0, num_expanded = 0;
    if (!PyArg_ParseTuple(args, "OO:expand", &given, &images))
        return NULL;
    if (images_take(self, images, &items, &num_images) && ids_read(given, &ids, &count) &&
        model_enter(self, false)) {
        tn_status status = tn_lm_image_expand(self->lm, ids, count, items, num_images,
                                              &expanded, &num_expanded);
        model_leave(self, false);
        list =
            status == TN_OK ? ids_list(expanded, (uint64_t)num_expanded) : lm_raise(status);
    }
    free((void *)items);
    free(ids);
    tn_lm_free(expanded);
    return list;
}

bool image_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"info", image_info, METH_NOARGS, NULL},
        {"rows", image_rows, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, image_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._lm.Image",
                               .basicsize = sizeof(struct lm_image),
                               .flags =
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    image_type = type_add(module, &spec);
    return image_type != NULL;
}
