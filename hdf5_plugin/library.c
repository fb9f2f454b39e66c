/*
 * library.c - the linked library: its lock, and errors on its stack
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include "plugin.h"

const char *fp_h5_order_name(H5T_order_t order)
{
    return order == H5T_ORDER_BE ? "BE" : order == H5T_ORDER_LE ? "LE" : "";
}

static _Thread_local char last_error[1024];

void fp_h5_push_error(const char *function, unsigned line, const struct h5_pair *pair,
                      const char *what)
{
    if (pair)
        snprintf(last_error, sizeof(last_error), "%s%s to %s%s: %s",
                 fpconv_format_name(pair->src->format), fp_h5_order_name(pair->src->order),
                 fpconv_format_name(pair->dst->format), fp_h5_order_name(pair->dst->order), what);
    else
        snprintf(last_error, sizeof(last_error), "%s", what);
    H5Epush2(H5E_DEFAULT, "fpconv", function, line, H5E_ERR_CLS, H5E_DATATYPE,
             pair ? H5E_CANTCONVERT : H5E_CANTINIT, "fpconv: %s", last_error);
}

const char *fpconv_h5_last_error(void)
{
    return last_error;
}

struct locked_call {
    bool (*body)(void *);
    void *argument;
    bool result;
};

static herr_t run_once(hid_t list, const char *name, void *data)
{
    (void)list;
    (void)name;
    struct locked_call *call = data;
    call->result = call->body(call->argument);
    return 1; /* no further property */
}

/*
 * HDF5 calls back from an iteration with its recursive lock held, so that what
 * runs there is one step for every other thread.  Any iteration would do; that
 * over the properties of a class touches no file and no datatype.
 *
 * In 2.2.0 H5open, which H5P_DATASET_XFER calls, does not wait for a thread that is
 * initialising the library, and the class is not there yet (4 of 200 processes with
 * four threads).  A call that takes the lock waits.
 */
bool fp_h5_run_locked(bool (*body)(void *), void *argument)
{
    struct locked_call call = {body, argument, false};
    int index = 0;
    H5Eget_num(H5E_DEFAULT);
    return H5Piterate(H5P_DATASET_XFER, &index, run_once, &call) >= 0 && call.result;
}
